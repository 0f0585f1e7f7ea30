"""Answer with a tag for every token.

Shapes: b windows, n tokens, d width, c tags.
"""

from torch import Tensor, nn

from mnemic.encode.gru_cell import glorot
from mnemic.memory import Reading


class Tags(nn.Module):
    """Score every tag of every token (Devlin et al. 2019, section 5.3).

    The first token of a word speaks for the word; what the others say is not asked.
    """

    tied = False

    def __init__(self, width: int, classes: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out = glorot(nn.Linear(width, classes))

    def forward(
        self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor
    ) -> Tensor:
        return self.out(self.dropout(states))  # b n c
