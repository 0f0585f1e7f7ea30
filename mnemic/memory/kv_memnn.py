"""KV-MemNN, the key-value memory network (Miller et al. 2016).

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads (1), t tables (2), d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.append import Slots, append, no_slots
from mnemic.memory.contract import Reading, Written
from mnemic.memory.memn2n import HIDDEN
from mnemic.memory.parts.hop_update import UPDATES
from mnemic.recipe import build

KEY, VALUE = 0, 1  # which table's state a slot is found by, and which it gives
ROTATE: Mapping[str, Any] = {"kind": "rotate"}


class KeyValue(nn.Module):
    """Find a slot by its key, read its value: ``p = softmax(q·key)``, ``o = Σ p value``.

    Then ``q ← R_j (q + o)``, with an R of its own for every hop (section 3.1; ``update``). An input
    has two states (b n 2 d), the key's and the value's, which are of different texts where the
    data has ``values``; a question is told in the words of the keys. The state is that of the other
    append-only memories, with keys and values as the two tables of each slot.

    A base of any size is kept outside: ``memory.parts.key_hash`` chooses a question's slots
    before they are written. As MemN2N with layer-wise tying, but without time: a fact has no age.
    Where we differ: keys and questions share one table and values and answers another, so that a
    question's own entity is not an answer; in the paper one table is all of them.
    """

    tables = 2
    rolls = 0
    ties = True

    def __init__(
        self, width: int, *, hops: int = 2, slots: int = 200, update: Mapping[str, Any] = ROTATE
    ) -> None:
        super().__init__()
        if hops < 1 or slots < 1:
            raise ValueError(f"key-value takes hops and slots ≥ 1, not {hops} and {slots}")
        self.hops, self.slots = hops, slots
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
        keys, values = state.states[:, :, KEY], state.states[:, :, VALUE]  # b s d
        seen = state.mask.unsqueeze(1)  # b 1 s
        u = query[:, :, KEY]  # b m d
        scores, weights = [], []
        for hop in range(self.hops):
            score = (u @ keys.mT).masked_fill(~seen, HIDDEN)  # b m s
            weight = score.softmax(-1) * seen  # an empty memory gives zeros
            u = self.update(u, weight @ values, hop)
            scores.append(score)
            weights.append(weight)
        return Reading(u, torch.stack(weights, 1).unsqueeze(2), torch.stack(scores, 1).unsqueeze(2))
