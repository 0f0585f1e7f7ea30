"""The working memory network's storage and attention (Pavez et al. 2018).

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads, d width.
"""

from math import sqrt

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import Cell, glorot
from mnemic.memory.append import Slots, age, append, no_slots
from mnemic.memory.contract import Reading, Written

HIDDEN = -1e30  # the score of a slot that may not be seen


class WMN(nn.Module):
    """Append sentences; each hop reads with several heads, and all hops' outputs are kept.

    ``o_i = W_i [head_1; …; head_h]``, ``head_j = Σ_s softmax_s(tanh(U_ij m_s) · q_i / √d) m_s``,
    ``q_i = f(o_{i-1})`` with the question as o_0: the question is forgotten after the first hop.
    The outputs o_1 … o_k are the working buffer (``Reading.buffer``), for ``respond.relation``;
    what was ``found`` is the last of them, for any other response.

    As in the authors' code, and unlike a Transformer's, a head has the whole width and projects
    its keys alone, so ``heads`` need not divide the width; each hop has its own heads, and f, two
    linear layers through half the width, is shared. ``tanh=False`` leaves the keys linear, as
    they are in the paper.

    ``time`` reads the age of a slot as the last word of its sentence. The authors put that word
    into the sentence; here the sentence's vector is known before its age is, so the last step has
    weights of its own. ``spare``, as in `MemN2N`, lets free slots be read: the authors' code holds
    empty sentences there, whose vector (``blank``) is learned.
    """

    tables = 1
    rolls = 0
    ties = False

    def __init__(
        self,
        width: int,
        *,
        hops: int = 4,
        heads: int = 8,
        slots: int = 30,
        time: bool = True,
        spare: bool = True,
        tanh: bool = True,
    ) -> None:
        super().__init__()
        if hops < 1 or heads < 1 or slots < 1:
            came = f"hops = {hops}, heads = {heads}, slots = {slots}"
            raise ValueError(f"wmn takes hops, heads and slots ≥ 1, not {came}")
        self.hops, self.heads, self.slots, self.tanh = hops, heads, slots, tanh
        self.keys = nn.ModuleList(
            glorot(nn.Linear(width, heads * width, bias=False), parts=heads) for _ in range(hops)
        )
        self.join = nn.ModuleList(
            glorot(nn.Linear(heads * width, width, bias=False)) for _ in range(hops)
        )
        half = max(width // 2, 1)
        self.transition = nn.Sequential(
            glorot(nn.Linear(width, half)), glorot(nn.Linear(half, width))
        )
        self.time = TimeStep(width, slots) if time else None
        self.blank = nn.Parameter(torch.randn(width) * 0.1) if spare else None

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
        """``query``: b m 1 d. ``follow`` (gold slots) is not used: nothing here is supervised."""
        contents, room = self.contents(state)  # b s d, b s; with ``spare`` one slot more
        output = query[:, :, 0]  # b m d
        scores, weights, buffer = [], [], []
        for key, join in zip(self.keys, self.join):
            score = self.score(key(contents), self.transition(output)) + room[:, None, None]
            weight = score.softmax(-1) * (room > HIDDEN)[:, None, None]  # nothing to see: zeros
            heads = weight.flatten(1, 2) @ contents  # b (h m) d
            heads = heads.unflatten(1, weight.shape[1:3]).transpose(1, 2)  # b m h d
            output = join(heads.flatten(2))  # b m d
            scores.append(score)
            weights.append(weight)
            buffer.append(output)
        real = state.mask.shape[1]
        weight, score = (torch.stack(part, 1)[..., :real] for part in (weights, scores))
        return Reading(output, weight, score, buffer=torch.stack(buffer, 2))

    def score(self, keys: Tensor, asked: Tensor) -> Tensor:
        """``keys`` b s (h d), ``asked`` b m d → b h m s."""
        keys = (keys.tanh() if self.tanh else keys).unflatten(-1, (self.heads, -1))  # b s h d
        score = keys.flatten(1, 2) @ asked.mT / sqrt(asked.shape[-1])  # b (s h) m
        return score.unflatten(1, keys.shape[1:3]).permute(0, 2, 3, 1)

    def contents(self, state: Slots) -> tuple[Tensor, Tensor]:
        """What each slot holds (b s d) and what its score starts from (b s).

        The free slots are all alike, so one stands for them: n equal slots weigh as much as one
        with log n more.
        """
        held = state.states[:, :, 0]  # b s d
        if self.time is not None:
            held = self.time(held, age(state.mask).clamp(0, self.slots - 1))
        room = torch.zeros_like(held[..., 0]).masked_fill(~state.mask, HIDDEN)
        if self.blank is not None:
            free = self.slots - state.mask.sum(1, keepdim=True, dtype=held.dtype)  # b 1
            room = torch.cat([room, free.log().clamp(min=HIDDEN)], 1)
            held = torch.cat([held, self.blank.expand(held.shape[0], 1, -1)], 1)
        return held, room


class TimeStep(nn.Module):
    """One more GRU step over a sentence's vector, whose input is a learned vector for its age."""

    def __init__(self, width: int, slots: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(slots, width) * 0.1)
        self.cell = Cell(width, width)

    def forward(self, held: Tensor, ages: Tensor) -> Tensor:
        """``held`` b s d, ``ages`` b s → b s d."""
        given = self.cell.project(self.table)  # s 3 d
        when = nn.functional.embedding(ages, given.flatten(1))  # b s 3d
        return self.cell.step(when.unflatten(-1, given.shape[1:]), held)
