"""Answer with one word, as the first step of a decoder.

Shapes: b batch, m queries, n inputs, t tables (1), d width, v vocabulary.
"""

from torch import Tensor, nn

from mnemic.encode.gru_cell import Cell, glorot
from mnemic.memory import Reading


class DecodedWord(nn.Module):
    """``a_1 = GRU([y_0; q], a_0)`` with ``a_0 = m``, scores ``W a_1`` (Kumar et al. 2016, 2.4).

    Here an answer is always one entry of the vocabulary, so there is one step; nothing was said
    before it, y_0 = 0, and needs no weights.
    """

    tied = False

    def __init__(self, width: int, vocab: int) -> None:
        super().__init__()
        self.cell = Cell(width, width)
        self.words = glorot(nn.Linear(width, vocab, bias=False))

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        return self.words(self.cell(query.squeeze(2), reading.found))  # b m v
