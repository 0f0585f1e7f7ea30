"""EntNet, the recurrent entity network (Henaff et al. 2017).

Shapes: b batch, n inputs, m queries, s slots, t tables (2), d width.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory.contract import Reading, Written
from mnemic.memory.parts.entnet_write import Rewriting, left, prelu, rewrite


class Entities(NamedTuple):
    """What is known of each entity: one row a slot, rewritten with every sentence."""

    slots: Tensor  # b s d


class EntNet(nn.Module):
    """Every slot has a key and listens for its entity; a gate opens, and the slot is rewritten.

    For each sentence s (equations 2 to 5): ``g_j = σ(s·h_j + s·w_j)``,
    ``c_j = φ(U h_j + V w_j + W s)``, ``h_j ← h_j + g_j c_j``, ``h_j ← h_j / ‖h_j‖``. The slots h
    begin as their keys w. One read (equation 6): ``p = softmax(q·h_j)``, ``u = Σ p_j h_j``, found
    is ``φ(q + H u)``.
    φ is a PReLU whose slopes, one a channel, are the same in writing and reading and begin at 1.

    The encoder yields two states a text (b n t d): as a sentence and as a question.
    The keys are weights of their own, or with ``tied`` the vectors of these words, one slot each:
    the encoder's, once the network is assembled. A recipe names the words; here they are ids.
    ``bias``: as in the authors' code, each slot's gate and U have one; the paper has none.
    ``fused``: on a GPU one kernel reads the whole story, with products of 16 bits instead of 24.

    ``Written.gates`` say how far each slot opened for each sentence. ``Written.weights`` are what
    later sentences have left of it (`left`).
    """

    tables = 2
    rolls = 0
    ties = False

    def __init__(
        self,
        width: int,
        *,
        slots: int = 20,
        tied: Sequence[int | str] = (),
        bias: bool = True,
        fused: bool = True,
    ) -> None:
        super().__init__()
        slots = len(tied) or slots
        if slots < 1:
            raise ValueError(f"entnet takes slots ≥ 1, not {slots}")
        if named := [word for word in tied if isinstance(word, str)]:
            raise ValueError(f"only data knows the id of {named[0]!r}: tie keys to ids, or `fit`")
        self.bias, self.fused = bias, fused
        self.words: nn.Parameter | None = None
        self.register_buffer("tied", torch.tensor(tied, dtype=torch.long), persistent=False)
        self.tied: Tensor
        if not tied:
            self.keys = nn.Parameter(torch.randn(slots, width) * 0.1)
        self.old, self.key, self.new, self.hop = (
            nn.Parameter(torch.randn(width, width) * 0.1) for _ in range(4)
        )  # U, V, W, H
        self.slope = nn.Parameter(torch.ones(width))
        if bias:
            self.gate_bias = nn.Parameter(torch.randn(slots) * 0.1)
            self.old_bias = nn.Parameter(torch.randn(width) * 0.1)

    def addresses(self) -> Tensor:
        """The keys w (s d)."""
        if not self.tied.numel():
            return self.keys
        if self.words is None:
            raise ValueError("tied keys are an encoder's words; make the network with `assemble`")
        return self.words.index_select(0, self.tied)

    def empty(self, batch: int, like: Tensor) -> Entities:
        return Entities(self.addresses().unsqueeze(0).expand(batch, -1, -1))

    def write(self, state: Entities, states: Tensor, mask: Tensor) -> Written:
        """All that does not depend on the slots is worked out for all sentences at once."""
        told, keys = states[:, :, 0], self.addresses()  # b n d, s d
        lean, place = told @ keys.mT, keys @ self.key.mT  # b n s, s d
        if self.bias:
            lean, place = lean + self.gate_bias, place + self.old_bias
        drive = told @ self.new.mT  # b n d
        given = Rewriting(state.slots, told, drive, lean, mask, place, self.old, self.slope)
        slots, gates = rewrite(given, fused=self.fused)
        return Written(Entities(slots), left(gates.detach()), gates)

    def read(
        self,
        state: Entities,
        query: Tensor,
        *,
        follow: Tensor | None = None,
        rolls: Tensor | None = None,
    ) -> Reading:
        """``query``: b m t d. ``follow`` (gold slots) is not used: nothing here is supervised."""
        asked = query[:, :, 1]  # b m d
        scores = asked @ state.slots.mT  # b m s
        weights = scores.softmax(-1)
        found = prelu(asked + weights @ state.slots @ self.hop.mT, self.slope)  # b m d
        return Reading(found, weights[:, None, None], scores[:, None, None])
