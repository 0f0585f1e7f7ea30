"""Answer with words: the first from a memory read, the others by a GRU.

Shapes: b batch, m queries, n tokens, w words of an answer, d width, e width of the word vectors,
v vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import GRUCell
from mnemic.memory import Reading
from mnemic.respond.classes import masked_mean
from mnemic.respond.contract import Response
from mnemic.respond.pretraining.masked import NextSentenceHead
from mnemic.respond.vocabulary import VocabularyHead

MIN_PROBABILITY = 1e-9  # added before the logarithm
INITIAL_COPY_LOGIT = -2.0


class DecodingState(NamedTuple):
    """The decoder state between two words, for ``mnemic.respond.generate``."""

    hidden: Tensor  # b d
    first_logits: Tensor  # b v, of the first word
    has_begun: Tensor  # b, True = the first word was generated


class Predictor(Response):
    """Predict answers and masked words: the prediction module of BERT-MASS.

    The first word is scored from ``h = tanh(W [query; found; z])``, z the mean of the question's
    states; the other words by a GRU that starts with h and reads the word before. All words share
    BERT's vocabulary head, and with it the encoder's word vectors (``words``). ``add_found``
    combines a token's state with its memory read, to score masked words and next words. With
    ``copy`` these words may also be copied from memory, in proportion to the attention on their
    slots; a gate weighs copying (pointers; Merity et al. 2017, arXiv:1609.07843).
    """

    source = "carried memory"
    methods = ("remember", "ask", "load_state")

    def __init__(
        self, width: int, vocab: int, words: nn.Parameter | None = None, *, dropout: float = 0.0, copy: bool = False
    ) -> None:
        super().__init__()
        self.vocabulary = VocabularyHead(width, vocab, words=words)
        self.join = nn.Linear(3 * width, width)
        self.cell = GRUCell(self.vocabulary.words.shape[1], width)
        self.found = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.follows = NextSentenceHead(width)
        self.dropout = nn.Dropout(dropout)
        self.copies = nn.Linear(width, 1) if copy else None
        if self.copies is not None:
            nn.init.constant_(self.copies.bias, INITIAL_COPY_LOGIT)

    @property
    def can_copy(self) -> bool:
        """Whether words may be copied from memory."""
        return self.copies is not None

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Score the first word of the answer, b m v.

        ``query`` b m d; ``states`` b n d and ``mask`` b n are the question's.
        """
        return self.vocabulary(self.initial_state(query, reading, states, mask))

    def initial_state(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Compute the decoder state h that the first word is scored from, b m d."""
        mean = masked_mean(states, mask).unsqueeze(1).expand_as(query)
        joined = self.join(torch.cat([query, reading.found.to(query.dtype), mean], -1))
        return self.dropout(joined.tanh())

    def score_rest(self, initial_state: Tensor, answer_ids: Tensor) -> Tensor:
        """Score all words after the first, each given the words before it: b w-1 v.

        ``initial_state`` b d, ``answer_ids`` b w (teacher forcing).
        """
        hidden, hidden_states = initial_state, []
        for token in answer_ids[:, :-1].unbind(1):
            hidden = self.cell(nn.functional.embedding(token, self.vocabulary.words), hidden)
            hidden_states.append(hidden)
        if not hidden_states:
            return initial_state.new_zeros(len(initial_state), 0, self.vocabulary.words.shape[0])
        return self.vocabulary(torch.stack(hidden_states, 1))

    def start_decoding(self, initial_state: Tensor) -> DecodingState:
        """Make the decoder state before the first word from ``initial_state`` (b d)."""
        first_logits = self.vocabulary(initial_state.unsqueeze(1)).squeeze(1)
        return DecodingState(initial_state, first_logits, torch.zeros_like(initial_state[:, 0], dtype=torch.bool))

    def step(self, last_tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Score the next tokens, for ``mnemic.respond.generate``; it ignores the start token."""
        embedded = nn.functional.embedding(last_tokens, self.vocabulary.words)
        has_begun = state.has_begun.unsqueeze(1)
        hidden = torch.where(has_begun, self.cell(embedded, state.hidden), state.hidden)
        later_logits = self.vocabulary(hidden.unsqueeze(1)).squeeze(1)
        logits = torch.where(has_begun, later_logits, state.first_logits)
        return logits, DecodingState(hidden, state.first_logits, torch.ones_like(state.has_begun))

    def add_found(self, states: Tensor, memory_output: Tensor) -> Tensor:
        """Combine states (… d) with their memory reads (… d)."""
        return self.norm(states + self.found(memory_output.to(states.dtype)))

    def mix_copies(self, logits: Tensor, states: Tensor, copy_weights: Tensor, token_ids: Tensor) -> Tensor:
        """Mix the vocabulary distribution with copied words; return log-probabilities (p v).

        ``copy_weights`` p a are the weights of the source tokens ``token_ids`` p a. Without
        attention on any source the result is the softmax of the ``logits``.
        """
        if self.copies is None:
            return logits
        gate = torch.sigmoid(self.copies(states).float())  # p 1
        probabilities = logits.float().softmax(-1) * (1 - gate * copy_weights.sum(-1, keepdim=True))
        return (probabilities.scatter_add(1, token_ids, gate * copy_weights) + MIN_PROBABILITY).log()
