"""BERT-MASS's blended memory: selected inputs of each segment are mixed into slots.

Shapes: b batch, g segments, n inputs, c selected inputs, s slots, r sources per slot, m queries,
d width.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory.contract import MASKED_SCORE, Reading, ReadLabels, SegmentMemory, Written
from mnemic.memory.parts.controller import CONTROLLERS, DEFAULT_CONTROLLER
from mnemic.memory.parts.hops import MultiHopAttention
from mnemic.memory.parts.sources import Sources, add_sources, clear_sources, empty_sources
from mnemic.recipe import ConfigError, build

MAX_WEIGHT = 1 - 1e-6  # below 1, so that the rest of a slot has a logarithm


class BlendedState(NamedTuple):
    """Slots with their sources, and the controller's hidden state."""

    slots: Tensor  # b s d
    mask: Tensor  # b s, True = a filled slot
    sources: Tensor  # b s r, input numbers, counted from the first ever written; -1 = none
    shares: Tensor  # b s r, how much of the slot each source is
    lost: Tensor  # b s 2, smallest and largest number of the sources that are not listed
    hidden: Tensor  # b 1 c, the controller's
    told: Tensor  # b, how many inputs were ever read, written or not

    @property
    def origins(self) -> tuple[Tensor, Tensor]:
        """The sources of each slot (-1: none) and their shares, b s r each."""
        return self.sources, self.shares

    def forget(self, start: int, end: int) -> "BlendedState":
        """Clear every slot that inputs ``start`` to ``end`` (exclusive) were written to.

        The controller is reset, since its state depends on them too. Exact forgetting means
        reading again without them.
        """
        sources = Sources(self.sources, self.shares, self.lost)
        slot_mask = sources.may_hold(start, end)  # b s
        return self._replace(
            slots=self.slots.masked_fill(slot_mask.unsqueeze(-1), 0.0),
            mask=self.mask & ~slot_mask,
            **clear_sources(sources, slot_mask)._asdict(),
            hidden=torch.zeros_like(self.hidden),
        )


class WritePlan(NamedTuple):
    """The inputs of a segment to be written; independent of the slots' contents."""

    salience_logits: Tensor  # b n, of all inputs
    hidden: Tensor  # b 1 c, the controller's, after the segment
    write_strength: Tensor  # b c, u of each selected input
    positions: Tensor  # b c, of the selected inputs, among all inputs
    input_numbers: Tensor  # b c, the same, among the real inputs
    values: Tensor  # b c d, the vectors to write
    address_logits: Tensor  # b c s, scores of the slots' addresses


