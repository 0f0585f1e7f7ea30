"""A memory that keeps what matters: whole inputs, those of highest worth, each with its time.

Shapes: b batch, g segments, n inputs, s slots, m queries, d width.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.positions import SinusoidalPositions
from mnemic.memory.append import age
from mnemic.memory.contract import Reading, Written
from mnemic.memory.parts.controller import CONTROLLER, CONTROLLERS, Judged
from mnemic.memory.parts.hops import Hops
from mnemic.recipe import ConfigError, build


class Chosen(NamedTuple):
    """One input a slot, in the order they were told; behind them slots that are not real."""

    slots: Tensor  # b s d
    mask: Tensor  # b s
    odds: Tensor  # b s, log-odds of u: what is kept is decided by it
    sources: Tensor  # b s, which input, counted from the first ever written: its time
    hidden: Tensor  # b 1 c, the controller's
    told: Tensor  # b

    @property
    def origins(self) -> tuple[Tensor, Tensor]:
        """The one source of each slot (-1: none) and its share of it, which is all: b s 1 each."""
        sources = torch.where(self.mask, self.sources, -1).unsqueeze(-1)
        return sources, (sources >= 0).to(self.slots.dtype)

    def forget(self, first: int, end: int) -> "Chosen":
        """Clear the slots of the inputs from ``first`` to below ``end``; reset the controller."""
        gone = (self.sources >= first) & (self.sources < end)
        return self._replace(
            slots=self.slots.masked_fill(gone.unsqueeze(-1), 0.0),
            mask=self.mask & ~gone,
            odds=self.odds.masked_fill(gone, 0.0),
            sources=self.sources.masked_fill(gone, -1),
            hidden=torch.zeros_like(self.hidden),
        )


class Keeps(nn.Module):
    """Keep the ``slots`` inputs of highest u as they are; read them with log u added.

    The choice is hard, and nothing is blended: a slot is one input, so its source is exact. The
    gradient reaches u through the scores, ``q · k + log u``: an input that a read wants is worth
    more, one that draws attention away from it is worth less. Of equally good ones the newer stay.
    What was written in two pieces is what was written at once. Below ``least`` nothing is kept,
    even where there is room.

    ``time`` adds where a slot stands among those that are kept, counted back from the newest: once
    the controller knows what is of no use, the same however much of that was told in between.
    ``alike``: as for ``Hops``.
    """

    tables = 1
    rolls = 0
    ties = False
    cuts = False  # segments may be written at once

    def __init__(
        self,
        width: int,
        *,
        slots: int = 160,
        least: float = 0.0,
        hops: int = 3,
        heads: int = 1,
        time: bool = True,
        alike: bool = False,
        controller: Mapping[str, Any] = CONTROLLER,
    ) -> None:
        super().__init__()
        if slots < 1 or not 0 <= least < 1:
            raise ConfigError(
                f"keeps takes slots ≥ 1 and 0 ≤ least < 1, not {slots = }, {least = }"
            )
        self.slots, self.least = slots, least
        self.controller = build(CONTROLLERS, controller, width=width)
        self.hops = Hops(width, hops=hops, heads=heads, alike=alike)
        self.waves = SinusoidalPositions(width + width % 2) if time else None
        self.time = nn.Linear(width, width, bias=False) if time else None

    def empty(self, batch: int, like: Tensor) -> Chosen:
        slots = like.new_zeros(batch, 0, like.shape[-1])
        return Chosen(
            slots,
            slots.new_zeros(slots.shape[:2], dtype=torch.bool),
            slots.new_zeros(slots.shape[:2]),
            slots.new_zeros(slots.shape[:2], dtype=torch.long),
            self.controller.empty(batch, like),
            like.new_zeros(batch, dtype=torch.long),
        )

    def ahead(
        self, state: Chosen, states: Tensor, mask: Tensor, only: Tensor | None = None
    ) -> Iterator[Judged]:
        """What the controller thinks of segments to come, at once: ``states`` b g n d, b g n."""
        every = self.controller.each(states, mask, state.hidden)
        return map(Judged._make, zip(*(part.unbind(1) for part in every)))

    def write(
        self,
        state: Chosen,
        states: Tensor,
        mask: Tensor,
        only: Tensor | None = None,
        choice: Judged | None = None,
    ) -> Written:
        """``states`` b n 1 d. ``only`` (b n): these may be kept; the controller reads all.

        ``choice`` is what ``ahead`` has made of them, if it was asked.
        """
        told = states[:, :, 0]
        if choice is None:
            choice = self.controller(told, mask, state.hidden)
        odds, hidden = choice
        may = mask if only is None else mask & only
        may = may & (torch.sigmoid(odds) >= self.least)
        number = state.told.unsqueeze(1) + mask.long().cumsum(1) - 1  # b n
        new = (told, may, odds, torch.where(may, number, -1))
        parts = [torch.cat(pair, 1) for pair in zip(state[:4], new)]
        slots, real, worth, sources = rows_of(parts, best(parts[1], parts[2], self.slots))
        kept = Chosen(slots, real, worth, sources, hidden, state.told + mask.sum(1))
        same = (number.unsqueeze(2) == kept.sources.unsqueeze(1)) & may.unsqueeze(2)  # b n s
        return Written(kept, same.to(told.dtype), stored=odds)

    def read(
        self,
        state: Chosen,
        query: Tensor,
        *,
        follow: Tensor | None = None,
        rolls: Tensor | None = None,
    ) -> Reading:
        """``query``: b m 1 d. ``follow`` (gold slots) is not used: reads are soft."""
        contents = state.slots
        if self.waves is not None and self.time is not None:
            when = age(state.mask).clamp(min=0)
            waves = self.waves(when, positions=when)[..., : contents.shape[-1]]
            contents = contents + self.time(waves.to(contents.dtype))
        worth = nn.functional.logsigmoid(state.odds.float())
        return self.hops(contents, state.mask, query[:, :, 0], worth)


def best(mask: Tensor, odds: Tensor, most: int) -> Tensor:
    """The ``most`` real slots of highest odds of every row (b most), in their order.

    Behind them, where there are fewer, come some that are not real.
    """
    chosen = mask
    if mask.shape[1] > most:
        newest = odds.detach().masked_fill(~mask, -torch.inf).flip(1)
        rank = newest.argsort(dim=1, descending=True, stable=True).argsort(dim=1).flip(1)
        chosen = mask & (rank < most)
    return chosen.long().argsort(dim=1, descending=True, stable=True)[:, :most]


def rows_of(parts: list[Tensor], order: Tensor) -> list[Tensor]:
    """Some slots (b most) of every part, b s …."""
    return [
        part.gather(
            1, order.view(*order.shape, *[1] * (part.dim() - 2)).expand(-1, -1, *part.shape[2:])
        )
        for part in parts
    ]
