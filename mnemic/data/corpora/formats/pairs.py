"""Two segments, of which the second follows the first in half of all pairs (Devlin et al. 2019).

Shared by ``segment-pair`` and ``sentence-pair``, which differ in how much a segment holds.
"""

import random
from collections.abc import Callable, Sequence

from mnemic.data.corpora.formats.plan import Ends, Plan, Stretch, pieces
from mnemic.models import IGNORE

SPECIALS = 3  # [CLS] and two [SEP]


class Pairs:
    """Walks through documents and pairs them up; a segment has at most ``sentences`` sentences.

    After a false pair the walk goes on behind its first segment, so nothing is passed over. A last
    sentence that is left alone can only be in a false pair; for each of these a later false pair
    becomes a true one, so that half stay true. Where no other document has a token, pairs are true
    and not asked about.
    """

    def __init__(
        self, documents: Sequence[Ends], most: int, dice: random.Random, *, sentences: int
    ) -> None:
        room = most - SPECIALS
        self.texts = [list(pieces(ends, room // 2)) for ends in documents]  # any two fit
        self.full = [number for number, text in enumerate(self.texts) if text]
        self.rank = {number: rank for rank, number in enumerate(self.full)}
        self.dice, self.sentences = dice, sentences
        self.owed = 0  # true pairs, for the false ones that had to be

    def plans(self, target: Callable[[], int]) -> list[Plan]:
        """All pairs; ``target`` says how long the next one should be, both segments together."""
        found = []
        for number in self.full:
            place = 0
            while place < len(self.texts[number]):
                plan, place = self.pair(number, place, target())
                found.append(plan)
        return found

    def pair(self, number: int, place: int, target: int) -> tuple[Plan, int]:
        """The pair that begins at ``place``, and where the walk goes on."""
        text = self.texts[number]
        behind = reach(text, place, target, least=2, most=2 * self.sentences)
        if behind - place == 1:
            return self.last(Stretch(number, *text[place]), target), behind
        middle = self.dice.randrange(place + 1, behind)
        first = Stretch(number, text[place][0], text[middle - 1][1])
        second = Stretch(number, first.end, text[behind - 1][1])
        if len(self.full) == 1:
            return Plan((first, second), (0, 1), IGNORE), behind
        if self.dice.random() < 0.5:
            return Plan((first, second), (0, 1), 1), behind
        if self.owed:
            self.owed -= 1
            return Plan((first, second), (0, 1), 1), behind
        room = max(target, second.end - first.start) - (first.end - first.start)
        return Plan((first, self.stranger(number, room)), (0, 1), 0), middle

    def last(self, first: Stretch, target: int) -> Plan:
        """The pair of a sentence that is left alone."""
        if len(self.full) == 1:
            return Plan((first,), (0,), IGNORE)
        self.owed += self.dice.random() < 0.5  # the coin said true, which cannot be
        size = first.end - first.start
        room = max(target, 2 * size) - size
        return Plan((first, self.stranger(first.document, room)), (0, 1), 0)

    def stranger(self, number: int, room: int) -> Stretch:
        """A stretch of another document; cut at ``room`` where not even one sentence fits."""
        step = self.dice.randrange(1, len(self.full))
        other = self.full[(self.rank[number] + step) % len(self.full)]
        text = self.texts[other]
        place = self.dice.randrange(len(text))
        start = text[place][0]
        end = text[reach(text, place, room, least=1, most=self.sentences) - 1][1]
        return Stretch(other, start, min(end, start + room))


def reach(text: Sequence[tuple[int, int]], place: int, room: int, *, least: int, most: int) -> int:
    """Behind the last sentence from ``place`` on that ``room`` has tokens for."""
    start, behind = text[place][0], min(place + least, len(text))
    while behind < min(place + most, len(text)) and text[behind][1] - start <= room:
        behind += 1
    return behind
