"""Input → Generalization → Output → Response, joined in one ``forward``.

Shapes: u texts, w words, b batch, n inputs, m queries, s slots, d width.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading, Written
from mnemic.memory.append import slots_of
from mnemic.models.text_model import take


class Inputs(NamedTuple):
    """What a network reads. Each different text stands in ``texts`` once, however often it is used.

    So nothing is computed for padding, and stories that share sentences share the work.
    """

    texts: Tensor  # u w, word ids
    mask: Tensor  # u w, True = a real word
    story: Tensor  # b n, rows of texts in the order they were said; -1 = nothing there
    question: Tensor  # b m, rows of texts
    rolls: Tensor | None = None  # b r, uniform random numbers while training
    values: Tensor | None = None  # b n, rows of texts: what a slot gives, if not what finds it
    candidates: Tensor | None = None  # c, word ids: the only answers that are scored


class Output(NamedTuple):
    """Scores of the answers, and everything that shows how they came about."""

    scores: Tensor  # b m v
    reading: Reading
    written: Written
    segments: Tensor | None = None  # b n, how badly sentences can be told apart, while learning to


class Network(nn.Module):
    """The four parts. Every memory network of the library is this class with other parts.

    I is ``encode``, text by text; ``ask`` reads questions instead, where a network reads them in
    another way; ``fuse`` lets the sentences of a story know of each other. With ``segment`` a story
    is a stream of words outside training, and what is written are the segments it is cut into;
    ``written.weights`` still tell of sentences.
    """

    def __init__(
        self,
        encode: nn.Module,
        memory: Any,
        respond: nn.Module,
        *,
        ask: nn.Module | None = None,
        fuse: nn.Module | None = None,
        segment: Any = None,
    ) -> None:
        super().__init__()
        self.encode, self.ask, self.fuse, self.segment = encode, ask, fuse, segment
        self.memory = memory
        self.respond = respond

    @property
    def rolls(self) -> int:
        """How many uniform random numbers an example needs while training."""
        return self.memory.rolls

    def forward(self, inputs: Inputs, follow: Tensor | None = None) -> Output:
        """``follow`` (b m f): the sentences to be read, hop by hop, where reads are taught."""
        story, seen, query = self.input(inputs)
        segments = shares = None
        if self.segment is not None and self.training:
            segments = take(self.segment.lost(inputs.texts, inputs.mask), inputs.story.clamp(min=0))
            segments = segments * seen
        elif self.segment is not None:
            story, seen, shares = self.stream(inputs)
        empty = self.memory.empty(seen.shape[0], story)
        written = self.memory.write(empty, story, seen)
        if shares is not None:
            written = written._replace(weights=shares @ written.weights)
        slots = None if follow is None else slots_of(follow, written.weights)
        reading = self.memory.read(written.state, query, follow=slots, rolls=inputs.rolls)
        ranked = {} if inputs.candidates is None else {"candidates": inputs.candidates}
        scores = self.respond(query, reading, story, seen, **ranked)
        return Output(scores, reading, written, segments)

    def input(self, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
        """I: the story's states (b n …), which of them are real (b n), the questions' (b m …)."""
        states = self.encode(inputs.texts, inputs.mask)  # u …
        rows, seen = inputs.story.clamp(min=0), inputs.story >= 0  # b n
        story = take(states, rows)
        if inputs.values is not None:  # the first table is of the key, the others of the value
            given = take(states, inputs.values.clamp(min=0))
            story = torch.cat([story[:, :, :1], given[:, :, 1:]], 2)
        if self.fuse is not None:
            story = self.fuse(story, seen, take(inputs.mask, rows))
        if self.ask is None:
            return story, seen, take(states, inputs.question)
        words, mask = (take(part, inputs.question) for part in (inputs.texts, inputs.mask))
        asked = self.ask(words.flatten(0, 1), mask.flatten(0, 1))  # (b m) …
        return story, seen, asked.unflatten(0, inputs.question.shape)

    def stream(self, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
        """The states of a story's segments, which are real, and their shares of the sentences."""
        rows, seen = inputs.story.clamp(min=0), inputs.story >= 0  # b n
        words = take(inputs.mask, rows) & seen.unsqueeze(-1)
        cut = self.segment(take(inputs.texts, rows), words)
        states = self.encode(cut.texts.flatten(0, 1), cut.mask.flatten(0, 1))
        return states.unflatten(0, rows.shape), cut.mask.any(-1), cut.shares
