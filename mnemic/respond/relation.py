"""Answer from how the items of a working buffer relate, two by two, given the question.

Shapes: b batch, m queries, k items of the buffer, n inputs, t tables, d width, v vocabulary.
"""

from itertools import pairwise

from torch import Tensor, nn

from mnemic.encode.gru_cell import glorot
from mnemic.memory import Reading


class Relation(nn.Module):
    """Score every word: ``W Σ_ij g([o_i; o_j; u])`` over all ordered pairs, i = j too.

    The relational reasoning module of Pavez et al. 2018, after the relation network of Santoro et
    al. 2017, whose second network is here W alone. g has ``depth`` layers of ``hidden`` ReLUs.
    The buffer's items come from the memory (``Reading.buffer``), so the cost is k², not n².
    """

    tied = False

    def __init__(self, width: int, vocab: int, *, hidden: int = 128, depth: int = 3) -> None:
        super().__init__()
        if hidden < 1 or depth < 1:
            raise ValueError(f"relation takes hidden and depth ≥ 1, not {hidden} and {depth}")
        sizes = [3 * width] + [hidden] * depth
        self.layers = nn.ModuleList(glorot(nn.Linear(*pair)) for pair in pairwise(sizes))
        self.out = glorot(nn.Linear(hidden, vocab, bias=False))

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        if reading.buffer is None:
            raise ValueError("a relation response needs a memory with a buffer, such as wmn")
        x = self.pairs(reading.buffer, query[:, :, 0])
        for layer in list(self.layers)[1:]:
            x = layer(x.relu())
        return self.out(x.relu().sum((2, 3)))  # b m v

    def pairs(self, items: Tensor, question: Tensor) -> Tensor:
        """g's first layer, b m k k h: a sum of three maps, so that each is done once an item."""
        first: nn.Linear = self.layers[0]  # type: ignore[assignment]
        one, other, asked = first.weight.chunk(3, 1)  # h d each
        given = nn.functional.linear(question, asked, first.bias)[:, :, None, None]  # b m 1 1 h
        return (items @ one.mT).unsqueeze(3) + (items @ other.mT).unsqueeze(2) + given
