"""A text model with a memory that goes from window to window of a text.

As ``TextModel``, but windows depend on each other: tokens read the memory of all windows before
theirs, and a class is predicted from the memory of the whole text.

Shapes: w windows, n tokens, b texts, s windows of the longest text, a slots, r sources of a slot,
m slots listed as evidence, d width, c classes.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.models.contract import BaseNetwork
from mnemic.models.scan_segments import SegmentInputs, SegmentStep, scan_segments
from mnemic.models.text_model import WindowBatch, gather_rows, make_dummy_windows
from mnemic.respond.classes import masked_mean

MAX_EVIDENCE_SLOTS = 8  # slots listed per token, largest weights first


class SegmentTextState(NamedTuple):
    """The state carried from one call to the next on the same texts."""

    memory: Any  # the memory's state, b …
    last_mean: Tensor  # b d, the mean state of the last window


class SlotReads(NamedTuple):
    """The evidence: slots that every token read, and the sources of all slots.

    For a class, n is 1.
    """

    slots: Tensor  # w n m, largest weight first; -1 = none
    weights: Tensor  # w n m
    sources: Tensor  # w a r, token numbers in the text; -1 = none
    shares: Tensor  # w a r


class SegmentTextOutput(NamedTuple):
    """Logits of windows, with their evidence and the state after them."""

    logits: Tensor  # w …, in the shape of the response; windows of a text share its class logits
    states: Tensor  # w n d
    slot_reads: SlotReads | None  # None in training mode
    state: SegmentTextState


class SegmentTextModel(BaseNetwork):
    """Encode, read, write and respond over the windows of texts, which must not overlap.

    The response sees ``h = norm(z + o + W₂ gelu(W₁ [z; o]))``. For tokens, z is the token's state
    and o its read of the memory before its window; for a whole text, z is the mean of its last
    window and o the read of the final memory with that mean plus a learned query. ``truncate`` and
    ``carry_memory``: as for ``SegmentModel``.
    """

    carries_memory = reads_windows_in_turn = True

    def __init__(self, encode: Any, memory: Any, respond: Any, *, truncate: int = 0, carry_memory: bool = True) -> None:
        super().__init__()
        self.encode, self.memory, self.respond = encode, memory, respond
        self.truncate, self.carry_memory = truncate, carry_memory
        self.join = nn.Linear(2 * encode.width, encode.width)
        self.out = nn.Linear(encode.width, encode.width)
        self.norm = nn.LayerNorm(encode.width)
        if respond.pools_text:
            self.query = nn.Parameter(torch.zeros(encode.width))

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> WindowBatch:
        """Make a text of two windows of the greatest length."""
        return make_dummy_windows(sizes["max_length"])._replace(document_windows=torch.tensor([[0, 1]]))

    def forward(self, inputs: WindowBatch, state: SegmentTextState | None = None) -> SegmentTextOutput:
        """Read the windows of texts; with ``state``, continue the same texts."""
        if inputs.document_windows is None:
            raise ValueError("a text model with a memory needs inputs with document_windows")
        encode_kwargs: dict[str, Any] = {"segments": inputs.segment_ids} if self.encode.segments > 1 else {}
        states = self.encode(inputs.tokens, inputs.mask, **encode_kwargs)  # w n d
        states = states.to(self.out.weight.dtype)  # the memory stays exact
        rows, window_mask = inputs.document_windows.clamp(min=0), inputs.document_windows >= 0  # b s
        items = gather_rows(states, rows)  # b s n d
        item_mask = gather_rows(inputs.answer_mask, rows) & window_mask.unsqueeze(-1)  # b s n
        if state is None:
            empty = self.memory.empty(len(rows), items[:, 0].unsqueeze(2))
            state = SegmentTextState(empty, items.new_zeros(len(rows), items.shape[-1]))
        queries = None if self.respond.pools_text else items
        scan = scan_segments(
            self.memory, state.memory, SegmentInputs(items, item_mask, queries=queries),
            truncate=self.truncate, carry_memory=self.carry_memory,
        )  # fmt: skip
        steps = list(scan)
        last_mean = masked_mean(*last_window(items, item_mask, window_mask))
        last_mean = torch.where(window_mask.any(1, keepdim=True), last_mean, state.last_mean)
        state = SegmentTextState(steps[-1].state if steps else state.memory, last_mean)
        positions = positions_of_windows(inputs.document_windows, len(states))  # w
        if self.respond.pools_text:
            logits, slot_reads = self.classify_texts(state, positions // max(rows.shape[1], 1))
        else:
            logits, slot_reads = self.label_tokens(steps, states, inputs.answer_mask, positions)
        return SegmentTextOutput(logits.float(), states, slot_reads, state)

    def classify_texts(self, state: SegmentTextState, text_of_window: Tensor) -> tuple[Tensor, SlotReads | None]:
        """Score the classes of each text, repeated for all its windows (w c)."""
        query = (state.last_mean + self.query).unsqueeze(1)  # b 1 d
        reading = self.memory.read(state.memory, query.unsqueeze(2))
        text_states = self.add_found(state.last_mean.unsqueeze(1), reading.found)
        logits = self.respond(None, reading, text_states, torch.ones_like(text_states[..., 0]).bool())  # b c
        logits = gather_rows(logits, text_of_window)
        if self.training:
            return logits, None
        slot_reads = self.collect_slot_reads(state.memory, reading)
        return logits, SlotReads(*(gather_rows(tensor, text_of_window) for tensor in slot_reads))

    def label_tokens(
        self, steps: list[SegmentStep], states: Tensor, answer_mask: Tensor, positions: Tensor
    ) -> tuple[Tensor, SlotReads | None]:
        """Respond about every token, given its read of the memory: w …."""
        readings = [step.reading for step in steps if step.reading is not None]
        memory_output = torch.stack([reading.found for reading in readings], 1).flatten(0, 1)  # (b s) n d
        logits = self.respond(None, None, self.add_found(states, gather_rows(memory_output, positions)), answer_mask)
        if self.training:
            return logits, None
        step_reads = [self.collect_slot_reads(step.state_before, reading) for step, reading in zip(steps, readings)]
        slot_reads = SlotReads(
            *(gather_rows(torch.stack(tensors, 1).flatten(0, 1), positions) for tensors in zip(*step_reads))
        )
        return logits, slot_reads

    def add_found(self, states: Tensor, memory_output: Tensor) -> Tensor:
        """Combine states (… d) with their memory reads (… d)."""
        memory_output = memory_output.to(states.dtype)
        inner = nn.functional.gelu(self.join(torch.cat([states, memory_output], -1)))
        return self.norm(states + memory_output + self.out(inner))

    @torch.no_grad()
    def collect_slot_reads(self, memory_state: Any, reading: Reading) -> SlotReads:
        """List each token's most read slots (b n m) and all slots' sources, padded."""
        weights = reading.weights.float().mean((1, 2))  # b n a
        top = weights.topk(min(MAX_EVIDENCE_SLOTS, weights.shape[-1]), dim=-1)
        slots = top.indices.masked_fill(top.values <= 0, -1)
        sources, shares = memory_state.origins  # b a r
        num_slots = self.memory.num_slots
        num_listed = min(MAX_EVIDENCE_SLOTS, num_slots)
        return SlotReads(
            pad_axis(slots, 2, num_listed, -1), pad_axis(top.values, 2, num_listed, 0),
            pad_axis(sources, 1, num_slots, -1), pad_axis(shares, 1, num_slots, 0),
        )  # fmt: skip


def last_window(states: Tensor, mask: Tensor, window_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Select each text's last window: its states (b n d) and mask (b n)."""
    last_index = (window_mask.sum(1) - 1).clamp(min=0)  # b
    rows = torch.arange(len(last_index), device=last_index.device)
    return states[rows, last_index], mask[rows, last_index]


def positions_of_windows(document_windows: Tensor, num_windows: int) -> Tensor:
    """Invert the table of documents (b s): each window's flat position in it (w).

    A window that is in no document gets any position.
    """
    flat = document_windows.flatten()
    window = torch.where(flat >= 0, flat, num_windows)
    order = torch.arange(len(flat), device=flat.device)
    return flat.new_zeros(num_windows + 1).scatter(0, window, order)[:num_windows]


def pad_axis(values: Tensor, axis: int, size: int, fill: float) -> Tensor:
    """Pad an axis to ``size`` with ``fill``."""
    shape = list(values.shape)
    shape[axis] = size - values.shape[axis]
    return torch.cat([values, values.new_full(shape, fill)], axis)
