"""The decoder of Show, Attend and Tell: an LSTM that looks once per word.

Shapes: b pictures, n regions, m words, s slots, r random numbers, d width, v vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.respond.contract import Response


class CaptionState(NamedTuple):
    """The state of the decoder after some words, with the memory that it reads."""

    hidden: Tensor  # b d
    cell: Tensor  # b d
    slots: Any  # the memory's state


class CaptionDecoder(Response):
    """Write a caption, each word after a look at the picture (Xu et al. 2015).

    ``h_t = LSTM([E y_{t-1}; β_t ẑ_t], h_{t-1})`` (equations 1 to 3), where ẑ_t is what the memory
    finds with h_{t-1} and the gate ``β_t = σ(f_β(h_{t-1}))`` says how much to look (section 4.2.1;
    without ``gate`` it is 1); ``p(y_t) ∝ exp(L_o(E y_{t-1} + L_h h_t + L_z β_t ẑ_t))``
    (equation 7). The first state is computed from the mean of the regions by two one-layer
    networks.
    """

    source = "picture"
    reads_regions = has_word_vectors = True
    methods = ("caption",)

    def __init__(self, width: int, vocab: int, max_length: int, *, gate: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.max_length = max_length  # words of a caption, the end included
        self.words = nn.Embedding(vocab, width)
        self.cell = nn.LSTMCell(2 * width, width)
        self.init_hidden, self.init_cell = nn.Linear(width, width), nn.Linear(width, width)
        self.gate = nn.Linear(width, 1) if gate else None
        self.from_hidden = nn.Linear(width, width, bias=False)
        self.from_context = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, vocab)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, memory: Any, slots: Any, states: Tensor, mask: Tensor, words: Tensor, uniforms: Tensor | None = None
    ) -> tuple[Tensor, Reading]:
        """Score the word after each of ``words`` (b m), with the gaze of each.

        ``uniforms`` b 1+m: whether the picture is read softly, then a slot per word.
        """
        state, embedded = self.start(states, mask, slots), self.words(words)  # b m d
        hidden, contexts, readings = [], [], []
        for number, last_word in enumerate(embedded.unbind(1)):
            numbers = None if uniforms is None else uniforms[:, [0, 1 + number]]
            context, state, reading = self.attend(memory, last_word, state, numbers)
            hidden.append(state.hidden)
            contexts.append(context)
            readings.append(reading)
        gaze = Reading(
            torch.cat([reading.found for reading in readings], 1),
            torch.cat([reading.weights for reading in readings], 3),  # b 1 1 m s
            torch.cat([reading.scores for reading in readings], 3),
        )
        return self.score(embedded, torch.stack(hidden, 1), torch.stack(contexts, 1)), gaze

    @property
    def embeddings(self) -> Tensor:
        """The vectors of words: d v."""
        return self.words.weight.mT

    @torch.no_grad()
    def load_embeddings(self, embeddings: Tensor) -> None:
        """Replace the vectors of words (d v)."""
        self.words.weight.copy_(embeddings.mT)

    def start(self, states: Tensor, mask: Tensor, slots: Any) -> CaptionState:
        """Compute the state before the first word from the mean region (b n d)."""
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        return CaptionState(self.init_hidden(mean).tanh(), self.init_cell(mean).tanh(), slots)

    def step(self, memory: Any, last_words: Tensor, state: CaptionState) -> tuple[Tensor, CaptionState, Reading]:
        """Look once, then score the next word after ``last_words`` (b): b v, state and gaze."""
        embedded = self.words(last_words)
        context, state, reading = self.attend(memory, embedded, state)
        return self.score(embedded, state.hidden, context), state, reading

    def attend(
        self, memory: Any, embedded: Tensor, state: CaptionState, uniforms: Tensor | None = None
    ) -> tuple[Tensor, CaptionState, Reading]:
        """Read the memory after a word (b d); return context (b d), state and gaze."""
        reading: Reading = memory.read(state.slots, state.hidden[:, None, None], uniforms=uniforms)
        context = reading.found[:, 0]  # b d
        if self.gate is not None:
            context = self.gate(state.hidden).sigmoid() * context
        hidden, cell = self.cell(torch.cat([embedded, context], 1), (state.hidden, state.cell))
        return context, CaptionState(hidden, cell, state.slots), reading

    def score(self, embedded: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """Score all words (… v) from the last word, the state and the context."""
        logits: Tensor = self.out(self.dropout(embedded + self.from_hidden(hidden) + self.from_context(context)))
        return logits
