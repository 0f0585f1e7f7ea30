"""From a plan and its documents to the tokens of one training sequence.

Shapes: n tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mnemic.data.corpora.formats import Plan
from mnemic.data.corpora.tokens import Tokens


class Example(NamedTuple):
    """One sequence, special tokens included."""

    ids: np.ndarray  # n, int32
    segments: np.ndarray  # n, int8: token types
    starts: np.ndarray  # n, bool: True where a word begins
    fixed: np.ndarray  # n, bool: special tokens, which are never masked
    follows: int  # 1, 0 or IGNORE: the target of next-sentence prediction


def assemble(plan: Plan, documents: Sequence[Tokens], *, cls: int, sep: int) -> Example:
    """[CLS], then each stretch and a [SEP]; [CLS] has the first stretch's type.

    The first token of a stretch begins a word, even if a long sentence was cut within one.
    """
    sizes = [end - start for _, start, end in plan.stretches]
    total = 1 + sum(sizes) + len(sizes)
    ids = np.full(total, sep, dtype=np.int32)
    starts = np.ones(total, dtype=bool)
    fixed = np.ones(total, dtype=bool)
    segments = np.full(total, plan.segments[0], dtype=np.int8)
    ids[0] = cls
    place = 1
    for (document, start, end), size, segment in zip(plan.stretches, sizes, plan.segments):
        behind = place + size
        ids[place:behind] = documents[document].ids[start:end]
        starts[place + 1 : behind] = documents[document].starts[start + 1 : end]
        fixed[place:behind] = False
        segments[place : behind + 1] = segment
        place = behind + 1
    return Example(ids, segments, starts, fixed, plan.follows)
