"""What a network that carries a memory reads, and what it tells of it.

Shapes: b documents, s segments of the longest, n tokens of a segment, p units of a segment,
q tokens of a question, w words of an answer, l lessons of a segment, d width, v vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.memory import Reading, Written

IGNORE = -100  # a target that is not asked for
OTHER, OUTSIDE = -1, -2  # where facts are numbered: a sentence of the story that is none; all else


class Counted(NamedTuple):
    """What of a batch decides shapes."""

    rows: Tensor  # r, which of the (b s) segments are not empty
    sentences: int  # of the segment that has most
    tokens: int = 0  # of all of them, special ones too; 0: nobody has counted them


class Segments(NamedTuple):
    """Documents cut into segments, and a question of each; a shorter one has empty segments behind.

    Where nothing is asked, ``question`` has no column.
    """

    tokens: Tensor  # b s n, ids
    mask: Tensor  # b s n, True = a real token
    inside: Tensor  # b s n, True = a token of the text, none of the special ones
    question: Tensor  # b q, ids
    asked: Tensor  # b q, True = a real token
    words: Tensor  # b w, the answer's ids: those before a word are read when it is scored
    hidden: Tensor | None = None  # b s n, True = the token is asked for; MASS asks no other
    sentences: Tensor | None = None  # b s n, which sentence of its segment a token is in; -1: none
    counted: Counted | None = None  # known where the batch was made, so that no GPU is waited for

    def only(self, first: int, end: int) -> "Segments":
        """Some of the segments, with the whole question."""
        cut: dict[str, Any] = {
            name: part[:, first:end]
            for name, part in self._asdict().items()
            if isinstance(part, Tensor) and part.dim() == 3
        }
        return self._replace(**cut, counted=None)


class Lesson(NamedTuple):
    """What the write of one segment can be judged by."""

    before: Any  # the memory's state, b …
    written: Written  # weights b p s
    seen: Tensor  # b p, which units are real
    recall: Reading | None = None  # what some written units find in memory, where it was asked
    slots: Tensor | None = None  # b l, the slot that holds most of each; -1 = none
    words: Tensor | None = None  # b l v, scores of the words that were found
    targets: Tensor | None = None  # b l j, the tokens of each; IGNORE behind


class Recalled(NamedTuple):
    """Scores of the answer, and everything that shows how it came about."""

    scores: Tensor  # b 1 v, of the first word
    rest: Tensor  # b w-1 v, of the others, each after those before it
    follows: Tensor  # b 2, whether the question is how the document goes on
    reading: Reading  # of the question
    state: Any  # the memory after the last segment
    words: Tensor | None  # p v, at the hidden tokens, in their order
    lessons: tuple[Lesson, ...]  # one a segment, or one for all that were written at once


def units_of(values: Tensor, sentences: Tensor, count: int, *, root: bool = False) -> Tensor:
    """The mean of ``values`` (b n d) over the tokens of each sentence: b p d, zeros for none.

    With ``root`` their sum by the root of their number, from which that can be told.
    """
    here = sentences.clamp(min=0)
    real = (sentences >= 0).to(values.dtype)
    size = values.new_zeros(values.shape[0], count).scatter_add(1, here, real)
    wide = here.unsqueeze(-1).expand_as(values)
    total = values.new_zeros(values.shape[0], count, values.shape[-1])
    total = total.scatter_add(1, wide, values * real.unsqueeze(-1))
    size = size.clamp(min=1).unsqueeze(-1)
    return total / (size.sqrt() if root else size)


def any_of(flags: Tensor, sentences: Tensor, count: int) -> Tensor:
    """Which sentences (b p) have a token whose flag (b n) is set."""
    here, real = sentences.clamp(min=0), (sentences >= 0) & flags
    return (
        flags.new_zeros(flags.shape[0], count, dtype=torch.long)
        .scatter_add(1, here, real.long())
        .bool()
    )


def counted(inputs: Segments) -> Counted:
    """What decides shapes; on a GPU this waits for it."""
    if inputs.counted is not None:
        return inputs.counted
    rows = inputs.mask.flatten(0, 1).any(1).nonzero().squeeze(1)
    own = inputs.sentences
    return Counted(rows, 0 if own is None or not own.numel() else int(own.max()) + 1)
