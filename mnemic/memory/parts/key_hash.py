"""Which slots of a large memory a question may read: ``select(question) → slot ids``, before read.

Shapes: s slots of the whole memory, w words, b batch, c slots chosen for a question.
"""

from typing import Protocol

import torch
from torch import Tensor

from mnemic.memory.append import Slots


class Select(Protocol):
    """Choose slots by what a question says; ids that are not needed are -1, behind the others."""

    def __call__(self, question: Tensor) -> Tensor: ...  # b w, word ids → b c


class KeyHash:
    """The slots whose key shares a rare word with the question (Miller et al. 2016, section 3.1).

    A word is rare if it is in at most ``common`` keys (the paper's F). Where more than ``most``
    slots share one, those of the rarest word come first, in the order they were written. Words are
    ids, so an entity of many words that the vocabulary has as one item is shared as a whole.
    """

    def __init__(self, keys: Tensor, *, most: int = 200, common: int = 1000) -> None:
        """``keys``: s w, word ids, 0 = padding."""
        if most < 1 or common < 1:
            raise ValueError(f"key hashing takes most and common ≥ 1, not {most} and {common}")
        self.most, self.common = most, common
        slots, places = (keys > 0).nonzero(as_tuple=True)
        pairs = torch.stack([keys[slots, places], slots], 1).unique(dim=0)  # by word, then slot
        words, counts = pairs[:, 0].unique_consecutive(return_counts=True)
        self.slots = pairs[:, 1]
        ends = counts.cumsum(0)
        self.range_of = {
            word: (start, end)
            for word, start, end in zip(words.tolist(), (ends - counts).tolist(), ends.tolist())
        }

    def __call__(self, question: Tensor) -> Tensor:
        found = [self.sharing(words) for words in question.tolist()]
        chosen = torch.full((len(found), max(map(len, found), default=0)), -1)  # b c
        for row, slots in enumerate(found):
            chosen[row, : len(slots)] = slots
        return chosen

    def sharing(self, words: list[int]) -> Tensor:
        """The slots of one question, the rarest word's first."""
        ranges = {self.range_of[word] for word in words if word in self.range_of}
        rare = [own for own in ranges if own[1] - own[0] <= self.common]
        parts = [self.slots[start:end] for start, end in sorted(rare, key=size_of)]
        every = torch.cat(parts) if parts else self.slots[:0]
        return first_of_each(every)[: self.most] if len(parts) > 1 else every[: self.most]


def size_of(part: tuple[int, int]) -> tuple[int, int]:
    """Small ranges first; the start makes the order of equal ones certain."""
    return part[1] - part[0], part[0]


def first_of_each(ids: Tensor) -> Tensor:
    """Every id once, in the order in which they first come."""
    return torch.tensor(list(dict.fromkeys(ids.tolist())), dtype=ids.dtype)


def pick(state: Slots, chosen: Tensor) -> Slots:
    """The chosen slots of a memory that all questions share: batch 1, ``chosen`` b c → batch b."""
    rows = chosen.clamp(min=0)
    return Slots(
        state.states[0, rows],
        state.mask[0, rows] & (chosen >= 0),
        torch.where(chosen >= 0, state.sources[0, rows], -1),
        state.told.expand(chosen.shape[0]),
    )
