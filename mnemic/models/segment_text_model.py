"""A reader with a memory: the windows of a text are read in turn, and a memory goes along.

As ``Reader``, but no window is read by itself: tokens know what was written before their window,
and a class is told from the memory of the whole text.

Shapes: w windows, n tokens, b texts, s windows of the longest text, a slots, r sources of a slot,
m slots that are told of, d width, c classes.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.models.scan_segments import Step, Told, walk
from mnemic.models.text_model import Windows, take
from mnemic.respond.classes import Classes, mean_of

TOLD = 8  # slots that are told of each token, those that it read most


class Carried(NamedTuple):
    """What goes along from one stretch of the texts to the next."""

    memory: Any  # the memory's state, b …
    last: Tensor  # b d, the mean state of the window that was read last


class Looked(NamedTuple):
    """Which slots every token read, and what these held: the evidence. Of a class, one token."""

    slots: Tensor  # w n m, most read first; -1 = none
    weights: Tensor  # w n m
    sources: Tensor  # w a r, numbers of the text's tokens; -1 = none
    shares: Tensor  # w a r


class InTurn(NamedTuple):
    """What a reader with a memory makes of windows."""

    scores: Tensor  # w …, as the response has them; a class is told alike by all windows of a text
    states: Tensor  # w n d
    looked: Looked | None  # while nothing is learnt
    carried: Carried


class MemoryReader(nn.Module):
    """I, G, O and R over the windows of texts, which must not overlap.

    ``h = norm(z + o + W₂ gelu(W₁ [z; o]))``: of tokens z with what they found, o, in the memory
    before their window; of a whole text, z the mean of its last window, with what that mean and a
    learned query found in the memory after it. ``truncate`` and ``lasts`` as for ``Carrier``.
    """

    rolls = 0  # nothing is drawn while training but dropout

    def __init__(
        self,
        encode: Any,
        memory: Any,
        respond: Any,
        *,
        segments: bool = False,
        truncate: int = 0,
        lasts: bool = True,
    ) -> None:
        super().__init__()
        self.encode, self.memory, self.respond = encode, memory, respond
        self.segments = segments  # whether I tells a question and its text apart
        self.truncate, self.lasts = truncate, lasts
        self.join = nn.Linear(2 * encode.width, encode.width)
        self.out = nn.Linear(encode.width, encode.width)
        self.norm = nn.LayerNorm(encode.width)
        if self.sorts:
            self.query = nn.Parameter(torch.zeros(encode.width))

    @property
    def sorts(self) -> bool:
        """Whether an answer is about the whole text, and not about each token."""
        return isinstance(self.respond, Classes)

    def forward(self, inputs: Windows, carried: Carried | None = None) -> InTurn:
        """Read ``inputs.documents``; with ``carried``, as what follows in the same texts."""
        if inputs.documents is None:
            raise ValueError("a reader with a memory must know whose windows these are")
        told: dict[str, Any] = {"segments": inputs.segments} if self.segments else {}
        states = self.encode(inputs.tokens, inputs.mask, **told)  # w n d
        states = states.to(self.out.weight.dtype)  # what is carried stays exact
        rows, real = inputs.documents.clamp(min=0), inputs.documents >= 0  # b s
        units = take(states, rows)  # b s n d
        seen = take(inputs.inside, rows) & real.unsqueeze(-1)  # b s n
        if carried is None:
            empty = self.memory.empty(len(rows), units[:, 0].unsqueeze(2))
            carried = Carried(empty, units.new_zeros(len(rows), units.shape[-1]))
        asking = None if self.sorts else units
        walked = walk(
            self.memory, carried.memory, Told(units, seen, asking=asking),
            truncate=self.truncate, lasts=self.lasts,
        )  # fmt: skip
        steps = list(walked)
        last = mean_of(*last_of(units, seen, real))
        last = torch.where(real.any(1, keepdim=True), last, carried.last)
        carried = Carried(steps[-1].state if steps else carried.memory, last)
        place = places_of(inputs.documents, len(states))  # w
        if self.sorts:
            scores, looked = self.of_texts(carried, place // max(rows.shape[1], 1))
        else:
            scores, looked = self.of_tokens(steps, states, inputs.inside, place)
        return InTurn(scores.float(), states, looked, carried)

    def of_texts(self, carried: Carried, owner: Tensor) -> tuple[Tensor, Looked | None]:
        """The class of each text, said by all its windows (w c)."""
        query = (carried.last + self.query).unsqueeze(1)  # b 1 d
        reading = self.memory.read(carried.memory, query.unsqueeze(2))
        known = self.known(carried.last.unsqueeze(1), reading.found)
        scores = self.respond(None, reading, known, torch.ones_like(known[..., 0]).bool())  # b c
        if self.training:
            return take(scores, owner), None
        looked = self.looked(carried.memory, reading)
        return take(scores, owner), Looked(*(take(part, owner) for part in looked))

    def of_tokens(
        self, steps: list[Step], states: Tensor, inside: Tensor, place: Tensor
    ) -> tuple[Tensor, Looked | None]:
        """What is said of every token, with what it found: w …."""
        readings = [step.reading for step in steps if step.reading is not None]
        found = torch.stack([reading.found for reading in readings], 1).flatten(0, 1)  # (b s) n d
        scores = self.respond(None, None, self.known(states, take(found, place)), inside)
        if self.training:
            return scores, None
        each = [self.looked(step.before, reading) for step, reading in zip(steps, readings)]
        looked = Looked(*(take(torch.stack(own, 1).flatten(0, 1), place) for own in zip(*each)))
        return scores, looked

    def known(self, states: Tensor, found: Tensor) -> Tensor:
        """States … d that know what was found for them."""
        found = found.to(states.dtype)
        inner = nn.functional.gelu(self.join(torch.cat([states, found], -1)))
        return self.norm(states + found + self.out(inner))

    @torch.no_grad()
    def looked(self, memory: Any, reading: Reading) -> Looked:
        """The slots that were read most, b n m, and what each holds; always as many of both."""
        read = reading.weights.float().mean((1, 2))  # b n a
        most = read.topk(min(TOLD, read.shape[-1]), dim=-1)
        slots = most.indices.masked_fill(most.values <= 0, -1)
        sources, shares = memory.origins  # b a r
        room = self.memory.slots
        told = min(TOLD, room)
        return Looked(
            widened(slots, 2, told, -1), widened(most.values, 2, told, 0),
            widened(sources, 1, room, -1), widened(shares, 1, room, 0),
        )  # fmt: skip


def last_of(units: Tensor, seen: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """The states (b n d) of each text's last window, and which of them are its tokens (b n)."""
    last = (real.sum(1) - 1).clamp(min=0)  # b
    each = torch.arange(len(last), device=last.device)
    return units[each, last], seen[each, last]


def places_of(documents: Tensor, windows: int) -> Tensor:
    """Where each window (w) stands in the table of documents (b s), flat; padding is anywhere."""
    flat = documents.flatten()
    spot = torch.where(flat >= 0, flat, windows)
    order = torch.arange(len(flat), device=flat.device)
    return flat.new_zeros(windows + 1).scatter(0, spot, order)[:windows]


def widened(part: Tensor, axis: int, size: int, value: float) -> Tensor:
    """As long as ``size`` along an axis, ``value`` behind."""
    shape = list(part.shape)
    shape[axis] = size - part.shape[axis]
    return torch.cat([part, part.new_full(shape, value)], axis)
