"""BERT-MASS's own memory: slots that the chosen tokens of each segment are blended into.

Shapes: b batch, g segments, n inputs, c chosen inputs, s slots, r sources a slot, m queries,
d width.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory.contract import Reading, Written
from mnemic.memory.parts.controller import CONTROLLER, CONTROLLERS
from mnemic.memory.parts.hops import HIDDEN, Hops
from mnemic.memory.parts.sources import Sources, added, cleared, no_sources
from mnemic.recipe import ConfigError, build

LARGEST = 1 - 1e-6  # of a weight: what is left of a slot has a logarithm


class Blended(NamedTuple):
    """Slots, where each came from, and the controller's view of what was read."""

    slots: Tensor  # b s d
    mask: Tensor  # b s, True = something was written there
    sources: Tensor  # b s r, numbers of inputs, counted from the first ever written; -1 = none
    shares: Tensor  # b s r, how much of the slot each of them is
    lost: Tensor  # b s 2, first and last number of those there was no room to list
    hidden: Tensor  # b 1 c, the controller's
    told: Tensor  # b, how many inputs were ever written or passed over

    @property
    def origins(self) -> tuple[Tensor, Tensor]:
        """The sources of each slot (-1: none) and their shares of it, b s r each."""
        return self.sources, self.shares

    def forget(self, first: int, end: int) -> "Blended":
        """Clear every slot that an input from ``first`` to below ``end`` went into.

        The controller, whose state has read them too, begins anew. Exact forgetting is reading
        again without them.
        """
        kept = Sources(self.sources, self.shares, self.lost)
        gone = kept.hold(first, end)  # b s
        return self._replace(
            slots=self.slots.masked_fill(gone.unsqueeze(-1), 0.0),
            mask=self.mask & ~gone,
            **cleared(kept, gone)._asdict(),
            hidden=torch.zeros_like(self.hidden),
        )


class Choice(NamedTuple):
    """What of a segment is written. The slots have no say in it: only in where it goes."""

    odds: Tensor  # b n, of all inputs
    hidden: Tensor  # b 1 c, the controller's after them
    told: Tensor  # b, how many of them are real
    u: Tensor  # b c, how much of each chosen one
    places: Tensor  # b c, where they stand
    numbers: Tensor  # b c, the same among the real ones
    value: Tensor  # b c d, what is written of them
    leans: Tensor  # b c s, to which addresses they go, whatever the slots hold


