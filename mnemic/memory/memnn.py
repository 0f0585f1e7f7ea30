"""MemNN, the first memory network: hard reads, one fact a hop (Weston et al. 2015a and 2015b).

a: Memory Networks, arXiv:1410.3916. b: the bAbI tasks, arXiv:1502.05698, with AM, NG and NL.

Shapes: b batch, n inputs, m queries, s slots, c candidates (the slots, then "nothing"), k hops,
h heads (2 with write times, else 1), t tables (5), f facts, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.append import Slots, no_slots
from mnemic.memory.contract import Reading, Written
from mnemic.memory.parts.contest import Pairs, Times, against, contest, untimed
from mnemic.memory.parts.forget import FORGETS
from mnemic.memory.parts.match import MATCHES
from mnemic.recipe import build

LINEAR: Mapping[str, Any] = {"kind": "linear"}
OLDEST: Mapping[str, Any] = {"kind": "oldest"}
ASKED, FACT, CANDIDATE, ASKED_R, FACT_R = range(5)  # the tables: dictionaries of O, then of R
HIDDEN = -1e30  # the score of a slot that may not be seen


class MemNN(nn.Module):
    """Append sentences; at each hop read the one that matches the question and the facts so far.

    ``o₁ = argmax s_O(x, mᵢ)``, ``o₂ = argmax s_O([x, m_o₁], mᵢ)`` … (a, eqs. 2 and 3), and
    ``found`` is UΦ([x, m_o₁, …]) in the dictionaries of R. Words of the question, of facts found
    and of candidates have vectors of their own: that is what the encoder's tables are.
    ``match`` is the embedding E in ``s = E(x)·E(y)``; another than ``linear`` is NL of b.
    ``time`` decides between two memories by their time of writing, too (``contest``).
    ``stop`` adds the candidate "nothing": once it is chosen, no hop reads any more (AM of b).
    ``forget`` is H: which sentences leave when all ``slots`` are full (``memory.parts.forget``).
    ``order`` gives each hop a gain a channel, 1 ± ``order`` at first, for the fact it found: then
    [x, m_o₁, m_o₂] is not [x, m_o₂, m_o₁]. The papers have no such thing (0: nor have we).

    Where we differ: time features are added behind E, not before it, and "nothing" has no time.

    ``scores`` are relative to what was read, whose own score is 0; ``nothing`` likewise.
    """

    tables, rolls, ties = 5, 0, False

    def __init__(
        self,
        width: int,
        *,
        hops: int = 2,
        slots: int = 50,
        time: bool = True,
        stop: bool = False,
        match: Mapping[str, Any] = LINEAR,
        order: float = 0.0,
        forget: Mapping[str, Any] = OLDEST,
    ) -> None:
        super().__init__()
        if hops < 1 or slots < 1:
            raise ValueError(f"memnn takes hops and slots ≥ 1, not {hops = }, {slots = }")
        self.hops, self.slots = hops, slots
        self.match = build(MATCHES, match, width=width)
        self.times = Times(width) if time else None
        self.forget = build(FORGETS, forget, width=width)
        self.gains = nn.Parameter(1 + order * torch.randn(2, hops, width)) if order else None
        self.nothing = nn.Parameter(torch.randn(width) * 0.1) if stop else None

    def empty(self, batch: int, like: Tensor) -> Slots:
        return no_slots(batch, like)

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        return self.forget.write(state, states, mask, most=self.slots)

    def read(
        self,
        state: Slots,
        query: Tensor,
        *,
        follow: Tensor | None = None,
        rolls: Tensor | None = None,
    ) -> Reading:
        """``query``: b m 5 d. ``follow`` (b m f): the slot each hop is to read instead of its own.

        -1 or less is "nothing" for a memory that can stop; any other reads its last fact again. A
        followed reading that can stop ends one hop after the longest chain of facts.
        """
        candidates, seen = self.candidates(state, query)  # b c d, b m c
        place = torch.arange(seen.shape[-1] - 1, device=seen.device)  # s
        known, said = query[:, :, ASKED], query[:, :, ASKED_R]  # b m d
        none = torch.full(seen.shape[:2], seen.shape[-1] - 1, device=seen.device)  # b m
        last = none
        scores, weights = [], []
        for hop in range(self.most(follow)):
            pairs = self.compare(self.match(known), candidates, last)
            chosen = last if self.nothing is None else none
            if self.free(follow, hop):
                chosen = self.choose(pairs, seen)
            if follow is not None and hop < follow.shape[-1]:
                chosen = torch.where(follow[..., hop] >= 0, follow[..., hop], chosen)
            if self.nothing is not None and hop:
                chosen = torch.where(last == none, none, chosen)  # once and for all
            weight = (chosen.unsqueeze(-1) == place).to(known.dtype)  # b m s
            known = known + self.gain(0, hop) * (weight @ state.states[:, :, FACT])
            said = said + self.gain(1, hop) * (weight @ state.states[:, :, FACT_R])
            scores.append(against(pairs, chosen).masked_fill(~seen.unsqueeze(1), HIDDEN))
            weights.append(weight)
            last = chosen
        heads = 1 if self.times is None else 2
        score = torch.stack(scores, 1)[:, :, :heads]  # b k h m c
        weight = torch.stack(weights, 1).unsqueeze(2).expand(-1, -1, heads, -1, -1)
        nothing = None if self.nothing is None else score[..., -1]
        worth = self.forget.worth(state.states)
        if worth is not None:
            worth = worth.masked_fill(~state.mask, HIDDEN)  # b s
        return Reading(said, weight, score[..., :-1], nothing=nothing, worth=worth)

    def gain(self, response: int, hop: int) -> Tensor | float:
        """What a fact found at a hop is multiplied with (d), for O (0) or for R (1)."""
        return 1.0 if self.gains is None else self.gains[response, hop]

    def candidates(self, state: Slots, query: Tensor) -> tuple[Tensor, Tensor]:
        """E of every slot and of "nothing" (b c d), and which of them may be chosen (b m c)."""
        slots = state.states[:, :, CANDIDATE]  # b s d
        none = slots.new_zeros(slots.shape[-1]) if self.nothing is None else self.nothing
        whole = torch.cat([slots, none.expand(slots.shape[0], 1, -1)], 1)
        may = state.mask.new_full((slots.shape[0], 1), self.nothing is not None)
        seen = torch.cat([state.mask, may], 1).unsqueeze(1)  # b 1 c
        return self.match(whole), seen.expand(*query.shape[:2], -1)

    def compare(self, query: Tensor, candidates: Tensor, last: Tensor) -> Pairs:
        """s_O of the query (b m d) with all candidates, by pairs if writing has times."""
        score = query @ candidates.mT  # b m c
        return untimed(score) if self.times is None else self.times(query, score, last)

    def choose(self, pairs: Pairs, seen: Tensor) -> Tensor:
        """The place of the best candidate (b m)."""
        if self.times is not None:
            return contest(pairs, seen)
        best = pairs.first.masked_fill(~seen, HIDDEN).argmax(-1)
        return torch.where(seen.any(-1), best, seen.shape[-1] - 1)

    def free(self, follow: Tensor | None, hop: int) -> bool:
        """Whether a hop may need to choose by itself."""
        return follow is None or (self.nothing is None and not hop)

    def most(self, follow: Tensor | None) -> int:
        """How many hops there can be."""
        if follow is None or self.nothing is None:
            return self.hops
        return min(self.hops, follow.shape[-1] + 1)
