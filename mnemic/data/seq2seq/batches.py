"""Texts with the texts that answer them, as tensors: all tokens in one row, nothing for padding.

Shapes: e pairs of the set, b pairs of a batch, n tokens of a source, m tokens of an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from mnemic.data.text_tasks.examples import Labelled, TextError
from mnemic.models import IGNORE, Windows
from mnemic.text import Subwords


class Batch(NamedTuple):
    """What a network reads (the answer, too, one word behind), and what it should have said."""

    inputs: Windows
    targets: Tensor  # b m, IGNORE behind the end


class Ragged(NamedTuple):
    """Texts of different lengths, one after the other."""

    ids: Tensor  # all of them
    begins: Tensor  # e+1

    @property
    def lengths(self) -> Tensor:
        return self.begins[1:] - self.begins[:-1]

    def take(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Some texts (b) side by side, padded with 0, and which tokens are real: b n each."""
        first, lengths = self.begins[rows].unsqueeze(1), self.lengths[rows].unsqueeze(1)
        longest = int(lengths.max()) if len(rows) else 0
        column = torch.arange(max(longest, 1), device=rows.device)
        mask = column < lengths
        return self.ids[(first + column).masked_fill(~mask, 0)].masked_fill(~mask, 0), mask


@dataclass(frozen=True, kw_only=True)
class SequenceSet:
    """A set of pairs on one device, ready to be drawn from."""

    kind: ClassVar[str] = "sequences"
    metric: ClassVar[str] = "exact"  # what the set is judged by
    unknown: ClassVar[int] = 0  # a text can be said even if training never had it
    rolls: ClassVar[int] = 0  # nothing is drawn: a pair is read as it is
    examples: Sequence[Labelled]
    tokenizer: Subwords
    source: Ragged
    answer: Ragged  # each between the token that begins and the one that ends a text

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def device(self) -> torch.device:
        return self.source.ids.device

    @property
    def lengths(self) -> Tensor:
        return self.source.lengths + self.answer.lengths

    @property
    def count(self) -> Tensor:
        """Tokens seen and tokens there are, e 2: the same, as nothing is cut off."""
        return self.source.lengths.unsqueeze(1).expand(-1, 2)

    def to(self, device: torch.device | str) -> "SequenceSet":
        source, answer = (
            Ragged(*(part.to(device) for part in own)) for own in (self.source, self.answer)
        )
        return replace(self, source=source, answer=answer)

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Batch:
        """The pairs in ``rows`` (b), as wide as the longest of them."""
        said, real = self.answer.take(rows)
        targets = said[:, 1:].masked_fill(~real[:, 1:], IGNORE)
        return Batch(self.inputs(rows)._replace(said=said[:, :-1]), targets)

    def inputs(self, rows: Tensor) -> Windows:
        """The sources alone, for a network that speaks."""
        tokens, mask = self.source.take(rows)
        return Windows(tokens, mask, torch.zeros_like(tokens), mask)


def sequence_set(examples: Sequence[Labelled], tokenizer: Subwords, longest: int) -> SequenceSet:
    """Number pairs; one with more than ``longest`` tokens on a side is refused, not cut."""

    def numbered(texts: list[str]) -> Ragged:
        framed = [[tokenizer.cls, *ids, tokenizer.sep] for ids in tokenizer.encode_all(texts)]
        for text, ids in zip(texts, framed):
            if len(ids) > longest:
                raise TextError(
                    f"{text[:40]!r} has {len(ids)} tokens with its two ends, more than "
                    f"data.length = {longest}; shorten it, or train with a larger length"
                )
        return ragged(framed)

    source, answer = (
        numbered(side) for side in ([own.text for own in examples], [own.label for own in examples])
    )
    return SequenceSet(examples=examples, tokenizer=tokenizer, source=source, answer=answer)


def ragged(texts: Sequence[list[int]]) -> Ragged:
    ids = torch.tensor([number for text in texts for number in text], dtype=torch.long)
    return Ragged(ids, torch.tensor([0, *accumulate(map(len, texts))]))
