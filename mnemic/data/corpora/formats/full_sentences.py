"""Whole sentences, one after another, across the borders of documents."""

import random
from collections.abc import Iterable, Iterator, Sequence

from mnemic.data.corpora.formats.plan import Ends, Plan, Stretch, check_room, pieces
from mnemic.models import IGNORE


class FullSentences:
    """FULL-SENTENCES of RoBERTa: filled up with whole sentences; a [SEP] between documents.

    No next-sentence prediction; all tokens have type 0.
    """

    def __call__(self, documents: Sequence[Ends], most: int, dice: random.Random) -> list[Plan]:
        check_room("full-sentences", most, 3)
        return list(packed(enumerate(documents), most))


def packed(documents: Iterable[tuple[int, Ends]], most: int) -> Iterator[Plan]:
    """As few sequences as whole sentences, in their order, can fill."""
    held: list[Stretch] = []
    size = 1  # with [CLS]
    for number, ends in documents:
        for start, end in pieces(ends, most - 2):
            joined = bool(held) and held[-1].document == number
            more = end - start + (0 if joined else 1)  # a document's first needs a [SEP]
            if size + more > most:
                yield plan_of(held)
                held, size, joined, more = [], 1, False, end - start + 1
            if joined:
                held[-1] = held[-1]._replace(end=end)
            else:
                held.append(Stretch(number, start, end))
            size += more
    if held:
        yield plan_of(held)


def plan_of(stretches: Sequence[Stretch]) -> Plan:
    return Plan(tuple(stretches), (0,) * len(stretches), IGNORE)
