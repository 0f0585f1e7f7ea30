"""A sentence as the sum of its words, each weighted by its place.

Shapes: u texts, w words, v vocabulary, t tables, d width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

DENSE = 4096  # up to this vocabulary, counting words and one matmul beats looking each word up


class Bag(nn.Module):
    """Sum the word vectors of each text, once per table (Sukhbaatar et al. 2015, section 4.1).

    With ``position`` a word at place j counts ``l_kj = 1 + 4 (k - (d+1)/2) (j - (J+1)/2) / (d J)``
    in channel k: the authors' code, not the paper's formula, with J the longest text of the
    *data set* (``longest``), not of this text. Without it this is a plain bag of words.
    Word vectors start at random with this ``deviation``, of all tables or one for each.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        tables: int = 1,
        longest: int = 12,
        position: bool = True,
        deviation: float | Sequence[float] = 0.1,
    ) -> None:
        super().__init__()
        wide = [deviation] * tables if isinstance(deviation, int | float) else list(deviation)
        if len(wide) != tables:
            raise ValueError(f"a bag of {tables} tables has as many deviations, not {wide}")
        self.width = width
        self.position = position
        self.tables = nn.ParameterList(torch.randn(vocab, width) * own for own in wide)
        self.longest = longest
        self.register_buffer("channel", channel_weights(width, longest), persistent=False)  # d
        self.channel: Tensor

    @property
    def words(self) -> nn.Parameter:
        """The word vectors, for parts that share them."""
        return self.tables[0]

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """``tokens``, ``mask``: u w → states u t d."""
        vocab = self.tables[0].shape[0]
        return self.counted(tokens, mask) if vocab <= DENSE else self.looked_up(tokens, mask)

    def counted(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Since l_kj = 1 + channel_k · place_j, two counts of words and one matmul are enough."""
        here = mask.to(self.channel.dtype)  # u w
        table = torch.cat(list(self.tables), 1)  # v (t d)
        counts = here.new_zeros(*tokens.shape[:-1], table.shape[0])  # u v
        total = counts.scatter_add(-1, tokens, here)
        if self.position:
            placed = counts.scatter_add(-1, tokens, here * self.places(tokens))
            total = torch.cat([total, placed], -1)  # u 2v
            table = torch.cat([table, table * self.channel.repeat(len(self.tables))])  # 2v (t d)
        return (total @ table).unflatten(-1, (len(self.tables), self.width))  # u t d

    def looked_up(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The definition, word by word; for vocabularies too large to count in."""
        here = mask.to(self.channel.dtype).unsqueeze(-1)  # u w 1
        if self.position:
            here = here * (1 + self.places(tokens).unsqueeze(-1) * self.channel)  # u w d
        states = [(nn.functional.embedding(tokens, t) * here).sum(-2) for t in self.tables]
        return torch.stack(states, -2)  # u t d

    def places(self, tokens: Tensor) -> Tensor:
        """How far each place lies behind the middle of the longest text (w)."""
        place = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)
        return place - (self.longest + 1) / 2


def channel_weights(width: int, longest: int) -> Tensor:
    """How much each channel cares for places: channel · place is position encoding less 1 (d)."""
    return 4 * (torch.arange(1, width + 1) - (width + 1) / 2) / (width * longest)
