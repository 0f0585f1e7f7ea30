"""ELECTRA's head: was this token replaced?

Shapes: b batch, n tokens, d width.
"""

from torch import Tensor, nn

from mnemic.encode.stacks.block import ACTIVATIONS, Activation
from mnemic.memory import Reading
from mnemic.respond.contract import Response


class ReplacedTokenHead(Response):
    """Score whether each token was replaced: ``w · gelu(W h)`` (Clark et al. 2020, section 2)."""

    source = "text"
    replaces = "masked"
    corpus_metrics = "replaced"

    def __init__(self, width: int, *, activation: Activation = "gelu") -> None:
        super().__init__()
        self.dense, self.score = nn.Linear(width, width), nn.Linear(width, 1)
        self.activation = ACTIVATIONS[activation]

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Score every token: ``states`` b n d → b n."""
        return self.score(self.activation(self.dense(states))).squeeze(-1)
