"""KV-MemNN, the key-value memory network (Miller et al. 2016).

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads (1), t tables (2), d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mnemic.memory.append import AppendMemory, Slots
from mnemic.memory.contract import MASKED_SCORE, Reading, ReadLabels
from mnemic.memory.parts.hop_update import UPDATES
from mnemic.recipe import build, check_repeats

KEY, VALUE = 0, 1  # the tables of a slot
DEFAULT_UPDATE: Mapping[str, Any] = {"kind": "rotate"}


class KeyValueMemory(AppendMemory):
    """Address slots by key, read values: ``p = softmax(q·key)``, ``o = Σ p value``.

    Then ``q ← R_j (q + o)``, with one R per hop (section 3.1; ``update``). An input has two states
    (b n 2 d), key and value, of different texts if the data has ``values``; questions share the
    table of the keys. The state is that of the other append-only memories, with keys and values as
    the two tables of each slot.

    A knowledge base of any size stays outside: ``memory.parts.key_hash`` selects a question's
    slots before they are written. As MemN2N with layer-wise tying, but without time: a fact has no
    age.
    Where we differ: keys and questions share one table, values and answers another, so that the
    question's entity is not an answer; the paper has one table for all.
    """

    num_tables = 2
    ties_answers = True
    labels = ReadLabels("hop {}", "How much of each {item} was read at each hop; a column adds up to 1.")

    def __init__(
        self, width: int, *, hops: int = 2, slots: int = 200, update: Mapping[str, Any] = DEFAULT_UPDATE
    ) -> None:
        super().__init__()
        check_repeats(hops=hops)
        if hops < 1 or slots < 1:
            raise ValueError(f"key-value takes hops and slots ≥ 1, not {hops} and {slots}")
        self.hops, self.num_slots = hops, slots
        self.update = build(UPDATES, update, width=width, hops=hops)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m t d); soft reads do not use ``teacher_slots``."""
        keys, values = state.states[:, :, KEY], state.states[:, :, VALUE]  # b s d
        mask = state.mask.unsqueeze(1)  # b 1 s
        u = query[:, :, KEY]  # b m d
        scores, weights = [], []
        for hop in range(self.hops):
            score = (u @ keys.mT).masked_fill(~mask, MASKED_SCORE)  # b m s
            weight = score.softmax(-1) * mask  # an empty memory gives zeros
            u = self.update(u, weight @ values, hop)
            scores.append(score)
            weights.append(weight)
        return Reading(u, torch.stack(weights, 1).unsqueeze(2), torch.stack(scores, 1).unsqueeze(2))
