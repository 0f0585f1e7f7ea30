"""Token classification head: a tag for every token.

Shapes: b windows, n tokens, d width, c tags.
"""

from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.memory import Reading
from mnemic.respond.contract import Response


class TagHead(Response):
    """Score every tag of every token (Devlin et al. 2019, section 5.3).

    The first token of a word decides the word's tag; the tags of its other tokens are ignored.
    """

    source = "text"
    reads_segments = True
    methods = ("tag",)

    def __init__(self, width: int, classes: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out = init_glorot(nn.Linear(width, classes))

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Score the tags of each token, b n c."""
        return self.out(self.dropout(states))  # b n c
