"""Rebuild tokenized documents from sequences of single sentences.

Sequences of the format ``sentences`` hold all that other formats need, so that a folder of them
stands for the texts: tokens, where words start, and where sentences and documents end.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mnemic.data.contract import SPLITS
from mnemic.data.corpora.formats import FORMATS
from mnemic.data.corpora.make_sequences import SequenceMaker
from mnemic.data.corpora.read_documents import CorpusError
from mnemic.data.corpora.sequence_folder import SequenceArrays, SequenceFolder, SequenceFolderWriter
from mnemic.data.corpora.tokens import TokenizedDocument
from mnemic.recipe import build

SENTENCES = "sentences"  # the format that can be regrouped


def regroup_folder(sequences: SequenceFolder, folder: Path, *, format: dict[str, Any], max_tokens: int) -> None:
    """Write sequences of another format and length, made of single sentences.

    They are made as ``mnemic data sequences`` makes them of the texts, whose documents come in
    another order.
    """
    kind = sequences.metadata.get("format", {}).get("kind")
    if kind != SENTENCES:
        raise CorpusError(
            f"sequences of the format {kind!r} cannot be made into others: make them of the texts with "
            f"mnemic data sequences bert-pretrain --set data.format.kind={SENTENCES}"
        )
    make = SequenceMaker(tokenizer=sequences.tokenizer, format=build(FORMATS, format), max_tokens=max_tokens)
    writer = SequenceFolderWriter(folder, sequences.tokenizer)
    for split in SPLITS:
        writer.write_split(split, make(regroup_documents(sequences.splits[split])))
    writer.finish(sequences.metadata | {"format": format, "length": max_tokens})


def regroup_documents(sequences: SequenceArrays) -> Iterator[TokenizedDocument]:
    """Yield the documents of sequences that have a sentence each, without their special tokens."""
    ends = np.cumsum(sequences.lengths, dtype=np.int64)
    firsts = np.flatnonzero(sequences.follows == 0)  # sentences that begin a document
    for first, last in zip(firsts, [*firsts[1:], len(ends)]):
        pieces = [
            sequences.tokens[ends[number] - sequences.lengths[number] + 1 : ends[number] - 1]
            for number in range(first, last)
        ]
        tokens = np.concatenate(pieces)
        sentence_ends = np.cumsum([len(piece) for piece in pieces]).tolist()
        yield TokenizedDocument((tokens >> 1).astype(np.int32), (tokens & 1).astype(bool), sentence_ends)
