"""A selective memory: it keeps the inputs that a controller scores highest, unchanged.

Shapes: b batch, g segments, n inputs, s slots, m queries, d width.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.positions import SinusoidalPositions
from mnemic.memory.append import gather_slots, slot_ages
from mnemic.memory.contract import Reading, SegmentMemory, Written
from mnemic.memory.parts.controller import CONTROLLERS, DEFAULT_CONTROLLER, Salience
from mnemic.memory.parts.hops import MultiHopAttention
from mnemic.recipe import ConfigError, build


class SelectiveState(NamedTuple):
    """One input per slot, in the order of writing, then padding; and the controller's state."""

    slots: Tensor  # b s d
    mask: Tensor  # b s, True = a filled slot
    odds: Tensor  # b s, the controller's logits (log-odds of u), which decide what is kept
    sources: Tensor  # b s, input numbers, counted from the first ever written
    hidden: Tensor  # b 1 c, the controller's
    told: Tensor  # b, how many inputs were ever read, kept or not

    @property
    def origins(self) -> tuple[Tensor, Tensor]:
        """The source of each slot (-1: none) and its share (1), b s 1 each."""
        sources = torch.where(self.mask, self.sources, -1).unsqueeze(-1)
        return sources, (sources >= 0).to(self.slots.dtype)

    def forget(self, start: int, end: int) -> "SelectiveState":
        """Clear the slots of inputs ``start`` to ``end`` (exclusive); reset the controller."""
        slot_mask = (self.sources >= start) & (self.sources < end)
        return self._replace(
            slots=self.slots.masked_fill(slot_mask.unsqueeze(-1), 0.0),
            mask=self.mask & ~slot_mask,
            odds=self.odds.masked_fill(slot_mask, 0.0),
            sources=self.sources.masked_fill(slot_mask, -1),
            hidden=torch.zeros_like(self.hidden),
        )


class SelectiveMemory(SegmentMemory):
    """Keep the ``slots`` inputs of highest u unchanged; read with log u added.

    The selection is hard and nothing is blended: a slot is one input, so its source is exact. The
    gradient reaches u through the scores, ``q · k + log u``: it raises u of inputs that a read
    needs and lowers u of inputs that draw attention away from them. Of equal inputs the newer
    stay. Writing in two pieces gives the same state as writing at once. An input below
    ``threshold`` is not kept even if there is room.

    ``time`` adds a slot's age among the kept slots, counted from the newest: once the controller
    drops useless inputs, ages do not depend on how many of them came in between.
    ``similarity_first``: as for ``MultiHopAttention``.
    """

    is_cut_sensitive = False  # several segments may be written at once
    State = SelectiveState
    when_full = "what was worth least is no longer kept"

    def __init__(
        self,
        width: int,
        *,
        slots: int = 160,
        threshold: float = 0.0,
        hops: int = 3,
        heads: int = 1,
        time: bool = True,
        similarity_first: bool = False,
        controller: Mapping[str, Any] = DEFAULT_CONTROLLER,
    ) -> None:
        super().__init__()
        if slots < 1 or not 0 <= threshold < 1:
            raise ConfigError(f"selective takes slots ≥ 1 and 0 ≤ threshold < 1, not {slots = }, {threshold = }")
        self.num_slots, self.threshold = slots, threshold
        self.controller = build(CONTROLLERS, controller, width=width)
        self.hops = MultiHopAttention(width, hops=hops, heads=heads, similarity_first=similarity_first)
        self.waves = SinusoidalPositions(width + width % 2) if time else None
        self.time = nn.Linear(width, width, bias=False) if time else None

    def empty(self, batch: int, like: Tensor) -> SelectiveState:
        """Make a state with no slots for inputs like ``like`` (b n 1 d)."""
        slots = like.new_zeros(batch, 0, like.shape[-1])
        return SelectiveState(
            slots,
            slots.new_zeros(slots.shape[:2], dtype=torch.bool),
            slots.new_zeros(slots.shape[:2]),
            slots.new_zeros(slots.shape[:2], dtype=torch.long),
            self.controller.empty(batch, like),
            like.new_zeros(batch, dtype=torch.long),
        )

    def plan_writes(
        self, state: SelectiveState, states: Tensor, mask: Tensor, writable: Tensor | None = None
    ) -> Iterator[Salience]:
        """Score the inputs of many segments at once; yield one result per segment.

        ``states`` b g n d, ``mask`` b g n.
        """
        salience = self.controller.score_segments(states, mask, state.hidden)
        return map(Salience._make, zip(*(tensor.unbind(1) for tensor in salience)))

    def write(
        self,
        state: SelectiveState,
        states: Tensor,
        mask: Tensor,
        writable: Tensor | None = None,
        plan: Salience | None = None,
    ) -> Written:
        """Write one segment (``states`` b n 1 d), by its ``plan`` if there is one.

        Only ``writable`` inputs (b n) may be kept; the controller reads all.
        """
        inputs = states[:, :, 0]
        if plan is None:
            plan = self.controller(inputs, mask, state.hidden)
        salience_logits, hidden = plan
        is_writable = mask if writable is None else mask & writable
        is_writable = is_writable & (torch.sigmoid(salience_logits) >= self.threshold)
        input_numbers = state.told.unsqueeze(1) + mask.long().cumsum(1) - 1  # b n
        new_slots = (inputs, is_writable, salience_logits, torch.where(is_writable, input_numbers, -1))
        tensors = [torch.cat(pair, 1) for pair in zip(state[:4], new_slots)]
        kept_slots = select_kept_slots(tensors[1], tensors[2], self.num_slots)
        new_state = SelectiveState._make([*gather_slots(tensors, kept_slots), hidden, state.told + mask.sum(1)])
        is_stored = (input_numbers.unsqueeze(2) == new_state.sources.unsqueeze(1)) & is_writable.unsqueeze(2)  # b n s
        return Written(new_state, is_stored.to(inputs.dtype), salience_logits=salience_logits)

    def read(
        self,
        state: SelectiveState,
        query: Tensor,
        *,
        teacher_slots: Tensor | None = None,
        uniforms: Tensor | None = None,
    ) -> Reading:
        """Read with ``query`` (b m 1 d); soft reads do not use ``teacher_slots``."""
        contents = state.slots
        if self.waves is not None and self.time is not None:
            ages = slot_ages(state.mask).clamp(min=0)
            waves = self.waves(ages, positions=ages)[..., : contents.shape[-1]]
            contents = contents + self.time(waves.to(contents.dtype))
        salience = nn.functional.logsigmoid(state.odds.float())
        return self.hops(contents, state.mask, query[:, :, 0], salience)


def select_kept_slots(mask: Tensor, salience_logits: Tensor, max_slots: int) -> Tensor:
    """Return the indices of the ``max_slots`` filled slots of highest logits, in order.

    The result is b max_slots; rows with fewer filled slots are padded with empty ones.
    """
    is_kept = mask
    if mask.shape[1] > max_slots:
        newest_first = salience_logits.detach().masked_fill(~mask, -torch.inf).flip(1)
        rank = newest_first.argsort(dim=1, descending=True, stable=True).argsort(dim=1).flip(1)
        is_kept = mask & (rank < max_slots)
    return is_kept.long().argsort(dim=1, descending=True, stable=True)[:, :max_slots]
