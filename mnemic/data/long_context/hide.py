"""Hide the sentences of a story among background, in their order, and cut it all into segments.

Everything is an iterator: a sample of ten million tokens is never held as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Literal, NamedTuple

import numpy as np

from mnemic.recipe import ConfigError

Where = Literal["anywhere", "first"]


class Piece(NamedTuple):
    """A sentence, or a stretch of one that is longer than a segment."""

    ids: np.ndarray
    fact: int = -1  # which sentence of the story; -1 = background
    opens: int = 0  # tokens of the paragraph that begins with it; 0 = none does


def hide(
    story: Sequence[np.ndarray],
    background: Iterable[Piece],
    length: int,
    dice: Random,
    *,
    where: Where = "anywhere",
) -> Iterator[Piece]:
    """The story's sentences among background: about ``length`` tokens in all, never fewer than it.

    Where the sentences stand is drawn evenly over the whole length, or all come first; background
    follows the last.
    """
    room = max(length - sum(len(sentence) for sentence in story), 0)
    last = room if where == "anywhere" else 0
    spots = sorted(dice.random() * last for _ in story)
    others = iter(background)
    told = 0
    for number, sentence in enumerate(story):
        while told < spots[number]:
            other = next(others)
            told += len(other.ids)
            yield other
        yield Piece(sentence, number)
    while told < room:
        other = next(others)
        told += len(other.ids)
        yield other


def near_misses(
    story: Sequence[np.ndarray], background: Iterable[Piece], share: float, dice: Random
) -> Iterator[Piece]:
    """Background, and before ``share`` of its sentences one that is almost of the story.

    That is a part of a sentence of the story, with its last token, or one with a token of the
    background in it. Who has seen them knows a story from what only sounds like one.
    """
    told = {tuple(sentence.tolist()) for sentence in story}
    for other in background:
        if dice.random() < share:
            ids, word = dice.choice(story), other.ids[dice.randrange(len(other.ids))]
            size = len(ids) - 1
            if dice.random() < 0.5:
                begin = dice.randrange(max(size, 1))
                ids = np.append(ids[begin : dice.randint(begin + 1, max(size, 1))], ids[-1:])
            else:
                ids = ids.copy()
                ids[dice.randrange(max(size, 1))] = word
            if tuple(ids.tolist()) not in told:
                yield Piece(ids)
        yield other


def excerpt(
    story: Sequence[np.ndarray], facts: Iterable[int], length: int, dice: Random
) -> Iterator[Piece]:
    """A stretch of at most ``length`` tokens of the story itself, and never less than its facts.

    How much of it stands before them is drawn evenly, as far as the story has it.
    """
    known = sorted(facts)
    sizes = [len(sentence) for sentence in story]
    first, end = known[0], known[-1] + 1
    spare = length - sum(sizes[first:end])
    before = dice.random() * spare
    while first and sizes[first - 1] <= before:
        first -= 1
        before, spare = before - sizes[first], spare - sizes[first]
    while end < len(story) and sizes[end] <= spare:
        spare -= sizes[end]
        end += 1
    while end == len(story) and first and sizes[first - 1] <= spare:
        first -= 1
        spare -= sizes[first]
    for number in range(first, end):
        yield Piece(story[number], number)


def cut(pieces: Iterable[Piece], room: int) -> Iterator[list[Piece]]:
    """Segments of at most ``room`` tokens; only a sentence longer than that is cut within.

    A paragraph begins a segment unless there is room for all of it. Without a piece there is one
    empty segment.
    """
    held: list[Piece] = []
    size = 0
    some = False
    for piece in pieces:
        due = min(piece.opens, room)
        for part in [piece] if len(piece.ids) <= room else stretches(piece, room):
            if size + max(len(part.ids), due) > room:
                yield held
                some, held, size = True, [], 0
            held.append(part)
            size += len(part.ids)
            due = 0
    if held or not some:
        yield held


def stretches(piece: Piece, room: int) -> list[Piece]:
    """A sentence that is too long, in pieces."""
    cuts = range(0, len(piece.ids), room)
    return [Piece(piece.ids[start : start + room], piece.fact) for start in cuts]


def check_length(length: int, segments: int) -> None:
    if length < 8 or segments < 1:
        raise ConfigError(
            f"data.length is at least 8 tokens and data.segments at least 1, not {length} and "
            f"{segments}"
        )
