"""Relation network over the items of a working buffer, given the question.

Shapes: b batch, m queries, k items of the buffer, n inputs, t tables, d width, v vocabulary.
"""

from itertools import pairwise

from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.memory import Reading
from mnemic.respond.contract import Response


class RelationHead(Response):
    """Score every word: ``W Σ_ij g([o_i; o_j; u])`` over all ordered pairs, also i = j.

    The relational reasoning module of Pavez et al. 2018, after the relation network of Santoro et
    al. 2017, whose second network is here W alone. g has ``depth`` layers of ``hidden`` ReLUs.
    The buffer's items come from the memory (``Reading.buffer``), so the cost is k², not n².
    """

    methods = ("ask_story",)

    def __init__(self, width: int, vocab: int, *, hidden: int = 128, depth: int = 3) -> None:
        super().__init__()
        if hidden < 1 or depth < 1:
            raise ValueError(f"relation takes hidden and depth ≥ 1, not {hidden} and {depth}")
        sizes = [3 * width] + [hidden] * depth
        self.layers = nn.ModuleList(init_glorot(nn.Linear(*pair)) for pair in pairwise(sizes))
        self.out = init_glorot(nn.Linear(hidden, vocab, bias=False))

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Score every word from the pairs in ``reading.buffer``, b m v."""
        if reading.buffer is None:
            raise ValueError("a relation response needs a memory with a buffer, such as wmn")
        x = self.encode_pairs(reading.buffer, query[:, :, 0])
        for layer in list(self.layers)[1:]:
            x = layer(x.relu())
        return self.out(x.relu().sum((2, 3)))  # b m v

    def encode_pairs(self, items: Tensor, question: Tensor) -> Tensor:
        """Apply g's first layer to all pairs, b m k k h.

        It is a sum of three linear maps, so that each is computed once per item.
        """
        layer: nn.Linear = self.layers[0]  # type: ignore[assignment]
        first_weight, second_weight, question_weight = layer.weight.chunk(3, 1)  # h d each
        question_part = nn.functional.linear(question, question_weight, layer.bias)[:, :, None, None]  # b m 1 1 h
        return (items @ first_weight.mT).unsqueeze(3) + (items @ second_weight.mT).unsqueeze(2) + question_part
