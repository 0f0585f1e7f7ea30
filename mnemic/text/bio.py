"""Decode BIO tags into entities."""

from collections.abc import Sequence
from typing import NamedTuple


class Entity(NamedTuple):
    """A kind and the words it spans, from ``first`` to ``last``, both in it."""

    kind: str
    first: int
    last: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities in a row of tags B-…, I-… and O.

    As in seqeval's default, an I- that continues nothing of its kind begins an entity.
    """
    found: list[Entity] = []
    before = "O"
    for place, tag in enumerate(tags):
        kind = tag[2:]
        if tag != "O":
            goes_on = tag.startswith("I-") and before != "O" and before[2:] == kind
            if goes_on:
                found[-1] = found[-1]._replace(last=place)
            else:
                found.append(Entity(kind, place, place))
        before = tag
    return found