class BlendedMemory(SegmentMemory):
    """Blend inputs selected by a controller into similar slots; read over several hops.

    Of a segment (one call of ``write``) the ``max_writes`` inputs of highest u are selected, none
    below ``threshold``. Each goes to its ``slots_per_write`` best slots by content: a slot's score
    is ``a_s · W z + v · m_s``, plus ``empty_bonus`` while the slot is empty. A slot moves towards
    the mean x of its new inputs, ``m ← m + g (x − m)``, by its gate
    ``g = σ(G [m; x]) (1 − Π (1 − u α))``; *all other slots are copied bit for bit*. An empty slot
    is zero, so a slot is exactly Σ share · v over its sources.

    The selected inputs of a segment are written at once, so the result depends on where a text is
    cut.
    """

    is_cut_sensitive = True
    State = BlendedState
    when_full = "what comes now is blended into what they hold"
    labels = ReadLabels("hop {}", "How much of each sentence was read at each hop, as its share of the slots.")

    def __init__(
        self,
        width: int,
        *,
        slots: int = 32,
        max_writes: int = 16,
        threshold: float = 0.02,
        slots_per_write: int = 2,
        empty_bonus: float = 1.0,
        sources: int = 8,
        hops: int = 2,
        heads: int = 1,
        controller: Mapping[str, Any] = DEFAULT_CONTROLLER,
    ) -> None:
        super().__init__()
        if min(slots, max_writes, slots_per_write, sources) < 1 or not 0 <= threshold < 1:
            raise ConfigError(
                "blended takes slots, max_writes, slots_per_write and sources ≥ 1 and 0 ≤ threshold < 1, not "
                f"{slots = }, {max_writes = }, {slots_per_write = }, {sources = }, {threshold = }"
            )
        self.num_slots, self.max_writes, self.threshold = slots, max_writes, threshold
        self.slots_per_write, self.empty_bonus, self.num_sources = (min(slots_per_write, slots), empty_bonus, sources)
        self.controller = build(CONTROLLERS, controller, width=width)
        self.ask, self.value = (nn.Linear(width, width) for _ in range(2))
        self.addresses = nn.Parameter(torch.randn(slots, width) * width**-0.5)
        self.gate = nn.Linear(2 * width, 1)
        nn.init.constant_(self.gate.bias, 2.0)
        self.hops = MultiHopAttention(width, hops=hops, heads=heads)

    def empty(self, batch: int, like: Tensor) -> BlendedState:
        """Make a state of zero slots for inputs like ``like`` (b n 1 d)."""
        slots = like.new_zeros(batch, self.num_slots, like.shape[-1])
        sources = empty_sources(batch, self.num_slots, self.num_sources, like)
        return BlendedState(
            slots,
            torch.zeros_like(slots[..., 0], dtype=torch.bool),
            *sources,
            self.controller.empty(batch, like),
            like.new_zeros(batch, dtype=torch.long),
        )

    def plan_writes(
        self, state: BlendedState, states: Tensor, mask: Tensor, writable: Tensor | None = None
    ) -> Iterator[WritePlan]:
        """Select the inputs to write of many segments at once; yield one plan per segment.

        ``states`` b g n d, ``mask`` and ``writable`` b g n. On a GPU this takes a fraction of the
        time of one segment after another.
        """
        salience_logits, hidden = self.controller.score_segments(states, mask, state.hidden)
        is_writable = mask if writable is None else mask & writable
        write_strength, positions = self.select_inputs(salience_logits, is_writable)  # b g c
        selected_states = states.gather(2, positions.unsqueeze(-1).expand(*positions.shape, states.shape[-1]))
        input_numbers = (mask.long().cumsum(2) - 1).gather(2, positions)
        address_logits = self.ask(selected_states) @ self.addresses.mT  # b g c s
        values = self.value(selected_states)
        plan = WritePlan(salience_logits, hidden, write_strength, positions, input_numbers, values, address_logits)
        return map(WritePlan._make, zip(*(tensor.unbind(1) for tensor in plan)))

    def write(
        self,
        state: BlendedState,
        states: Tensor,
        mask: Tensor,
        writable: Tensor | None = None,
        plan: WritePlan | None = None,
    ) -> Written:
        """Write one segment (``states`` b n 1 d), by its ``plan`` if there is one.

        Only ``writable`` inputs (b n) may be written; the controller reads all.
        """
        if plan is None:
            segment_writable = None if writable is None else writable.unsqueeze(1)
            plan = next(self.plan_writes(state, states.transpose(1, 2), mask.unsqueeze(1), segment_writable))
        weights = plan.write_strength.unsqueeze(-1) * self.address_slots(state, plan)  # b c s
        slots, gate, is_written = self.blend_slots(state.slots, plan.values, weights)
        with torch.no_grad():
            total = weights.sum(1, keepdim=True)
            shares = gate.unsqueeze(1) * weights / total.clamp(min=torch.finfo(total.dtype).tiny)
            sources = Sources(state.sources, state.shares, state.lost)
            sources = add_sources(sources, state.told.unsqueeze(1) + plan.input_numbers, shares, 1 - gate)
        new_state = BlendedState(slots, state.mask | is_written, *sources, plan.hidden, state.told + mask.sum(1))
        wide_positions = plan.positions.unsqueeze(-1).expand_as(weights)
        blank = weights.new_zeros(*mask.shape, self.num_slots)
        input_shares = blank.scatter(1, wide_positions, shares)
        return Written(new_state, input_shares, blank.scatter(1, wide_positions, weights), plan.salience_logits)

    def select_inputs(self, salience_logits: Tensor, writable: Tensor) -> tuple[Tensor, Tensor]:
        """Select the inputs of highest u: their u and positions (… c), 0 for padding."""
        u = torch.sigmoid(salience_logits)
        salience = u.masked_fill(~writable | (u < self.threshold), -1.0)
        strongest, positions = salience.topk(min(self.max_writes, writable.shape[-1]), dim=-1)
        return strongest.clamp(min=0.0, max=MAX_WEIGHT), positions

    def address_slots(self, state: BlendedState, plan: WritePlan) -> Tensor:
        """Distribute each selected input over its best slots: weights b c s, softmaxed."""
        values = plan.values
        scores = (plan.address_logits + values @ state.slots.mT).float() * values.shape[-1] ** -0.5  # b c s
        scores = scores + self.empty_bonus * (~state.mask).unsqueeze(1).to(scores.dtype)
        cutoff = scores.topk(self.slots_per_write, dim=-1).values[..., -1:]
        return scores.masked_fill(scores < cutoff, MASKED_SCORE).softmax(-1).to(plan.write_strength.dtype)

    def blend_slots(self, slots: Tensor, values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Move slots towards their new inputs; return slots, gates and a mask.

        ``values`` b c d, ``weights`` b c s. Returns the slots b s d, their gates b s, and which
        slots were written to, b s.
        """
        total = weights.sum(1)  # b s
        is_written = total > 0
        mean = (weights.mT @ values) / total.clamp(min=1e-12).unsqueeze(-1)  # b s d
        gate_logits = self.gate(torch.cat([slots, mean.to(slots.dtype)], -1)).squeeze(-1)
        amount = 1 - torch.log1p(-weights.clamp(max=MAX_WEIGHT)).sum(1).exp()
        gate = torch.sigmoid(gate_logits) * amount * is_written
        new_slots = slots + gate.unsqueeze(-1) * (mean - slots)
        return (torch.where(is_written.unsqueeze(-1), new_slots.to(slots.dtype), slots), gate, is_written)

    def read(
        self, state: BlendedState, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 1 d); soft reads do not use ``teacher_slots``."""
        return self.hops(state.slots, state.mask, query[:, :, 0])