class BertMass(nn.Module):
    """Write what the controller chooses to the slots it resembles; read over several hops.

    Of a segment (one call of ``write``) the ``most`` inputs of highest u are chosen, and none below
    ``least``. Each goes to its ``spread`` best slots by content, a slot's score being ``a_s · W z +
    v · m_s`` and ``fresh`` more while it is empty. A slot moves to the mean of what came to it, x,
    ``m ← m + g (x − m)``, as far as its gate ``g = σ(G [m; x]) (1 − Π (1 − u α))`` opens; *all
    other slots are copied bit for bit*. An empty slot is zero, so a slot is exactly Σ share · v
    over its sources.

    The chosen of one segment are written at once: where a text is cut is part of how it is read.
    """

    tables = 1
    rolls = 0
    ties = False
    cuts = True  # where a text is cut is part of how it is read

    def __init__(
        self,
        width: int,
        *,
        slots: int = 32,
        most: int = 16,
        least: float = 0.02,
        spread: int = 2,
        fresh: float = 1.0,
        sources: int = 8,
        hops: int = 2,
        heads: int = 1,
        controller: Mapping[str, Any] = CONTROLLER,
    ) -> None:
        super().__init__()
        if min(slots, most, spread, sources) < 1 or not 0 <= least < 1:
            raise ConfigError(
                "bert-mass takes slots, most, spread and sources ≥ 1 and 0 ≤ least < 1, not "
                f"{slots = }, {most = }, {spread = }, {sources = }, {least = }"
            )
        self.slots, self.most, self.least = slots, most, least
        self.spread, self.fresh, self.sources = min(spread, slots), fresh, sources
        self.controller = build(CONTROLLERS, controller, width=width)
        self.ask, self.value = (nn.Linear(width, width) for _ in range(2))
        self.addresses = nn.Parameter(torch.randn(slots, width) * width**-0.5)
        self.gate = nn.Linear(2 * width, 1)
        nn.init.constant_(self.gate.bias, 2.0)
        self.hops = Hops(width, hops=hops, heads=heads)

    def empty(self, batch: int, like: Tensor) -> Blended:
        slots = like.new_zeros(batch, self.slots, like.shape[-1])
        listed = no_sources(batch, self.slots, self.sources, like)
        return Blended(
            slots,
            torch.zeros_like(slots[..., 0], dtype=torch.bool),
            *listed,
            self.controller.empty(batch, like),
            like.new_zeros(batch, dtype=torch.long),
        )

    def ahead(
        self, state: Blended, states: Tensor, mask: Tensor, only: Tensor | None = None
    ) -> Iterator[Choice]:
        """The choices of segments to come, ``states`` b g n d, ``mask`` b g n, ``only`` b g n.

        All at once, which takes a GPU a fraction of the time; written they are one by one.
        """
        odds, hidden = self.controller.each(states, mask, state.hidden)
        u, places = self.chosen(odds, mask if only is None else mask & only)  # b g c
        z = states.gather(2, places.unsqueeze(-1).expand(*places.shape, states.shape[-1]))
        numbers = (mask.long().cumsum(2) - 1).gather(2, places)
        leans = self.ask(z) @ self.addresses.mT  # b g c s
        every = Choice(odds, hidden, mask.sum(2), u, places, numbers, self.value(z), leans)
        return map(Choice._make, zip(*(part.unbind(1) for part in every)))

    def write(
        self,
        state: Blended,
        states: Tensor,
        mask: Tensor,
        only: Tensor | None = None,
        choice: Choice | None = None,
    ) -> Written:
        """``states`` b n 1 d. ``only`` (b n): these may be written; the controller reads all.

        ``choice`` is what ``ahead`` has made of them, if it was asked.
        """
        if choice is None:
            may = None if only is None else only.unsqueeze(1)
            choice = next(self.ahead(state, states.transpose(1, 2), mask.unsqueeze(1), may))
        weights = choice.u.unsqueeze(-1) * self.addressed(state, choice)  # b c s
        slots, gate, touched = self.blended(state.slots, choice.value, weights)
        with torch.no_grad():
            total = weights.sum(1, keepdim=True)
            shares = gate.unsqueeze(1) * weights / total.clamp(min=torch.finfo(total.dtype).tiny)
            kept = Sources(state.sources, state.shares, state.lost)
            kept = added(kept, state.told.unsqueeze(1) + choice.numbers, shares, 1 - gate)
        told = state.told + choice.told
        new = Blended(slots, state.mask | touched, *kept, choice.hidden, told)
        wide = choice.places.unsqueeze(-1).expand_as(weights)
        blank = weights.new_zeros(*mask.shape, self.slots)
        put = blank.scatter(1, wide, shares)
        return Written(new, put, blank.scatter(1, wide, weights), choice.odds)

    def chosen(self, odds: Tensor, may: Tensor) -> tuple[Tensor, Tensor]:
        """The highest u of each row and where they stand (… c); 0 where there are fewer."""
        u = torch.sigmoid(odds)
        worth = u.masked_fill(~may | (u < self.least), -1.0)
        best, places = worth.topk(min(self.most, may.shape[-1]), dim=-1)
        return best.clamp(min=0.0, max=LARGEST), places

    def addressed(self, state: Blended, choice: Choice) -> Tensor:
        """How each chosen input is spread over the slots, by content: b c s, one in all."""
        value = choice.value
        score = (choice.leans + value @ state.slots.mT).float() * value.shape[-1] ** -0.5  # b c s
        score = score + self.fresh * (~state.mask).unsqueeze(1).to(score.dtype)
        least = score.topk(self.spread, dim=-1).values[..., -1:]
        return score.masked_fill(score < least, HIDDEN).softmax(-1).to(choice.u.dtype)

    def blended(
        self, slots: Tensor, value: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The slots after the write (b s d), how far each one's gate opened and whether, b s."""
        total = weights.sum(1)  # b s
        touched = total > 0
        mean = (weights.mT @ value) / total.clamp(min=1e-12).unsqueeze(-1)  # b s d
        lean = self.gate(torch.cat([slots, mean.to(slots.dtype)], -1)).squeeze(-1)
        amount = 1 - torch.log1p(-weights.clamp(max=LARGEST)).sum(1).exp()
        gate = torch.sigmoid(lean) * amount * touched
        moved = slots + gate.unsqueeze(-1) * (mean - slots)
        return torch.where(touched.unsqueeze(-1), moved.to(slots.dtype), slots), gate, touched

    def read(
        self,
        state: Blended,
        query: Tensor,
        *,
        follow: Tensor | None = None,
        rolls: Tensor | None = None,
    ) -> Reading:
        """``query``: b m 1 d. ``follow`` (gold slots) is not used: reads are soft."""
        return self.hops(state.slots, state.mask, query[:, :, 0])
