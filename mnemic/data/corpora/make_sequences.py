"""Make pre-training sequences of tokenized documents, block by block."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from mnemic.data.corpora.formats import SequenceFormat
from mnemic.data.corpora.sequences import PretrainingSequence, assemble_sequence
from mnemic.data.corpora.tokens import TokenizedDocument
from mnemic.text import SubwordTokenizer

BLOCK_TOKENS = 1_000_000  # documents that are in memory at once


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
            generator = random.Random(hash_seed("block", number))
            generator.shuffle(block)
            yield from self.make_block_sequences(block, generator)

    def make_block_sequences(
        self, documents: list[TokenizedDocument], generator: random.Random
    ) -> Iterator[PretrainingSequence]:
        """Yield the sequences of one block of documents."""
        plans = self.format([document.sentence_ends for document in documents], self.max_tokens, generator)
        cls, sep = self.tokenizer.cls, self.tokenizer.sep
        return (assemble_sequence(plan, documents, cls=cls, sep=sep) for plan in plans)


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


def hash_seed(*labels: object) -> int:
    """Hash labels to a seed of 63 bits, the same on every machine."""
    text = "/".join(str(label) for label in labels)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1
