"""The memory network: input → generalization → output → response in one ``forward``.

Shapes: u texts, w words, b batch, n inputs, m queries, s slots, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading, Written
from mnemic.memory.append import find_slots
from mnemic.models.contract import BaseNetwork
from mnemic.models.text_model import gather_rows


class StoryInputs(NamedTuple):
    """A batch of stories and questions as rows of one table of distinct texts.

    Each distinct text is encoded once: stories that share sentences share the work, and padding
    costs nothing.
    """

    texts: Tensor  # u w, word ids
    mask: Tensor  # u w, True = a real word
    story: Tensor  # b n, rows of ``texts`` in story order; -1 = padding
    question: Tensor  # b m, rows of ``texts``
    uniforms: Tensor | None = None  # b r, uniform random numbers, during training
    values: Tensor | None = None  # b n, rows of ``texts``: a slot's value, if not its key
    candidates: Tensor | None = None  # c, word ids: the only answers to score


class ModelOutput(NamedTuple):
    """Logits of the answers, with the write and the reading that they come from."""

    logits: Tensor  # b m v
    reading: Reading
    written: Written
    segmentation_loss: Tensor | None = None  # b n, of a segmenter, during training


class MemoryNetwork(BaseNetwork):
    """A network of four parts: encode (I), write (G), read (O) and respond (R).

    Every memory network of the library is this class with different parts. ``encode`` reads each
    text by itself; ``ask``, if there is one, reads the questions instead; ``fuse`` lets the
    sentences of a story see each other. With ``segment``, outside training, a story is a stream of
    words, and the network writes the segments that it cuts the stream into;
    ``written.weights`` are still per sentence.

    >>> sizes = {"vocab": 30, "max_length": 8}  # words, and the longest text
    >>> network = mnemic.build_model(mnemic.load_recipe("memn2n")["model"], sizes)
    >>> isinstance(network, mnemic.MemoryNetwork)
    True
    >>> output = network(network.dummy_inputs(sizes))  # two sentences and a question
    >>> output.logits.shape  # batch, questions, vocabulary
    torch.Size([1, 1, 30])
    >>> output.reading.weights.shape  # the evidence: batch, hops, heads, questions, slots
    torch.Size([1, 3, 1, 1, 2])
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
    def num_uniforms(self) -> int:
        """How many uniform random numbers one example needs during training."""
        return self.memory.num_uniforms

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> StoryInputs:
        """Make a story of two texts of three words and a question."""
        texts = torch.ones(2, 3, dtype=torch.long)
        return StoryInputs(texts, texts > 0, torch.tensor([[0, 1]]), torch.tensor([[1]]))

    def forward(self, inputs: StoryInputs, teacher_slots: Tensor | None = None) -> ModelOutput:
        """Encode, write, read and respond.

        ``teacher_slots`` (b m f) are sentence numbers that the first f hops must read
        (teacher forcing of hard reads).
        """
        story, mask, query = self.encode_inputs(inputs)
        segmentation_loss = shares = None
        if self.segment is not None and self.training:
            segmentation_loss = gather_rows(
                self.segment.margin_loss(inputs.texts, inputs.mask), inputs.story.clamp(min=0)
            )
            segmentation_loss = segmentation_loss * mask
        elif self.segment is not None:
            story, mask, shares = self.encode_stream(inputs)
        empty = self.memory.empty(mask.shape[0], story)
        written = self.memory.write(empty, story, mask)
        if shares is not None:
            written = written._replace(weights=shares @ written.weights)
        slots = None if teacher_slots is None else find_slots(teacher_slots, written.weights)
        reading = self.memory.read(written.state, query, teacher_slots=slots, uniforms=inputs.uniforms)
        response_kwargs = {} if inputs.candidates is None else {"candidates": inputs.candidates}
        logits = self.respond(query, reading, story, mask, **response_kwargs)
        return ModelOutput(logits, reading, written, segmentation_loss)

    def encode_inputs(self, inputs: StoryInputs) -> tuple[Tensor, Tensor, Tensor]:
        """Encode stories (b n …, with their mask b n) and questions (b m …)."""
        states = self.encode(inputs.texts, inputs.mask)  # u …
        rows, mask = inputs.story.clamp(min=0), inputs.story >= 0  # b n
        story = gather_rows(states, rows)
        if inputs.values is not None:  # the first table is for keys, the others for values
            values = gather_rows(states, inputs.values.clamp(min=0))
            story = torch.cat([story[:, :, :1], values[:, :, 1:]], 2)
        if self.fuse is not None:
            story = self.fuse(story, mask, gather_rows(inputs.mask, rows))
        if self.ask is None:
            return story, mask, gather_rows(states, inputs.question)
        words, word_mask = (gather_rows(tensor, inputs.question) for tensor in (inputs.texts, inputs.mask))
        questions = self.ask(words.flatten(0, 1), word_mask.flatten(0, 1))  # (b m) …
        return story, mask, questions.unflatten(0, inputs.question.shape)

    def encode_stream(self, inputs: StoryInputs) -> tuple[Tensor, Tensor, Tensor]:
        """Cut stories into segments; return their states, mask and shares of the sentences."""
        rows, mask = inputs.story.clamp(min=0), inputs.story >= 0  # b n
        word_mask = gather_rows(inputs.mask, rows) & mask.unsqueeze(-1)
        segments = self.segment(gather_rows(inputs.texts, rows), word_mask)
        states = self.encode(segments.texts.flatten(0, 1), segments.mask.flatten(0, 1))
        return states.unflatten(0, rows.shape), segments.mask.any(-1), segments.shares
