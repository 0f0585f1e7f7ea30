"""Heads of pre-training: masked words, next sentences, span boundaries, repeated tokens.

Shapes: b batch, n tokens, m masked positions, d width, v vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.pooler import Pooler
from mnemic.encode.stacks.block import Activation
from mnemic.memory import Reading
from mnemic.respond.contract import Response
from mnemic.respond.pretraining.span_boundary import SpanBoundaryHead
from mnemic.respond.vocabulary import VocabularyHead


class PretrainingLogits(NamedTuple):
    """Logits of masked words and of next-sentence prediction."""

    masked_logits: Tensor  # m v
    nsp_logits: Tensor | None  # b 2: follows, does not follow; None without this head
    boundary_logits: Tensor | None = None  # m v, from the ends of spans alone
    repeat_logits: Tensor | None = None  # b n, whether tokens are in the other text, too


class PretrainingHeads(Response):
    """A vocabulary head and a next-sentence head (Devlin et al. 2019, section 3.1).

    ``words`` are the encoder's word vectors, shared with the vocabulary head. Without
    ``next_sentence`` there is no next-sentence prediction; ``span_boundary`` adds SpanBERT's head,
    ``repeats`` that of ERNIE 2 for tokens that are in both texts of a pair.
    """

    source = "text"
    corruption = "masked"  # of texts that it is evaluated on

    def __init__(
        self,
        width: int,
        vocab: int,
        words: nn.Parameter | None = None,
        *,
        next_sentence: bool = False,
        span_boundary: bool = False,
        repeats: bool = False,
        activation: Activation = "gelu",
        epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        self.vocabulary = VocabularyHead(width, vocab, words=words, activation=activation, epsilon=epsilon)
        self.follows = NextSentenceHead(width) if next_sentence else None
        self.repeats = nn.Linear(width, 1) if repeats else None
        self.boundary = None
        if span_boundary:
            self.boundary = SpanBoundaryHead(width, self.vocabulary.words, activation=activation, epsilon=epsilon)

    def forward(
        self,
        query: Tensor | None,
        reading: Reading | None,
        states: Tensor,
        mask: Tensor,
        span_ends: Tensor | None = None,
    ) -> PretrainingLogits:
        """Score the words at masked positions, and next-sentence prediction.

        ``mask`` b n is True at masked positions; or it holds their indices in the flattened batch,
        m. ``span_ends`` m 3 are for the head of span boundaries.
        """
        positions = mask if mask.dim() == 1 else mask.flatten().nonzero().squeeze(1)
        nsp_logits = None if self.follows is None else self.follows(states)
        boundary_logits = None
        if self.boundary is not None and span_ends is not None:
            boundary_logits = self.boundary(states, span_ends)
        repeat_logits = None if self.repeats is None else self.repeats(states).squeeze(-1)
        return PretrainingLogits(self.vocabulary(states, positions), nsp_logits, boundary_logits, repeat_logits)

    def dummy_inputs(self, tokens: Tensor) -> dict[str, Any]:
        """Return indices of masked positions, whose number needs no look at values."""
        positions = torch.arange(tokens.numel())
        span_ends = None if self.boundary is None else torch.zeros(tokens.numel(), 3, dtype=torch.long)
        return {"answer_mask": positions, "span_ends": span_ends}


class NextSentenceHead(nn.Module):
    """Score next-sentence prediction from the first state, pooled by a dense layer and tanh."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = Pooler(width)
        self.score = nn.Linear(width, 2)

    def forward(self, states: Tensor) -> Tensor:
        """Score "follows" and "does not follow": ``states`` b n d → b 2."""
        return self.score(self.pool(states))
