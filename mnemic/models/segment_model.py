"""A network that reads a text segment by segment and carries a memory on: BERT-MASS.

Any encoder of tokens can be wrapped: each segment is encoded by itself, all of a batch at once;
only the memory goes through the segments one after another.

Shapes: b documents, s segments, n tokens of a segment, p units of a segment, m places asked for,
q tokens of a question, l lessons of a segment, d width.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.masked_layer import MaskedLayer, Places, places_of
from mnemic.encode.transformer import TransformerEncoder
from mnemic.memory import Reading
from mnemic.models.copy import Found, found_by, together, words_of
from mnemic.models.inputs import (
    IGNORE,
    Counted,
    Lesson,
    Recalled,
    Segments,
    any_of,
    counted,
    units_of,
)
from mnemic.models.scan_segments import Step, Told, walk
from mnemic.recipe import ConfigError
from mnemic.respond.classes import mean_of

Unit = Literal["tokens", "sentences"]
Pool = Literal["mean", "root"]
Tokens = Literal["controller", "masked"]
# Nothing, what was written in each segment, or also what memory says when asked for some of it.
Lessons = Literal["none", "written", "asked"]


class Encoded(NamedTuple):
    """The segments of a batch after I, ready to be written one after another."""

    units: Tensor  # b s p d
    seen: Tensor  # b s p
    only: Tensor | None  # b s p, what may be written, if not all
    asking: Tensor | None  # b s m d, the states of hidden tokens
    places: Places | None  # of (b s) m


class Carrier(nn.Module):
    """Encode, masked attention, write, read, answer, with the memory carried across segments.

    ``truncate``: the answer's gradient reaches the writes of so many last segments of each
    document (0: of all). ``lasts=False`` empties the memory before every segment: what the same
    weights know without it. ``unit`` is what a slot is written from; of sentences, ``pool`` says
    how: by the mean of their tokens, or their sum by the root of their number, by which a
    controller can tell long ones, which say more, from short ones; ``tokens`` whether the
    controller chooses among all tokens or among the masked ones alone. ``query`` is the question's
    first state or the mean of all. ``lessons`` units of each segment show whether the write worked.
    """

    rolls = 0  # nothing is drawn while training but dropout

    def __init__(
        self,
        encode: Any,
        memory: Any,
        respond: Any,
        mass: MaskedLayer | None = None,
        *,
        truncate: int = 0,
        lasts: bool = True,
        unit: Unit = "tokens",
        pool: Pool = "mean",
        tokens: Tokens = "controller",
        query: Literal["first", "mean"] = "mean",
        lessons: int = 4,
    ) -> None:
        super().__init__()
        self.encode, self.memory, self.respond, self.mass = encode, memory, respond, mass
        self.truncate, self.lasts, self.unit, self.tokens = truncate, lasts, unit, tokens
        self.query, self.lessons, self.pool = query, lessons, pool
        self.copies = getattr(respond, "copies", None) is not None
        if truncate < 0:
            raise ConfigError(f"carry.truncate is at least 0, which cuts nothing, not {truncate}")
        if lessons < 0:
            raise ConfigError(f"carry.lessons is at least 0, not {lessons}")
        if self.copies and unit != "tokens":
            raise ConfigError("respond.copies takes words from slots: carry.unit is 'tokens'")

    def forward(self, inputs: Segments, *, lessons: Lessons = "none") -> Recalled:
        """Read whole documents and answer. ``lessons`` adds what the losses of writing need."""
        encoded = self.encoded(inputs)
        state = self.empty(len(inputs.tokens), encoded.units[:, 0])
        state, found, told = self.carry(state, encoded, lessons, inputs)
        words = None
        if encoded.asking is not None and encoded.places is not None:
            rows, real = encoded.asking.flatten(0, 1), encoded.places.real  # (b s) m d
            read = rows.new_zeros(rows.shape) if found is None else found.states.flatten(0, 1)
            states = self.respond.known(rows[real], read[real])  # p d
            words = self.respond.vocabulary(states)  # p v
            if found is not None and found.copied is not None:
                shares, numbers = found.copied  # b s m a, b s a
                held = words_of(inputs, numbers).unsqueeze(2).expand_as(shares)
                read, held = (part.flatten(0, 1)[real] for part in (shares, held))  # p a
                words = self.respond.copied(words, states, read.float(), held)
        return self.answer(state, inputs)._replace(words=words, lessons=tuple(told))

    def empty(self, batch: int, like: Tensor) -> Any:
        """A memory in which nothing was written yet; ``like`` is b p d."""
        return None if self.memory is None else self.memory.empty(batch, like.unsqueeze(2))

    def encoded(self, inputs: Segments) -> Encoded:
        """I for all segments of all documents at once; those that are empty cost nothing."""
        batch, count, length = inputs.tokens.shape
        known = counted(inputs)
        mask, rows = inputs.mask.flatten(0, 1), known.rows  # (b s) n, r
        told = {"room": known.tokens} if isinstance(self.encode, TransformerEncoder) else {}
        states = self.encode(inputs.tokens.flatten(0, 1)[rows], mask[rows], **told)  # r n d
        states = states.to(self.encode.embeddings.tokens.dtype)  # what is carried stays exact
        asking = places = only = None
        if inputs.hidden is not None:
            places = places_of(inputs.hidden.flatten(0, 1))
            whole = spread(states, rows, batch * count)  # (b s) n d
            asking = self.masked(whole, mask, places).unflatten(0, (batch, count))
        seen = inputs.inside.flatten(0, 1)
        if self.tokens == "masked":
            only = seen.new_zeros(seen.shape) if inputs.hidden is None else inputs.hidden
            only = only.view(batch * count, length)
        if self.unit == "sentences":
            states, seen, only = self.pooled(states, inputs, known, only)
        whole = spread(states, rows, batch * count)  # (b s) p d
        shape = (batch, count)
        units, seen = whole.unflatten(0, shape), seen.unflatten(0, shape)
        only = None if only is None else only.unflatten(0, shape)
        return Encoded(units, seen, only, asking, places)

    def masked(self, states: Tensor, mask: Tensor, places: Places) -> Tensor:
        """The states of the hidden tokens, after MASS where there is one: (b s) m d."""
        return places.take(states) if self.mass is None else self.mass(states, mask, places)

    def pooled(
        self, states: Tensor, inputs: Segments, known: Counted, only: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The sentences of segments that are not empty (r p d), and of all which are real."""
        if inputs.sentences is None:
            raise ValueError("carry.unit = 'sentences' needs to know where sentences are")
        own, count = inputs.sentences.flatten(0, 1), known.sentences
        seen = any_of(own >= 0, own, count)
        only = None if only is None else any_of(only, own, count)
        return units_of(states, own[known.rows], count, root=self.pool == "root"), seen, only

    def carry(
        self,
        state: Any,
        encoded: Encoded,
        lessons: Lessons = "none",
        inputs: Segments | None = None,
    ) -> tuple[Any, Found | None, list[Lesson]]:
        """Go on from ``state``: read for the hidden tokens, then write, segment by segment.

        The memory after the last one, what was found for the hidden tokens, and lessons; to be
        ``asked`` for, they need the ``inputs``. A document that has ended leaves its memory as it
        is. Where nothing lies between two writes that may be one, they are.
        """
        if self.memory is None:
            return None, None, []
        found: list[Found] = []
        told: list[Lesson] = []
        if not self.memory.cuts and encoded.asking is None and lessons != "asked":
            encoded = joined(encoded) if self.lasts and not self.truncate else encoded
        for number, step in enumerate(self.steps(state, encoded)):
            if step.reading is not None:
                found.append(found_by(step.reading, step.before, copies=self.copies))
            if lessons != "none":
                told.append(Lesson(step.before, step.written, encoded.seen[:, number]))
            if lessons == "asked" and inputs is not None:
                told[-1] = self.recalled(told[-1], encoded.units[:, number], inputs, number)
            state = step.state
        return state, together(found) if found else None, told

    def steps(self, state: Any, encoded: Encoded) -> Iterator[Step]:
        """What happens in each segment, one after another, from ``state`` on."""
        told = Told(encoded.units, encoded.seen, encoded.only, encoded.asking)
        return walk(self.memory, state, told, truncate=self.truncate, lasts=self.lasts)

    def recalled(self, told: Lesson, units: Tensor, inputs: Segments, number: int) -> Lesson:
        """Ask the memory for some of what was just written: those ``units`` that went in most."""
        written = told.written
        amount = written.entered.detach().sum(-1)  # b p
        count = min(self.lessons, amount.shape[1])
        if not count:
            return told
        most, which = amount.topk(count, dim=1)  # b l
        asked = units.gather(1, which.unsqueeze(-1).expand(-1, -1, units.shape[-1]))
        recall = self.read(written.state, asked)
        put = written.weights.gather(
            1, which.unsqueeze(-1).expand(-1, -1, written.weights.shape[-1])
        )
        real = (most > 0) & (put.sum(-1) > 0)
        slots = torch.where(real, put.argmax(-1), -1)
        targets = tokens_of(inputs, number, which, self.unit).masked_fill(
            ~real.unsqueeze(-1), IGNORE
        )
        words = None
        if self.respond.says:
            words = self.respond.vocabulary(self.respond.norm(recall.found.to(units.dtype)))
        return told._replace(recall=recall, slots=slots, words=words, targets=targets)

    def answer(self, state: Any, inputs: Segments) -> Recalled:
        """What is said to the question, from memory alone."""
        query, reading, begin = self.asked(state, inputs)
        if not self.respond.says:
            none = query[..., :0]
            return Recalled(none, none[:, :0], none[:, 0], reading, state, None, ())
        return Recalled(
            scores=self.respond.vocabulary(begin),
            rest=self.respond.rest(begin.squeeze(1), inputs.words),
            follows=self.respond.follows(self.respond.known(query, reading.found)),
            reading=reading,
            state=state,
            words=None,
            lessons=(),
        )

    def asked(self, state: Any, inputs: Segments) -> tuple[Tensor, Reading, Tensor]:
        """The question's query, what it found, and what the first word is said from, b 1 d each.

        ``respond.saying`` of the last goes on from here, for ``mnemic.respond.generate``.
        """
        told = {"segments": torch.ones_like(inputs.question)} if self.tells_apart else {}
        states = self.encode(inputs.question, inputs.asked, **told)  # b q d
        mean = mean_of(states, inputs.asked)
        query = (states[:, 0] if self.query == "first" and states.shape[1] else mean).unsqueeze(1)
        reading = self.read(state, query)
        return query, reading, self.respond.begin(query, reading, states, inputs.asked)

    @property
    def tells_apart(self) -> bool:
        """Whether I has segment embeddings: texts are in the first, questions in the second."""
        return isinstance(self.encode, TransformerEncoder) and self.encode.segments > 1

    def embed(self, tokens: Tensor, mask: Tensor, inside: Tensor) -> Tensor:
        """Each text as one vector of length 1, b d: the mean of its own tokens' states.

        After MASS, where there is one, each token asked about by itself: b n of all three.
        """
        places = places_of(inside)
        states = self.masked(self.encode(tokens, mask), mask, places)
        return nn.functional.normalize(mean_of(states, places.real), dim=-1)

    def read(self, state: Any, query: Tensor) -> Reading:
        """O, with ``query`` b m d; without a memory nothing is found."""
        if self.memory is None:
            none = query.new_zeros(len(query), 1, 1, query.shape[1], 0)
            return Reading(torch.zeros_like(query), none, none)
        return self.memory.read(state, query.unsqueeze(2))


