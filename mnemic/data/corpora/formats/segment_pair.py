"""Two segments of several sentences each, true or false neighbours."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from mnemic.data.corpora.formats.pairs import SPECIALS, Pairs
from mnemic.data.corpora.formats.plan import Ends, Plan, check_room
from mnemic.recipe import ConfigError


@dataclass(frozen=True, kw_only=True)
class SegmentPair:
    """SEGMENT-PAIR+NSP, the input of BERT: as many sentences as fit, divided at a random place.

    ``short`` is the share of pairs that aim at a random shorter length. Where we differ from BERT:
    a pair is filled up to the limit instead of over it and then cut off, so no token is lost.
    """

    short: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.short <= 1:
            raise ConfigError(f"segment-pair.short is a share from 0 to 1, not {self.short}")

    def __call__(self, documents: Sequence[Ends], most: int, dice: random.Random) -> list[Plan]:
        check_room("segment-pair", most, 5)
        room = most - SPECIALS

        def target() -> int:
            return dice.randint(2, room) if dice.random() < self.short else room

        return Pairs(documents, most, dice, sentences=room).plans(target)
