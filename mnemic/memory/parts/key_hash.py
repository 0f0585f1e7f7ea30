"""Select the slots of a large memory that a question may read: ``select(question)``.

Shapes: s slots of the whole memory, w words, b batch, c slots selected for a question.
"""

from typing import Protocol

import torch
from torch import Tensor

from mnemic.memory.append import Slots


class SlotSelector(Protocol):
    """Select slots by the words of a question."""

    def __call__(self, question: Tensor) -> Tensor:
        """Map word ids (b w) to slot ids (b c), padded with -1."""
        ...


class KeyHash:
    """Select slots whose key shares a rare word with the question.

    Miller et al. 2016, section 3.1. A word is rare if it is in at most ``max_frequency`` keys (the
    paper's F). If more than ``max_slots`` slots qualify, those of the rarest word come first, in
    the order of writing. Words are ids, so an entity of many words that is one entry of the
    vocabulary is shared as a whole.
    """

    def __init__(self, keys: Tensor, *, max_slots: int = 200, max_frequency: int = 1000) -> None:
        """Index the keys: s w, word ids, 0 = padding."""
        if max_slots < 1 or max_frequency < 1:
            raise ValueError(f"key hashing takes max_slots and max_frequency ≥ 1, not {max_slots} and {max_frequency}")
        self.max_slots, self.max_frequency = max_slots, max_frequency
        slots, columns = (keys > 0).nonzero(as_tuple=True)
        pairs = torch.stack([keys[slots, columns], slots], 1).unique(dim=0)  # by word, then slot
        words, counts = pairs[:, 0].unique_consecutive(return_counts=True)
        self.slots_by_word = pairs[:, 1]
        ends = counts.cumsum(0)
        self.range_of_word = dict(zip(words.tolist(), zip((ends - counts).tolist(), ends.tolist())))

    def __call__(self, question: Tensor) -> Tensor:
        """Select slots for each question (b w, word ids): b c, padded with -1."""
        slot_lists = [self.find_slots(words) for words in question.tolist()]
        slot_ids = torch.full((len(slot_lists), max(map(len, slot_lists), default=0)), -1)  # b c
        for row, slots in enumerate(slot_lists):
            slot_ids[row, : len(slots)] = slots
        return slot_ids

    def find_slots(self, words: list[int]) -> Tensor:
        """Find the slots of one question, those of its rarest word first."""
        ranges = {self.range_of_word[word] for word in words if word in self.range_of_word}
        rare_ranges = [slot_range for slot_range in ranges if slot_range[1] - slot_range[0] <= self.max_frequency]
        rare_ranges.sort(key=lambda slot_range: (slot_range[1] - slot_range[0], slot_range[0]))
        slot_lists = [self.slots_by_word[start:end] for start, end in rare_ranges]
        slots = torch.cat(slot_lists) if slot_lists else self.slots_by_word[:0]
        if len(slot_lists) > 1:  # one word lists a slot once, several may repeat it
            slots = torch.tensor(list(dict.fromkeys(slots.tolist())), dtype=slots.dtype)
        return slots[: self.max_slots]


def select_slots(state: Slots, slot_ids: Tensor) -> Slots:
    """Gather each question's slots (b c) from a shared memory of batch 1."""
    slots = slot_ids.clamp(min=0)
    return Slots(
        state.states[0, slots],
        state.mask[0, slots] & (slot_ids >= 0),
        torch.where(slot_ids >= 0, state.sources[0, slots], -1),
        state.num_written.expand(slot_ids.shape[0]),
    )
