"""A text as one vector, the way BERT's authors did it.

Shapes: b batch, n tokens, d width.
"""

from torch import Tensor, nn


class Pooler(nn.Module):
    """tanh(W x + b) of the first token (Devlin et al. 2019), as next-sentence prediction has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, states: Tensor) -> Tensor:
        """``states`` b n d → b d."""
        return self.dense(states[:, 0]).tanh()
