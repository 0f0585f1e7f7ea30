"""Vector of a text, for networks that only embed.

Shapes: b windows, n tokens, d width, p width of the projection.
"""

from typing import Literal

from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.memory import Reading
from mnemic.recipe import ConfigError
from mnemic.respond.classes import masked_mean
from mnemic.respond.contract import Response


class VectorHead(Response):
    """Pool the states of a text into its vector, which ``embed`` normalizes.

    ``pool``: the mean of the text's tokens, or the first token's state. With ``projection`` the
    loss sees a hidden layer and a projection to so many numbers (Chen et al. 2020, section 2.1);
    they are for training alone, and no part of the vector.
    """

    source = "text"
    pools_text = True
    methods = ("embed",)

    def __init__(self, width: int, *, pool: Literal["first", "mean"] = "mean", projection: int = 0) -> None:
        super().__init__()
        if projection < 0:
            raise ConfigError(f"model.respond.projection is a width, or 0 for none, not {projection}")
        self.text_vector = pool
        self.project = (
            nn.Sequential(init_glorot(nn.Linear(width, width)), nn.ReLU(), init_glorot(nn.Linear(width, projection)))
            if projection
            else None
        )

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Compute the vector of each window, b d; in training its projection, b p."""
        pooled = states[:, 0] if self.text_vector == "first" else masked_mean(states, mask)
        return self.project(pooled) if self.project is not None and self.training else pooled
