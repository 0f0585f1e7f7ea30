"""Answer with a class of the whole text, or with a number.

Shapes: b windows, n tokens, d width, c classes (1 where the answer is a number).
"""

from typing import Literal

from torch import Tensor, nn

from mnemic.encode.gru_cell import glorot
from mnemic.memory import Reading


class Classes(nn.Module):
    """Score every class: ``W₂ dropout(tanh(W₁ pooled))`` (Devlin et al. 2019, section 4.1).

    ``pool`` is the first token's state, which a pre-trained BERT has ready for this, or the
    mean over the texts' own tokens, which a network from scratch learns from sooner.
    """

    tied = False

    def __init__(
        self,
        width: int,
        classes: int,
        *,
        pool: Literal["first", "mean"] = "mean",
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.pool = pool
        self.inner = glorot(nn.Linear(width, width))
        self.dropout = nn.Dropout(dropout)
        self.out = glorot(nn.Linear(width, classes))

    def forward(
        self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor
    ) -> Tensor:
        pooled = states[:, 0] if self.pool == "first" else mean_of(states, mask)  # b d
        return self.out(self.dropout(self.inner(pooled).tanh()))  # b c


def mean_of(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of the states (b n d) where ``mask`` (b n) is True; zeros where it never is."""
    told = mask.unsqueeze(-1).to(states.dtype)
    return (states * told).sum(1) / told.sum(1).clamp(min=1)
