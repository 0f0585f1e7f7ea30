"""Running text as tensors: documents one after the other, and the stretches a network reads.

A document has a mark (``END``) before and behind it, one between two documents. A row is a stretch
of one document: its words are read, and each next word is asked for.

Shapes: t words of all documents, r rows, b rows of a batch, n words of a row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mnemic.models import IGNORE, Windows
from mnemic.recipe import ConfigError
from mnemic.text import Words

END = "¶"  # where a document begins or ends; no text has it as a word


class Batch(NamedTuple):
    """What a language model reads, and the word behind each."""

    inputs: Windows
    targets: Tensor  # b n, IGNORE where nothing is asked


class Rows(NamedTuple):
    """Stretches of documents."""

    first: Tensor  # r, the place of the first word that is read
    lengths: Tensor  # r, how many words are read
    before: Tensor  # r, how many of these are read only to know what came before


@dataclass(frozen=True, kw_only=True)
class WordSet:
    """A set of stretches on one device, ready to be drawn from."""

    ids: Tensor  # t
    rows: Rows
    length: int  # the most words of a row
    strange: int  # the id of all words that the vocabulary does not have

    def __len__(self) -> int:
        return len(self.rows.first)

    @property
    def device(self) -> torch.device:
        return self.ids.device

    @property
    def lengths(self) -> Tensor:
        return self.rows.lengths

    @property
    def asked(self) -> int:
        """How many words are asked for; each document's end is one of them."""
        return int((self.rows.lengths - self.rows.before).sum())

    @property
    def rolls(self) -> int:
        return 0

    @property
    def unknown(self) -> int:
        """How many of the words asked for are not in the vocabulary."""
        return int((self.ids == self.strange).sum())

    def to(self, device: torch.device | str) -> "WordSet":
        rows = Rows(*(part.to(device) for part in self.rows))
        return replace(self, ids=self.ids.to(device), rows=rows)

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Batch:
        """The stretches ``rows`` (b); with ``compact`` only as wide as the longest of them."""
        first, lengths, before = (part[rows].unsqueeze(1) for part in self.rows)  # b 1
        width = int(lengths.max()) if compact else most or self.length
        column = torch.arange(width, device=rows.device)
        mask = column < lengths  # b n
        places = (first + column).masked_fill(~mask, 0)
        tokens = self.ids[places].long().masked_fill(~mask, 0)
        asked = mask & (column >= before)
        targets = self.ids[places + 1].long().masked_fill(~asked, IGNORE)
        return Batch(Windows(tokens, mask, torch.zeros_like(tokens), mask), targets)


def word_set(ids: np.ndarray, words: Words, *, length: int, context: int = 0) -> WordSet:
    """Documents, marked as said above, in stretches of ``length`` words.

    Without ``context`` stretches stand side by side, for training. With it each begins so many
    words earlier, which are not asked for again: every word is asked for once, and but for a
    document's beginning it is said from at least ``context`` words.
    """
    if length < 2 or not 0 <= context < length:
        raise ConfigError(
            f"data.length is at least 2 and data.context from 0 to below it, not {length} and "
            f"{context}"
        )
    marks = np.flatnonzero(ids == words.id_of(END)).tolist()
    rows = [row for start, end in pairwise(marks) for row in cut(start, end, length, context)]
    columns = torch.tensor(rows, dtype=torch.long).view(-1, 3).unbind(1)
    whole = torch.from_numpy(np.ascontiguousarray(ids, dtype=np.int32))
    return WordSet(ids=whole, rows=Rows(*columns), length=length, strange=words.unknown)


def cut(start: int, end: int, length: int, context: int) -> Iterator[tuple[int, int, int]]:
    """First word, length and context of each stretch between two marks."""
    yield start, min(length, end - start), 0
    for first in range(start + length - context, end - context, length - context):
        yield first, min(length, end - first), context


def joined(documents: Sequence[Sequence[int]], mark: int) -> np.ndarray:
    """Documents as one row of ids, marked; those without a word are left out."""
    parts = [np.array([mark], dtype=np.uint16)]
    for own in documents:
        if len(own):
            parts.append(np.array([*own, mark], dtype=np.uint16))
    return np.concatenate(parts)
