"""Map read weights to the slots and text spans that an answer read.

Shapes: w windows, n tokens, m slots with the largest read weights, s slots, r units per slot.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

from torch import Tensor

from mnemic.data.text_tasks.batches import TextDataset
from mnemic.models.segment_text_model import SlotReads
from mnemic.predict.results import SlotEvidence, SourceSpan

MIN_WEIGHT = 1e-3  # smaller weights and shares are not reported

UnitSpans = Sequence[tuple[int, int]]  # character offsets of each unit
OnRead = Callable[[Sequence[int], SlotReads], None]  # gets window ids and their reads


def rank_slots(weights: Tensor, sources: Tensor, shares: Tensor, spans: UnitSpans) -> tuple[SlotEvidence, ...]:
    """Rank the slots by read weight: ``weights`` s, ``sources`` and ``shares`` s r.

    ``sources`` are unit ids (-1: none), ``shares`` their parts of the slot, ``spans`` the offsets
    of the units.
    """
    slots = []
    for slot in weights.argsort(descending=True, stable=True).tolist():
        weight = float(weights[slot])
        origins = sorted(
            (
                SourceSpan(spans[unit][0], spans[unit][1], share)
                for unit, share in zip(sources[slot].tolist(), shares[slot].tolist())
                if unit >= 0 and share >= MIN_WEIGHT
            ),
            key=lambda origin: -origin.weight,
        )
        if weight >= MIN_WEIGHT and origins:
            slots.append(SlotEvidence(slot, weight, tuple(origins)))
    return tuple(slots)


def merge_evidence(slots: Sequence[SlotEvidence]) -> tuple[SourceSpan, ...]:
    """Sum the read weight of each span over all slots, largest weight first."""
    weights: dict[tuple[int, int], float] = {}
    for slot in slots:
        for start, end, share in slot.sources:
            weights[start, end] = weights.get((start, end), 0.0) + slot.weight * share
    ranked = sorted(weights.items(), key=lambda entry: -entry[1])
    return tuple(SourceSpan(*span, weight) for span, weight in ranked if weight >= MIN_WEIGHT)


class SlotReadRecorder:
    """Records what each window of a dataset read from memory; pass ``record`` as ``on_read``."""

    def __init__(self, dataset: TextDataset) -> None:
        self.dataset = dataset
        self.reads: dict[int, SlotReads] = {}
        self.spans_of_text = cache(self.find_written_spans)  # each token of a text needs them

    def record(self, windows: Sequence[int], slot_reads: SlotReads) -> None:
        """Record what each of these windows read."""
        windows_read = zip(*(tensor.cpu() for tensor in slot_reads))
        self.reads |= {window: SlotReads(*tensors) for window, tensors in zip(windows, windows_read)}

    def slots_of_text(self, text_id: int) -> tuple[SlotEvidence, ...]:
        """Rank the slots that the prediction for a text read, after its last window."""
        return self.slots_read_at(text_id, int(self.dataset.first_window[text_id + 1]) - 1, 0)

    def slots_of_token(self, text_id: int, token: int) -> tuple[SlotEvidence, ...]:
        """Rank the slots that a token of a text read, before its window was written."""
        first, end = self.dataset.first_window[text_id : text_id + 2].tolist()
        text_spans = self.dataset.token_range[first:end].tolist()
        window = first + bisect_right([start for start, _ in text_spans], token) - 1
        position = int(self.dataset.text_start[window]) + token - text_spans[window - first][0]
        return self.slots_read_at(text_id, window, position)

    def slots_read_at(self, text_id: int, window: int, position: int) -> tuple[SlotEvidence, ...]:
        """Rank the slots that one position of a window read."""
        if window not in self.reads:  # the network has no memory
            return ()
        slots, weights, sources, shares = self.reads[window]
        slot_weights = weights.new_zeros(len(sources))
        is_slot = slots[position] >= 0
        slot_weights[slots[position][is_slot]] = weights[position][is_slot]
        return rank_slots(slot_weights, sources, shares, self.spans_of_text(text_id))

    def find_written_spans(self, text_id: int) -> UnitSpans:
        """Find the character offsets of each token written to memory, in writing order."""
        texts, offsets = self.dataset, self.dataset.token_offsets(text_id)
        spans = []
        for window in range(*texts.first_window[text_id : text_id + 2].tolist()):
            begin, end = texts.window_starts[window : window + 2].tolist()
            shift = int(texts.token_range[window, 0]) - int(texts.text_start[window])
            inside = texts.answer_mask[begin:end].nonzero().flatten().tolist()
            spans += [offsets[position + shift] for position in inside]
        return spans
