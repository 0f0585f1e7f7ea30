"""MemN2N, the end-to-end memory network (Sukhbaatar et al. 2015).

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads (1), t tables, d width,
r random numbers.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import channel_weights
from mnemic.memory.append import AppendMemory, Slots, slot_ages
from mnemic.memory.contract import ATTENTION_CAPTION, FREE_SLOTS, MASKED_SCORE, Reading, ReadLabels
from mnemic.memory.parts.hop_update import UPDATES, mean_gate
from mnemic.recipe import build, check_repeats

DEFAULT_UPDATE: Mapping[str, Any] = {"kind": "add"}


class MemN2N(AppendMemory):
    """Append sentences; read over several soft hops: ``u ← u + Σ softmax(u·key) value``.

    The encoder yields one state per table and text (b n t d).
    ``tying="adjacent"``: hop k reads keys from table k and values from table k + 1; the question
    is table 0. ``tying="layerwise"``: all hops share keys (table 0) and values (table 1), and the
    question is table 2. ``update`` computes the next query from a hop's query and its output;
    the paper adds them, with a linear map before that for layer-wise tying.

    ``time`` adds a learned vector for each slot's age, counted back from the question (end of
    section 4.1). As in the authors' code, where it is a word, it is weighted like the last word
    of a sentence of ``max_length`` words (``ramp``; turn it off if words have no position weights).
    ``noise`` shifts ages during training as if up to that share of empty sentences stood between
    the real ones (random noise, RN); it never hides a slot.
    ``softmax=False`` reads with the bare scores: the linear start (LS) of section 4.2.
    ``free_slots`` includes the free slots in the softmax as empty sentences, with a score and a
    value of 0, so that a hop may read nothing. The paper does not say so, but the authors' code
    does it, and without it the joint error is far from the published one.
    """

    labels = ReadLabels("hop {}", ATTENTION_CAPTION, FREE_SLOTS)

    def __init__(
        self,
        width: int,
        *,
        hops: int = 3,
        slots: int = 50,
        tying: Literal["adjacent", "layerwise"] = "adjacent",
        update: Mapping[str, Any] = DEFAULT_UPDATE,
        time: bool = True,
        noise: float = 0.1,
        softmax: bool = True,
        free_slots: bool = True,
        ramp: bool = True,
        max_length: int = 12,
    ) -> None:
        super().__init__()
        check_repeats(hops=hops)
        if hops < 1 or slots < 1 or not 0 <= noise <= 1:
            raise ValueError(
                f"memn2n takes hops and slots ≥ 1, noise from 0 to 1, not {hops = }, {slots = }, {noise = }"
            )
        self.hops, self.num_slots, self.tying = hops, slots, tying
        self.noise, self.softmax, self.free_slots = noise, softmax, free_slots
        self.ties_answers = tying == "adjacent"
        self.num_tables = hops + 1 if tying == "adjacent" else 3
        self.num_uniforms = slots + ceil(noise * slots) + 1 if time and noise else 0
        num_timed = self.num_tables if tying == "adjacent" else 2  # the question has no time
        self.time = nn.ParameterList(torch.randn(slots, width) * 0.1 for _ in range(num_timed * time))
        distance = (max_length - 1) / 2 if ramp else 0.0  # of the last word from the middle
        last = 1 + distance * channel_weights(width, max_length)
        self.register_buffer("last", last, persistent=False)  # d
        self.last: Tensor
        self.update = build(UPDATES, update, width=width, hops=hops)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m t d); soft reads do not use ``teacher_slots``."""
        contents = self.add_time(state, uniforms)  # t times b s d
        mask = state.mask.unsqueeze(1)  # b 1 s
        u = query[:, :, 0 if self.tying == "adjacent" else 2]  # b m d
        scores, weights, gates = [], [], []
        for hop in range(self.hops):
            key, value = (hop, hop + 1) if self.tying == "adjacent" else (0, 1)
            score = u @ contents[key].mT  # b m s
            weight = self.attention_weights(score, mask)
            gates.append(mean_gate(self.update, u, hop))
            u = self.update(u, weight @ contents[value], hop)
            scores.append(score.masked_fill(~mask, MASKED_SCORE))
            weights.append(weight)
        hop_gates = [gate for gate in gates if gate is not None]
        weight, score = (torch.stack(tensors, 1).unsqueeze(2) for tensors in (weights, scores))
        return Reading(u, weight, score, gates=torch.stack(hop_gates, 1) if hop_gates else None)

    def add_time(self, state: Slots, uniforms: Tensor | None) -> list[Tensor]:
        """Add each slot's time vector to its contents; return one tensor per table."""
        contents = list(state.states.unbind(2))  # b s d each
        if not self.time:
            return contents
        ages = slot_ages(state.mask).clamp(min=0)  # b s
        if uniforms is not None and self.noise and self.training:
            ages = shift_ages(ages, state.mask, uniforms, self.noise)
        ages = ages.clamp(max=self.num_slots - 1)
        table = torch.cat(list(self.time), 1) * self.last.repeat(len(self.time))  # slots (t d)
        time_vectors = nn.functional.embedding(ages, table).chunk(len(self.time), -1)
        return [content + time for content, time in zip(contents, time_vectors)]

    def attention_weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Turn scores (b m s) into weights; free slots may take part of the sum."""
        if not self.softmax:
            return scores * mask
        scores = scores.masked_fill(~mask, MASKED_SCORE)
        if self.free_slots:
            num_free = self.num_slots - mask.sum(-1, keepdim=True, dtype=scores.dtype)  # b 1 1
            free_score = num_free.clamp(min=0).log().clamp(min=MASKED_SCORE).expand(*scores.shape[:-1], 1)
            scores = torch.cat([scores, free_score], -1)  # n free slots of score 0 equal one of log n
        return scores.softmax(-1)[..., : mask.shape[-1]] * mask  # an empty memory gives zeros


def shift_ages(ages: Tensor, mask: Tensor, uniforms: Tensor, noise: float) -> Tensor:
    """Insert up to ``noise`` · length random gaps into the ages.

    Of ``length + blanks`` positions a random subset of ``length`` is kept, in order; ``blanks`` is
    uniform in 0 … ceil(noise · length), and each subset is equally likely. ``uniforms``: b r.
    """
    length = mask.sum(1, keepdim=True)  # b 1
    max_blanks = torch.ceil(noise * length)
    blanks = (uniforms[:, :1] * (max_blanks + 1)).floor().clamp(max=max_blanks)  # b 1
    sort_keys = uniforms[:, 1:]  # b p
    positions = torch.arange(sort_keys.shape[1], device=sort_keys.device)  # p
    sort_keys = sort_keys.masked_fill(positions >= length + blanks, 2.0)  # after the last position
    rank = sort_keys.argsort(1).argsort(1)  # b p
    kept_ages = torch.where(rank < length, positions, sort_keys.shape[1]).sort(1).values  # b p, ages in order
    return kept_ages.gather(1, ages.clamp(max=sort_keys.shape[1] - 1))
