"""Assemble the tokens of one pre-training sequence from its plan and its documents.

Shapes: n tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mnemic.data.corpora.formats import SequencePlan
from mnemic.data.corpora.tokens import TokenizedDocument


class PretrainingSequence(NamedTuple):
    """A sequence of tokens, special tokens included."""

    ids: np.ndarray  # n, int32
    segments: np.ndarray  # n, int8: token types
    word_starts: np.ndarray  # n, bool: True where a word starts
    is_special: np.ndarray  # n, bool: special tokens, which are never masked
    follows: int  # 1, 0 or IGNORE: the target of next-sentence prediction


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
    is_special = np.ones(total, dtype=bool)
    segments = np.full(total, plan.segments[0], dtype=np.int8)
    ids[0] = cls
    begin = 1
    for (document, start, end), size, segment in zip(plan.spans, sizes, plan.segments):
        stop = begin + size
        ids[begin:stop] = documents[document].ids[start:end]
        word_starts[begin + 1 : stop] = documents[document].word_starts[start + 1 : end]
        is_special[begin:stop] = False
        segments[begin : stop + 1] = segment
        begin = stop + 1
    return PretrainingSequence(ids, segments, word_starts, is_special, plan.follows)
