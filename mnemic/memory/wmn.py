"""WMN, the working memory network (Pavez et al. 2018): its memory and attention.

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads, d width.
"""

from math import sqrt

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import GRUCell, init_glorot
from mnemic.memory.append import AppendMemory, Slots, slot_ages
from mnemic.memory.contract import FREE_SLOTS, MASKED_SCORE, Reading, ReadLabels
from mnemic.recipe import check_repeats


class WMN(AppendMemory):
    """Append sentences; read over several multi-head hops and keep all hops' outputs.

    ``o_i = W_i [head_1; …; head_h]``, ``head_j = Σ_s softmax_s(tanh(U_ij m_s) · q_i / √d) m_s``,
    ``q_i = f(o_{i-1})`` with the question as o_0: the question is not used after the first hop.
    The outputs o_1 … o_k are the working buffer (``Reading.buffer``), for ``respond.relation``;
    ``found`` is the last of them, for any other response.

    As in the authors' code, and unlike in a Transformer, a head has the whole width and projects
    only its keys, so ``heads`` need not divide the width; each hop has its own heads, and f, two
    linear layers through half the width, is shared. ``tanh=False`` leaves the keys linear, as in
    the paper.

    ``time`` reads the age of a slot as the last word of its sentence. The authors put that word
    into the sentence; here a sentence is encoded before its age is known, so the last step has
    its own weights. ``free_slots``, as in `MemN2N`, lets free slots be read: the authors' code
    holds empty sentences there, whose vector (``blank``) is learned.
    """

    labels = ReadLabels(
        "hop {}", "How much of each sentence was read at each hop by all heads; a column adds up to 1.", FREE_SLOTS
    )

    def __init__(
        self,
        width: int,
        *,
        hops: int = 4,
        heads: int = 8,
        slots: int = 30,
        time: bool = True,
        free_slots: bool = True,
        tanh: bool = True,
    ) -> None:
        super().__init__()
        check_repeats(hops=hops)
        if hops < 1 or heads < 1 or slots < 1:
            raise ValueError(f"wmn takes hops, heads and slots ≥ 1, not {hops = }, {heads = }, {slots = }")
        self.hops, self.heads, self.num_slots, self.tanh = hops, heads, slots, tanh
        self.keys = nn.ModuleList(
            init_glorot(nn.Linear(width, heads * width, bias=False), num_blocks=heads) for _ in range(hops)
        )
        self.join = nn.ModuleList(init_glorot(nn.Linear(heads * width, width, bias=False)) for _ in range(hops))
        half = max(width // 2, 1)
        self.transition = nn.Sequential(init_glorot(nn.Linear(width, half)), init_glorot(nn.Linear(half, width)))
        self.time = AgeStep(width, slots) if time else None
        self.blank = nn.Parameter(torch.randn(width) * 0.1) if free_slots else None

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 1 d); soft reads do not use ``teacher_slots``."""
        # b s d, b s; with ``free_slots`` one slot more
        contents, score_offset = self.slot_contents(state)
        output = query[:, :, 0]  # b m d
        scores, weights, buffer = [], [], []
        for key, join in zip(self.keys, self.join):
            score = self.score_slots(key(contents), self.transition(output)) + score_offset[:, None, None]
            # An empty memory gives zeros.
            weight = score.softmax(-1) * (score_offset > MASKED_SCORE)[:, None, None]
            heads = weight.flatten(1, 2) @ contents  # b (h m) d
            heads = heads.unflatten(1, weight.shape[1:3]).transpose(1, 2)  # b m h d
            output = join(heads.flatten(2))  # b m d
            scores.append(score)
            weights.append(weight)
            buffer.append(output)
        num_slots = state.mask.shape[1]
        weight, score = (torch.stack(tensors, 1)[..., :num_slots] for tensors in (weights, scores))
        return Reading(output, weight, score, buffer=torch.stack(buffer, 2))

    def score_slots(self, keys: Tensor, query: Tensor) -> Tensor:
        """Score slots against queries, b h m s.

        ``keys`` b s (h d), ``query`` b m d.
        """
        keys = (keys.tanh() if self.tanh else keys).unflatten(-1, (self.heads, -1))  # b s h d
        scores = keys.flatten(1, 2) @ query.mT / sqrt(query.shape[-1])  # b (s h) m
        return scores.unflatten(1, keys.shape[1:3]).permute(0, 2, 3, 1)

    def slot_contents(self, state: Slots) -> tuple[Tensor, Tensor]:
        """Return the slots' contents (b s d) and an offset of their scores (b s).

        All free slots are equal, so one represents them: n equal slots have the weight of one
        slot whose score is log n higher.
        """
        contents = state.states[:, :, 0]  # b s d
        if self.time is not None:
            contents = self.time(contents, slot_ages(state.mask).clamp(0, self.num_slots - 1))
        score_offset = torch.zeros_like(contents[..., 0]).masked_fill(~state.mask, MASKED_SCORE)
        if self.blank is not None:
            num_free = self.num_slots - state.mask.sum(1, keepdim=True, dtype=contents.dtype)  # b 1
            score_offset = torch.cat([score_offset, num_free.log().clamp(min=MASKED_SCORE)], 1)
            contents = torch.cat([contents, self.blank.expand(contents.shape[0], 1, -1)], 1)
        return contents, score_offset


class AgeStep(nn.Module):
    """Apply one GRU step to a sentence's vector, with its learned age vector as input."""

    def __init__(self, width: int, slots: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(slots, width) * 0.1)
        self.cell = GRUCell(width, width)

    def forward(self, contents: Tensor, ages: Tensor) -> Tensor:
        """Update ``contents`` (b s d) by their ``ages`` (b s)."""
        projections = self.cell.project_input(self.table)  # s 3 d
        age_inputs = nn.functional.embedding(ages, projections.flatten(1))  # b s 3d
        return self.cell.step(age_inputs.unflatten(-1, projections.shape[1:]), contents)
