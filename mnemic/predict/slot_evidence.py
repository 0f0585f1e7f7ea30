"""From the weights of a read to the text: which slots an answer read, and what was written there.

Shapes: w windows, n tokens, m slots that are told of, s slots, r sources of a slot.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

from torch import Tensor

from mnemic.data.text_tasks.batches import TextSet
from mnemic.models.segment_text_model import Looked
from mnemic.predict.results import Slot, Source

LEAST = 1e-3  # of a weight or a share that is told

Spans = Sequence[tuple[int, int]]  # where each unit that was read stands in the text
Watch = Callable[[Sequence[int], Looked], None]  # is told of windows, and what each one read


def slots_read(weights: Tensor, sources: Tensor, shares: Tensor, spans: Spans) -> tuple[Slot, ...]:
    """The slots that were read, most read first: ``weights`` s, ``sources`` and ``shares`` s r."""
    found = []
    for number in weights.argsort(descending=True, stable=True).tolist():
        weight = float(weights[number])
        own = sorted(
            (
                Source(spans[source][0], spans[source][1], share)
                for source, share in zip(sources[number].tolist(), shares[number].tolist())
                if source >= 0 and share >= LEAST
            ),
            key=lambda one: -one.weight,
        )
        if weight >= LEAST and own:
            found.append(Slot(number, weight, tuple(own)))
    return tuple(found)


def evidence_of(slots: Sequence[Slot]) -> tuple[Source, ...]:
    """How much was read of each stretch of the text in all slots, most first."""
    found: dict[tuple[int, int], float] = {}
    for slot in slots:
        for start, end, share in slot.sources:
            found[start, end] = found.get((start, end), 0.0) + slot.weight * share
    ranked = sorted(found.items(), key=lambda one: -one[1])
    return tuple(Source(*place, weight) for place, weight in ranked if weight >= LEAST)


class Looks:
    """What every window of texts read of the memory that went along; ``watch`` gathers it."""

    def __init__(self, texts: TextSet) -> None:
        self.texts = texts
        self.kept: dict[int, Looked] = {}
        self.spans = cache(self.told)  # of the text at hand, asked for again and again

    def watch(self, windows: Sequence[int], looked: Looked) -> None:
        parts = zip(*(part.cpu() for part in looked))
        self.kept |= {window: Looked(*own) for window, own in zip(windows, parts)}

    def of_text(self, number: int) -> tuple[Slot, ...]:
        """The slots that the answer about a whole text read, after its last window."""
        return self.slots(number, int(self.texts.first[number + 1]) - 1, 0)

    def of_token(self, number: int, token: int) -> tuple[Slot, ...]:
        """The slots that one token of a text read, before its window was written."""
        first, end = self.texts.first[number : number + 2].tolist()
        held = self.texts.held[first:end].tolist()
        window = first + bisect_right([start for start, _ in held], token) - 1
        place = int(self.texts.place[window]) + token - held[window - first][0]
        return self.slots(number, window, place)

    def slots(self, number: int, window: int, column: int) -> tuple[Slot, ...]:
        if window not in self.kept:  # a network without a memory
            return ()
        slots, weights, sources, shares = self.kept[window]
        read = weights.new_zeros(len(sources))
        real = slots[column] >= 0
        read[slots[column][real]] = weights[column][real]
        return slots_read(read, sources, shares, self.spans(number))

    def told(self, number: int) -> Spans:
        """Where each token that the memory was told stands in the text, in the order of telling."""
        texts, offsets = self.texts, self.texts.offsets(number)
        found = []
        for window in range(*texts.first[number : number + 2].tolist()):
            begin, end = texts.begins[window : window + 2].tolist()
            shift = int(texts.held[window, 0]) - int(texts.place[window])
            inside = texts.inside[begin:end].nonzero().flatten().tolist()
            found += [offsets[place + shift] for place in inside]
        return found
