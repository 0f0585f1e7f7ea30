"""A network without a memory: an encoder and a response over windows of texts.

Shapes: b windows, n tokens, t tokens of all windows, e texts, s windows of the longest, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.encode.embeddings import Notes
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks import FactorizationOrder, StackContext
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.memory import Reading
from mnemic.models.contract import BaseNetwork
from mnemic.models.stream import StreamMemory, read_stream_memory
from mnemic.respond.contract import Response


class WindowBatch(NamedTuple):
    """A batch of windows of texts, with masks."""

    tokens: Tensor  # b n, ids
    mask: Tensor  # b n, True = a real token
    segment_ids: Tensor  # b n, 1 = a token of the second text of a pair
    answer_mask: Tensor  # b n, True = an answer may be about the token; False = special, padding
    max_tokens: int = 0  # upper bound of the number of real tokens; 0 = unknown
    decoder_tokens: Tensor | None = None  # b m, answers so far, for a response that decodes
    decoder_positions: Tensor | None = None  # b m, of decoder_tokens in their text; None: from 0 on
    document_windows: Tensor | None = None  # e s, the windows of each text in order; -1 = none
    stream_starts: Tensor | None = None  # b, numbers of the first tokens of segments of running text
    memory: StreamMemory | None = None  # of the segments before, if the encoder has a memory length
    span_ends: Tensor | None = None  # m 3, of masked tokens: positions around their span, offset in it
    notes: Notes | None = None  # to mix into the embeddings, if the encoder takes them
    order: FactorizationOrder | None = None  # in which asked tokens are predicted; None: that of the text
    task_ids: Tensor | None = None  # b n, of each token's sequence, if the encoder has vectors of tasks


class PackedBatch(NamedTuple):
    """Windows concatenated into one row without padding; the response sees some of them."""

    tokens: Tensor  # 1 t, ids
    mask: PackedMask  # the boundaries of the windows
    segment_ids: Tensor  # 1 t
    positions: Tensor  # 1 t, counted from the first token of each window
    answer_mask: Tensor  # 1 t
    token_indices: Tensor  # b n, indices in the row of the tokens that the response sees
    token_mask: Tensor  # b n, True = a token of that window, False = padding


class TextOutput(NamedTuple):
    """Logits and hidden states of a network without a memory."""

    logits: Any  # b …, in the shape of the response
    states: Tensor  # b n d; 1 t d for a packed batch
    relevance: Tensor | None = None  # b, logits of a response that scores it
    memory: StreamMemory | None = None  # for the next segments of running text


class TextModel(BaseNetwork):
    """A network without a memory, such as a plain BERT with a task head.

    The response gets no query and no reading; its mask says which states an answer may be about. An
    encoder with a memory length carries the states of each segment of running text to the next.
    """

    def __init__(self, encode: TokenEncoder, respond: Response) -> None:
        super().__init__()
        self.encode, self.respond = encode, respond

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> WindowBatch:
        """Make two windows of the greatest length, with what the response needs."""
        inputs = make_dummy_windows(sizes["max_length"])
        return inputs._replace(**self.respond.dummy_inputs(inputs.tokens))

    def forward(self, inputs: WindowBatch | PackedBatch) -> TextOutput:
        """Encode windows and respond to each by itself."""
        encode_kwargs: dict[str, Any] = {"segments": inputs.segment_ids} if self.encode.segments > 1 else {}
        memory = None
        if isinstance(inputs, WindowBatch):
            if self.encode.takes_max_tokens:
                encode_kwargs["max_tokens"] = inputs.max_tokens
            if inputs.order is not None:
                encode_kwargs["order"] = inputs.order
            if inputs.notes is not None:
                encode_kwargs["notes"] = inputs.notes
            if inputs.task_ids is not None:
                encode_kwargs["task_ids"] = inputs.task_ids
            if inputs.stream_starts is not None and self.encode.memory_length:
                states, memory = self.encode_stream(inputs, inputs.stream_starts)
            else:
                states = self.encode(inputs.tokens, inputs.mask, **encode_kwargs)  # b n d
            extra_inputs = {"decoder_tokens": inputs.decoder_tokens, "decoder_positions": inputs.decoder_positions,
                            "span_ends": inputs.span_ends}  # fmt: skip
            response_kwargs = {name: value for name, value in extra_inputs.items() if value is not None}
            logits = self.respond(None, None, states, inputs.answer_mask, **response_kwargs)
            relevance = self.respond.score_relevance(states[:, 0])
        else:
            states = self.encode(inputs.tokens, inputs.mask, positions=inputs.positions, **encode_kwargs)
            answer_mask = gather_rows(inputs.answer_mask[0], inputs.token_indices) & inputs.token_mask  # b n
            window_states = gather_rows(states[0], inputs.token_indices)  # b n d
            logits = self.respond(None, None, window_states, answer_mask)
            relevance = self.respond.score_relevance(window_states[:, 0])
        # Matmuls may run in 16 bits; losses do not.
        logits = logits.float() if isinstance(logits, Tensor) else logits
        return TextOutput(logits, states, None if relevance is None else relevance.float(), memory)

    def encode_stream(self, inputs: WindowBatch, starts: Tensor) -> tuple[Tensor, StreamMemory]:
        """Encode segments of running text; return their states and the memory after them."""
        encode: Any = self.encode
        states, context = encode.encode_segment(inputs.tokens, inputs.mask, select_context(inputs))
        return states, StreamMemory(context, starts + inputs.mask.sum(1))

    def read_memory(self, inputs: WindowBatch) -> Reading:
        """Return how much segments attend to the memory they come with: the evidence.

        Weights are b k h n m, of k layers; ``inputs.memory.token_numbers`` says which tokens the m
        states are of.
        """
        context = select_context(inputs)
        if context is None:
            raise ValueError("these inputs have no memory: pass that of the segments before, with their stream_starts")
        return read_stream_memory(self.encode, inputs.tokens, inputs.mask, context)


def select_context(inputs: WindowBatch) -> StackContext | None:
    """Select the states that segments of running text may attend to; None before the first."""
    if inputs.memory is None or inputs.stream_starts is None:
        return None
    return inputs.memory.select_continued(inputs.stream_starts)


def make_dummy_windows(length: int) -> WindowBatch:
    """Make a batch of two windows for a check of shapes."""
    tokens = torch.ones(2, length, dtype=torch.long)
    return WindowBatch(tokens, tokens > 0, tokens, tokens > 0)


def gather_rows(states: Tensor, rows: Tensor) -> Tensor:
    """Gather ``states[rows]`` (u … → b n …) by the indexing with the fastest gradient."""
    return states.index_select(0, rows.flatten()).unflatten(0, rows.shape)
