"""Make pre-training sequences of tokenized documents, block by block.

Shapes: n tokens.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import NamedTuple

import numpy as np

from mnemic.data.corpora.formats import SequenceFormat, SequencePlan
from mnemic.data.corpora.tokens import TokenizedDocument
from mnemic.text import SubwordTokenizer

BLOCK_TOKENS = 1_000_000  # documents that are in memory at once


class PretrainingSequence(NamedTuple):
    """A sequence of tokens, special tokens included."""

    ids: np.ndarray  # n, int32
    segments: np.ndarray  # n, int8: token types
    word_starts: np.ndarray  # n, bool: True where a word starts
    follows: int  # 1, 0 or IGNORE: the target of next-sentence prediction


@dataclass(frozen=True, kw_only=True)
class SequenceMaker:
    """Makes sequences of documents: shuffles each block, plans by a format, assembles.

    The sequences of a block depend on its documents and its number only.
    """

    tokenizer: SubwordTokenizer  # its [CLS] and [SEP] frame the sequences
    format: SequenceFormat
    max_tokens: int = 128  # per sequence, special tokens included
    block_tokens: int = BLOCK_TOKENS

    def __call__(self, documents: Iterable[TokenizedDocument]) -> Iterator[PretrainingSequence]:
        """Yield the sequences of all documents, with one block in memory at a time."""
        for number, block in enumerate(group_into_blocks(documents, self.block_tokens)):
            seed = sha256(f"block/{number}".encode()).digest()  # the same on every machine
            generator = Random(int.from_bytes(seed[:8], "big") >> 1)
            generator.shuffle(block)
            for plan in self.format([document.sentence_ends for document in block], self.max_tokens, generator):
                yield assemble_sequence(plan, block, cls=self.tokenizer.cls, sep=self.tokenizer.sep)


def group_into_blocks(documents: Iterable[TokenizedDocument], block_tokens: int) -> Iterator[list[TokenizedDocument]]:
    """Group documents, in order, into lists of at least ``block_tokens`` tokens."""
    block: list[TokenizedDocument] = []
    size = 0
    for document in documents:
        block.append(document)
        size += len(document.ids)
        if size >= block_tokens:
            yield block
            block, size = [], 0
    if block:
        yield block


def assemble_sequence(
    plan: SequencePlan, documents: Sequence[TokenizedDocument], *, cls: int, sep: int
) -> PretrainingSequence:
    """Assemble [CLS], then each span and a [SEP]; [CLS] has the first span's type.

    The first token of a span starts a word, even if a long sentence was cut within one.
    """
    sizes = [end - start for _, start, end in plan.spans]
    total = 1 + sum(sizes) + len(sizes)
    ids = np.full(total, sep, dtype=np.int32)
    word_starts = np.ones(total, dtype=bool)
    segments = np.full(total, plan.segments[0], dtype=np.int8)
    ids[0] = cls
    begin = 1
    for (document, start, end), size, segment in zip(plan.spans, sizes, plan.segments):
        stop = begin + size
        ids[begin:stop] = documents[document].ids[start:end]
        word_starts[begin + 1 : stop] = documents[document].word_starts[start + 1 : end]
        segments[begin : stop + 1] = segment
        begin = stop + 1
    return PretrainingSequence(ids, segments, word_starts, plan.follows)
