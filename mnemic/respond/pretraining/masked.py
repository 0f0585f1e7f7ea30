"""BERT's pre-training heads: masked words and next-sentence prediction.

Shapes: b batch, n tokens, m masked positions, d width, v vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.pooler import Pooler
from mnemic.encode.stacks.block import Activation
from mnemic.memory import Reading
from mnemic.respond.contract import Response
from mnemic.respond.vocabulary import VocabularyHead


class PretrainingLogits(NamedTuple):
    """Logits of masked words and of next-sentence prediction."""

    masked_logits: Tensor  # m v
    nsp_logits: Tensor | None  # b 2: follows, does not follow; None without this head


class PretrainingHeads(Response):
    """A vocabulary head and a next-sentence head (Devlin et al. 2019, section 3.1).

    ``words`` are the encoder's word vectors, shared with the vocabulary head. Without
    ``next_sentence`` there is no next-sentence prediction.
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
        activation: Activation = "gelu",
        epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        self.vocabulary = VocabularyHead(width, vocab, words=words, activation=activation, epsilon=epsilon)
        self.follows = NextSentenceHead(width) if next_sentence else None

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> PretrainingLogits:
        """Score the words at masked positions, and next-sentence prediction.

        ``mask`` b n is True at masked positions; or it holds their indices in the flattened batch,
        m.
        """
        positions = mask if mask.dim() == 1 else mask.flatten().nonzero().squeeze(1)
        nsp_logits = None if self.follows is None else self.follows(states)
        return PretrainingLogits(self.vocabulary(states, positions), nsp_logits)

    def dummy_inputs(self, tokens: Tensor) -> dict[str, Any]:
        """Return indices of masked positions, whose number needs no look at values."""
        return {"answer_mask": torch.arange(tokens.numel())}


class NextSentenceHead(nn.Module):
    """Score next-sentence prediction from the first state, pooled by a dense layer and tanh."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = Pooler(width)
        self.score = nn.Linear(width, 2)

    def forward(self, states: Tensor) -> Tensor:
        """Score "follows" and "does not follow": ``states`` b n d → b 2."""
        return self.score(self.pool(states))
