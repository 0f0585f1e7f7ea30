"""Kept sequences as tensors, ready to be drawn from: any rows, in any order, as a batch.

Shapes: r sequences of the set, t tokens of all of them, b batch, n tokens, v vocabulary.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mnemic.data.corpora.sequence_folder import Sequences
from mnemic.text import Subwords

RESIDENT = 4 * 2**30  # bytes; more tokens than that stay on the disk, whatever the device
ROLLS = 2  # uniform numbers by which a sequence's masks are drawn
BITS = 24  # of a roll: as many as a float32 holds
DOUBT = 8  # standard deviations by which a batch's room exceeds its mean: 1 in 10^15 has more
UNIT = 64  # a room is a multiple of it, as kernels like it


class Batch(NamedTuple):
    """What an objective of pre-training corrupts, and what it asks for."""

    tokens: Tensor  # b n, as they stand in the text
    mask: Tensor  # b n, True = no padding
    segments: Tensor  # b n, token types
    starts: Tensor  # b n, True where a word begins
    fixed: Tensor  # b n, True where nothing may be masked: special tokens and padding
    follows: Tensor  # b, 1, 0 or IGNORE
    keys: Tensor  # b, one for the dice of each sequence
    hidden: Tensor  # the id of [MASK]
    ordinary: Tensor  # v, the ids that a random token may have
    room: int = 0  # that many tokens are no padding, at most; 0: nobody has counted


@dataclass(frozen=True, kw_only=True)
class CorpusSet:
    """The sequences of one part of a corpus.

    Tokens are on the device where they fit into ``RESIDENT``; else a batch is read from the disk,
    and copied, each time. ``copies`` is for static masks (the original BERT had 10): so many keys
    has each sequence, of which one is drawn; with 0 keys are new at each draw (RoBERTa).
    """

    kind = "masked"
    device: torch.device
    tokens: Tensor  # t, int16 or int32 that stand for unsigned numbers; see ``kept``
    begins: Tensor  # r+1, where each sequence begins in tokens
    seconds: Tensor  # r
    follows: Tensor  # r
    specials: Tensor
    hidden: Tensor
    ordinary: Tensor
    pad: int
    copies: int = 0

    def __len__(self) -> int:
        return len(self.follows)

    @cached_property
    def lengths(self) -> Tensor:
        return self.begins[1:] - self.begins[:-1]

    @cached_property
    def longest(self) -> int:
        return int(self.lengths.max()) if len(self) else 0

    @property
    def unknown(self) -> int:
        return 0

    @property
    def rolls(self) -> int:
        return ROLLS

    @property
    def count(self) -> Tensor:
        """Tokens seen and tokens there are, r 2: sequences hold all of them."""
        return torch.stack([self.lengths, self.lengths], 1)

    @cached_property
    def spread(self) -> tuple[float, float]:
        """The mean of the lengths, and their standard deviation."""
        lengths = self.lengths.double()
        return float(lengths.mean()), float(lengths.std(correction=0))

    def room(self, count: int) -> int:
        """How many tokens ``count`` sequences have together, and hardly ever more."""
        mean, deviation = self.spread
        most = ceil((count * mean + DOUBT * sqrt(count) * deviation) / UNIT) * UNIT
        return min(most, count * self.longest)

    def to(self, device: torch.device | str) -> "CorpusSet":
        device = torch.device(device)
        resident = self.tokens.nbytes <= RESIDENT
        parts: dict[str, Any] = {
            name: part.to(device)
            for name, part in vars(self).items()
            if torch.is_tensor(part) and name != "lengths" and (resident or name != "tokens")
        }
        return replace(self, device=device, **parts)

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Batch:
        """The sequences ``rows`` (b). ``rolls`` (b 2) decide the keys; without them rows do.

        Not ``compact``: as wide as the longest of all sequences, so that no GPU has to wait for
        their lengths, and with the ``room`` that the tokens of such a batch need.
        """
        begins = self.begins[rows]
        lengths = self.begins[rows + 1] - begins
        width = int(lengths.max()) if compact else most or self.longest
        column = torch.arange(width, device=rows.device)
        mask = column < lengths.unsqueeze(1)  # b n
        packed = self.taken((begins.unsqueeze(1) + column).masked_fill(~mask, 0))
        tokens = (packed >> 1).masked_fill(~mask, self.pad)
        return Batch(
            tokens=tokens,
            mask=mask,
            segments=((column >= self.seconds[rows].unsqueeze(1)) & mask).long(),
            starts=(packed & 1).bool() | ~mask,
            fixed=torch.isin(tokens, self.specials) | ~mask,
            follows=self.follows[rows].long(),
            keys=self.keys(rows, rolls),
            hidden=self.hidden,
            ordinary=self.ordinary,
            room=0 if compact or most else self.room(len(rows)),
        )

    def taken(self, places: Tensor) -> Tensor:
        """The tokens at some places as they are kept, made unsigned: b n."""
        found = self.tokens[places.to(self.tokens.device)].to(places.device, non_blocking=True)
        return found.long() & (2 ** (8 * found.element_size()) - 1)

    def keys(self, rows: Tensor, rolls: Tensor | None) -> Tensor:
        """What each sequence's dice hang on, b."""
        if rolls is None:
            return rows
        whole = (rolls.double() * 2**BITS).long()  # b 2
        if not self.copies:
            return (whole[:, 0] << BITS) + whole[:, 1]
        return rows * self.copies + whole[:, 0] * self.copies // 2**BITS


def corpus_set(sequences: Sequences, tokenizer: Subwords, *, copies: int = 0) -> CorpusSet:
    """The set of kept sequences, on the CPU."""
    signed = np.dtype(f"<i{sequences.tokens.dtype.itemsize}")
    begins = np.zeros(len(sequences.lengths) + 1, dtype=np.int64)
    np.cumsum(sequences.lengths, out=begins[1:])
    special = tokenizer.specials
    return CorpusSet(
        device=torch.device("cpu"),
        tokens=torch.from_numpy(sequences.tokens.view(signed)),
        begins=torch.from_numpy(begins),
        seconds=torch.from_numpy(sequences.seconds),
        follows=torch.from_numpy(sequences.follows),
        specials=torch.tensor(sorted(special)),
        hidden=torch.tensor(tokenizer.mask),
        ordinary=torch.tensor([i for i in range(len(tokenizer)) if i not in special]),
        pad=tokenizer.pad,
        copies=copies,
    )
