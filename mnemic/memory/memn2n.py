"""MemN2N, the end-to-end memory network (Sukhbaatar et al. 2015).

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads (1), t tables, d width, r rolls.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import channel_weights
from mnemic.memory.append import Slots, age, append, no_slots
from mnemic.memory.contract import Reading, Written
from mnemic.memory.parts.hop_update import UPDATES, opened
from mnemic.recipe import build

ADD: Mapping[str, Any] = {"kind": "add"}
HIDDEN = -1e30  # the score of a slot that may not be seen


class MemN2N(nn.Module):
    """Append sentences; read softly over several hops: ``u ← u + Σ softmax(u·key) value``.

    The encoder yields one state a table for each text (b n t d).
    ``tying="adjacent"``: hop k reads keys from table k and values from table k + 1; the question
    is table 0. ``tying="layerwise"``: all hops share keys (table 0) and values (table 1), and the
    question is table 2. ``update`` says how a hop's query and what it found make the next query;
    the paper adds them, and puts a linear map before that with layer-wise tying.

    ``time`` adds a learned vector for each slot's age, counted back from the question (end of
    section 4.1). As in the authors' code, where it is a word, it is weighted like the last word
    of a sentence of ``longest`` words (``ramp``; leave it out where words have no places either).
    ``noise`` shifts ages while training as if up to that share of empty
    sentences stood between the real ones (RN); no slot is ever hidden by it.
    ``softmax=False`` reads with the bare scores: the linear start (LS) of section 4.2.
    ``spare`` lets the slots that are still free take part in the softmax as empty sentences, with
    a score and a value of 0, so that a hop may read nothing. The paper does not say so, but the
    authors' code does it, and without it the joint error is far from the published one.
    """

    def __init__(
        self,
        width: int,
        *,
        hops: int = 3,
        slots: int = 50,
        tying: Literal["adjacent", "layerwise"] = "adjacent",
        update: Mapping[str, Any] = ADD,
        time: bool = True,
        noise: float = 0.1,
        softmax: bool = True,
        spare: bool = True,
        ramp: bool = True,
        longest: int = 12,
    ) -> None:
        super().__init__()
        if hops < 1 or slots < 1 or not 0 <= noise <= 1:
            came = f"hops = {hops}, slots = {slots}, noise = {noise}"
            raise ValueError(f"memn2n takes hops and slots ≥ 1, noise from 0 to 1, not {came}")
        self.hops, self.slots, self.tying = hops, slots, tying
        self.noise, self.softmax, self.spare = noise, softmax, spare
        self.ties = tying == "adjacent"
        self.tables = hops + 1 if tying == "adjacent" else 3
        self.rolls = slots + ceil(noise * slots) + 1 if time and noise else 0
        timed = self.tables if tying == "adjacent" else 2  # the question has no time
        self.time = nn.ParameterList(torch.randn(slots, width) * 0.1 for _ in range(timed * time))
        behind = (longest - 1) / 2 if ramp else 0.0  # the last place, counted from the middle
        last = 1 + behind * channel_weights(width, longest)
        self.register_buffer("last", last, persistent=False)  # d
        self.last: Tensor
        self.update = build(UPDATES, update, width=width, hops=hops)

    def empty(self, batch: int, like: Tensor) -> Slots:
        return no_slots(batch, like)

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        return append(state, states, mask, most=self.slots)

    def read(
        self,
        state: Slots,
        query: Tensor,
        *,
        follow: Tensor | None = None,
        rolls: Tensor | None = None,
    ) -> Reading:
        """``query``: b m t d. ``follow`` (gold slots) is not used: nothing here is supervised."""
        contents = self.timed(state, rolls)  # t times b s d
        seen = state.mask.unsqueeze(1)  # b 1 s
        u = query[:, :, 0 if self.tying == "adjacent" else 2]  # b m d
        scores, weights, gates = [], [], []
        for hop in range(self.hops):
            key, value = (hop, hop + 1) if self.tying == "adjacent" else (0, 1)
            score = u @ contents[key].mT  # b m s
            weight = self.weigh(score, seen)
            gates.append(opened(self.update, u, hop))
            u = self.update(u, weight @ contents[value], hop)
            scores.append(score.masked_fill(~seen, HIDDEN))
            weights.append(weight)
        taken = [gate for gate in gates if gate is not None]
        weight, score = (torch.stack(part, 1).unsqueeze(2) for part in (weights, scores))
        return Reading(u, weight, score, gates=torch.stack(taken, 1) if taken else None)

    def timed(self, state: Slots, rolls: Tensor | None) -> list[Tensor]:
        """The slots' contents, one tensor a table, with the time of each slot added."""
        contents = list(state.states.unbind(2))  # b s d each
        if not self.time:
            return contents
        ages = age(state.mask).clamp(min=0)  # b s
        if rolls is not None and self.noise and self.training:
            ages = shift(ages, state.mask, rolls, self.noise)
        ages = ages.clamp(max=self.slots - 1)
        table = torch.cat(list(self.time), 1) * self.last.repeat(len(self.time))  # slots (t d)
        when = nn.functional.embedding(ages, table).chunk(len(self.time), -1)
        return [content + time for content, time in zip(contents, when)]

    def weigh(self, score: Tensor, seen: Tensor) -> Tensor:
        """b m s; what spare slots take is missing from the sum."""
        if not self.softmax:
            return score * seen
        score = score.masked_fill(~seen, HIDDEN)
        if self.spare:
            free = self.slots - seen.sum(-1, keepdim=True, dtype=score.dtype)  # b 1 1
            nothing = free.clamp(min=0).log().clamp(min=HIDDEN).expand(*score.shape[:-1], 1)
            score = torch.cat([score, nothing], -1)  # free slots of score 0 weigh as much as one
        return score.softmax(-1)[..., : seen.shape[-1]] * seen  # an empty memory gives zeros


def shift(ages: Tensor, mask: Tensor, rolls: Tensor, noise: float) -> Tensor:
    """Ages with up to ``noise`` · length gaps among them, each set of gaps equally likely.

    Of ``length + blanks`` places a random subset of ``length`` is kept, in order; ``blanks`` is
    uniform in 0 … ceil(noise · length). ``rolls``: b r uniform numbers.
    """
    length = mask.sum(1, keepdim=True)  # b 1
    most = torch.ceil(noise * length)
    blanks = (rolls[:, :1] * (most + 1)).floor().clamp(max=most)  # b 1
    keys = rolls[:, 1:]  # b p
    place = torch.arange(keys.shape[1], device=keys.device)  # p
    keys = keys.masked_fill(place >= length + blanks, 2.0)  # beyond the last place
    rank = keys.argsort(1).argsort(1)  # b p
    kept = torch.where(rank < length, place, keys.shape[1]).sort(1).values  # b p, ages in order
    return kept.gather(1, ages.clamp(max=keys.shape[1] - 1))
