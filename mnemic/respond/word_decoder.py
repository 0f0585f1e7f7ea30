"""Word head of DMN: answer with one word, by one step of a GRU.

Shapes: b batch, m queries, n inputs, t tables (1), d width, v vocabulary.
"""

from torch import Tensor, nn

from mnemic.encode.gru_cell import GRUCell, init_glorot
from mnemic.memory import Reading
from mnemic.respond.contract import Response


class GRUWordHead(Response):
    """Score every word by one GRU step (Kumar et al. 2016, section 2.4).

    ``a_1 = GRU([y_0; q], a_0)`` with ``a_0 = m``; the logits are ``W a_1``. Here an answer is
    always one entry of the vocabulary, so there is one step; no word comes before it, so y_0 = 0
    and needs no weights.
    """

    methods = ("ask_story",)

    def __init__(self, width: int, vocab: int) -> None:
        super().__init__()
        self.cell = GRUCell(width, width)
        self.words = init_glorot(nn.Linear(width, vocab, bias=False))

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Score all words, b m v."""
        return self.words(self.cell(query.squeeze(2), reading.found))  # b m v
