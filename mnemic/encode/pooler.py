"""BERT's pooler: one vector per text.

Shapes: b batch, n tokens, d width.
"""

from torch import Tensor, nn


class Pooler(nn.Module):
    """tanh(W x + b) of the first token's state, as in BERT (Devlin et al. 2019).

    Next-sentence prediction uses it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, states: Tensor) -> Tensor:
        """Pool hidden states ``states`` b n d → b d."""
        return self.dense(states[:, 0]).tanh()
