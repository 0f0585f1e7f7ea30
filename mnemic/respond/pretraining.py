"""What BERT says while it is pre-trained: the hidden words, and whether the second text follows.

Shapes: b batch, n tokens, m places, d width, v vocabulary.
"""

from typing import NamedTuple

from torch import Tensor, nn

from mnemic.encode.block import Activation
from mnemic.encode.pooler import Pooler
from mnemic.memory import Reading
from mnemic.respond.vocabulary import VocabularyHead


class Said(NamedTuple):
    """Scores of the words at the places asked for, and of next-sentence prediction."""

    words: Tensor  # m v
    follows: Tensor | None  # b 2: it does, it does not; None if nobody asks


class PretrainingHeads(nn.Module):
    """A vocabulary head and a next-sentence head (Devlin et al. 2019, section 3.1).

    ``words`` are the encoder's word vectors, to be shared. Without ``pairs`` there is no
    next-sentence prediction.
    """

    tied = False

    def __init__(
        self,
        width: int,
        vocab: int,
        words: nn.Parameter | None = None,
        *,
        pairs: bool = False,
        activation: Activation = "gelu",
        epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        self.vocabulary = VocabularyHead(
            width, vocab, words=words, activation=activation, epsilon=epsilon
        )
        self.follows = FollowsHead(width) if pairs else None

    def forward(
        self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor
    ) -> Said:
        """``mask`` b n: which words are asked for; or their places in the flattened batch, m."""
        places = mask if mask.dim() == 1 else mask.flatten().nonzero().squeeze(1)
        follows = None if self.follows is None else self.follows(states)
        return Said(self.vocabulary(states, places), follows)


class FollowsHead(nn.Module):
    """Two scores of the first state, pooled by a dense layer and tanh."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = Pooler(width)
        self.score = nn.Linear(width, 2)

    def forward(self, states: Tensor) -> Tensor:
        """``states`` b n d → b 2: it follows, it does not."""
        return self.score(self.pool(states))
