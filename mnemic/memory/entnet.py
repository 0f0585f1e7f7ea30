"""EntNet, the recurrent entity network (Henaff et al. 2017).

Shapes: b batch, n inputs, m queries, s slots, t tables (2), d width.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory.contract import MemoryModule, Reading, ReadLabels, Written
from mnemic.memory.parts.entnet_write import EntNetWrite, prelu, remaining_shares, rewrite_slots


class EntityState(NamedTuple):
    """One vector per slot, rewritten with every sentence."""

    slots: Tensor  # b s d


class EntNet(MemoryModule):
    """Rewrite gated slots, each with the key of its entity, sentence by sentence.

    For each sentence s (equations 2 to 5): ``g_j = σ(s·h_j + s·w_j)``,
    ``c_j = φ(U h_j + V w_j + W s)``, ``h_j ← h_j + g_j c_j``, ``h_j ← h_j / ‖h_j‖``. The slots h
    start as their keys w. One read (equation 6): ``p = softmax(q·h_j)``, ``u = Σ p_j h_j``, found
    is ``φ(q + H u)``.
    φ is a PReLU with one slope per channel, shared by writing and reading, initially 1.

    The encoder yields two states per text (b n t d): one as a sentence, one as a question.
    The keys are parameters, or with ``tied`` the encoder's vectors of these words, one slot per
    word (``build_model`` sets them). A recipe names the words; here they are ids.
    ``bias``: as in the authors' code, each slot's gate and U have one; the paper has none.
    ``fused``: on a GPU one kernel reads the whole story, with products of 16 bits instead of 24.

    ``Written.gates`` are the gates of each slot for each sentence. ``Written.weights`` are the
    shares of each sentence that later sentences have left (`remaining_shares`).
    """

    num_tables = 2
    State = EntityState
    labels = ReadLabels(
        "read",
        "What is left of each sentence in the slots that were read; the column adds up to 1.",
        "(what the slots held before the story)",
    )

    def __init__(
        self, width: int, *, slots: int = 20, tied: Sequence[int | str] = (), bias: bool = True, fused: bool = True
    ) -> None:
        super().__init__()
        slots = len(tied) or slots
        if slots < 1:
            raise ValueError(f"entnet takes slots ≥ 1, not {slots}")
        if words := [word for word in tied if isinstance(word, str)]:
            raise ValueError(f"only data knows the id of {words[0]!r}: tie keys to ids, or `fit`")
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

    def slot_keys(self) -> Tensor:
        """Return the keys w (s d): parameters, or vectors of tied words."""
        if not self.tied.numel():
            return self.keys
        if self.words is None:
            raise ValueError("tied keys need an encoder: make the network with `build_model`")
        return self.words.index_select(0, self.tied)

    def empty(self, batch: int, like: Tensor) -> EntityState:
        """Make a state whose slots are their keys."""
        return EntityState(self.slot_keys().unsqueeze(0).expand(batch, -1, -1))

    def write(self, state: EntityState, states: Tensor, mask: Tensor) -> Written:
        """Rewrite the slots; terms that do not depend on them are computed in one batch."""
        sentences, keys = states[:, :, 0], self.slot_keys()  # b n d, s d
        gate_logits, key_drive = sentences @ keys.mT, keys @ self.key.mT  # b n s, s d
        if self.bias:
            gate_logits, key_drive = gate_logits + self.gate_bias, key_drive + self.old_bias
        sentence_drive = sentences @ self.new.mT  # b n d
        inputs = EntNetWrite(state.slots, sentences, sentence_drive, gate_logits, mask, key_drive, self.old, self.slope)
        slots, gates = rewrite_slots(inputs, fused=self.fused)
        return Written(EntityState(slots), remaining_shares(gates.detach()), gates)

    def read(
        self, state: EntityState, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m t d); soft reads do not use ``teacher_slots``."""
        question = query[:, :, 1]  # b m d
        scores = question @ state.slots.mT  # b m s
        weights = scores.softmax(-1)
        output = prelu(question + weights @ state.slots @ self.hop.mT, self.slope)  # b m d
        return Reading(output, weights[:, None, None], scores[:, None, None])