def spread(part: Tensor, rows: Tensor, count: int) -> Tensor:
    """Rows (r …) at their places among ``count``, zeros elsewhere."""
    return part.new_zeros(count, *part.shape[1:]).index_copy(0, rows, part)


def joined(encoded: Encoded) -> Encoded:
    """All segments as one, for a write at once; nothing is asked within."""

    def flat(part: Tensor) -> Tensor:
        return part.flatten(1, 2).unsqueeze(1)  # b 1 (s p) …

    only = None if encoded.only is None else flat(encoded.only)
    return Encoded(flat(encoded.units), flat(encoded.seen), only, None, None)


def tokens_of(inputs: Segments, number: int, which: Tensor, unit: Unit) -> Tensor:
    """The tokens of some units (b l) of a segment, b l j; IGNORE behind and for none."""
    ids, inside = inputs.tokens[:, number], inputs.inside[:, number]  # b n
    if unit == "tokens" or inputs.sentences is None:
        return ids.gather(1, which).masked_fill(~inside.gather(1, which), IGNORE).unsqueeze(-1)
    own = (inputs.sentences[:, number].unsqueeze(1) == which.unsqueeze(2)) & inside.unsqueeze(1)
    return ids.unsqueeze(1).masked_fill(~own, IGNORE)  # b l n
