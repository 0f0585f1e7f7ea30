"""What a format decides on, and the pieces it builds from."""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from mnemic.recipe import ConfigError

Ends = Sequence[int]  # how many tokens a document has up to each sentence's end


class Stretch(NamedTuple):
    """Tokens ``start`` to ``end`` of one document, half open."""

    document: int
    start: int
    end: int


class Plan(NamedTuple):
    """One sequence: [CLS], then each stretch with a [SEP] behind it."""

    stretches: tuple[Stretch, ...]
    segments: tuple[int, ...]  # the token type of each stretch
    follows: int  # 1: the second segment really follows; 0: it does not; IGNORE: not asked


class Format(Protocol):
    """One way to cut documents into sequences."""

    def __call__(self, documents: Sequence[Ends], most: int, dice: random.Random) -> list[Plan]: ...


def length_of(plan: Plan) -> int:
    """Tokens of the sequence, special ones included."""
    return 1 + sum(end - start + 1 for _, start, end in plan.stretches)


def pieces(ends: Ends, most: int) -> Iterator[tuple[int, int]]:
    """The sentences, start and end; one of more than ``most`` tokens in as few pieces as it takes.

    The pieces of one sentence differ by at most one token in length.
    """
    begin = 0
    for end in ends:
        count = -(-(end - begin) // most)
        borders = [begin + (end - begin) * part // count for part in range(count + 1)]
        yield from pairwise(borders)
        begin = end


def check_room(kind: str, most: int, least: int) -> None:
    if most < least:
        raise ConfigError(f"{kind} needs sequences of at least {least} tokens, not {most}")
