"""Bag of words: a sentence as the sum of its word vectors, weighted by position.

Shapes: u texts, w words, v vocabulary, t tables, d width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Up to this vocabulary size, counting words and one matmul beats looking up each word.
MAX_DENSE_VOCAB = 4096


class Bag(nn.Module):
    """Sum the word vectors of each text, once per table (Sukhbaatar et al. 2015, 4.1).

    With ``position`` a word at position j counts ``l_kj = 1 + 4 (k - (d+1)/2) (j - (J+1)/2) / (d
    J)`` in channel k: the authors' code, not the paper's formula, with J the longest text of the
    *dataset* (``longest``), not of this text. Without it this is a plain bag of words. Word vectors
    start at random with this standard ``deviation``, one number for all tables or one for each.
    """

    reads_texts = True

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        tables: int = 1,
        max_length: int = 12,
        position: bool = True,
        deviation: float | Sequence[float] = 0.1,
    ) -> None:
        super().__init__()
        deviations = [deviation] * tables if isinstance(deviation, int | float) else list(deviation)
        if len(deviations) != tables:
            raise ValueError(f"a bag of {tables} tables has as many deviations, not {deviations}")
        self.width = width
        self.position = position
        self.tables = nn.ParameterList(torch.randn(vocab, width) * spread for spread in deviations)
        self.max_length = max_length
        self.register_buffer("channel", channel_weights(width, max_length), persistent=False)  # d
        self.channel: Tensor

    @property
    def words(self) -> nn.Parameter:
        """The word vectors, for parts that share them."""
        return self.tables[0]

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: ``tokens``, ``mask``: u w → states u t d."""
        vocab = self.tables[0].shape[0]
        return self.sum_by_counts(tokens, mask) if vocab <= MAX_DENSE_VOCAB else self.sum_by_lookup(tokens, mask)

    def sum_by_counts(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Sum word vectors by counting words, with one matmul, for small vocabularies.

        Since l_kj = 1 + channel_k · position_j, two counts of words are enough.
        """
        word_weights = mask.to(self.channel.dtype)  # u w
        table = torch.cat(list(self.tables), 1)  # v (t d)
        counts = word_weights.new_zeros(*tokens.shape[:-1], table.shape[0])  # u v
        total = counts.scatter_add(-1, tokens, word_weights)
        if self.position:
            position_counts = counts.scatter_add(-1, tokens, word_weights * self.centered_positions(tokens))
            total = torch.cat([total, position_counts], -1)  # u 2v
            table = torch.cat([table, table * self.channel.repeat(len(self.tables))])  # 2v (t d)
        return (total @ table).unflatten(-1, (len(self.tables), self.width))  # u t d

    def sum_by_lookup(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Sum word vectors by looking up each word, for large vocabularies."""
        word_weights = mask.to(self.channel.dtype).unsqueeze(-1)  # u w 1
        if self.position:
            word_weights = word_weights * (1 + self.centered_positions(tokens).unsqueeze(-1) * self.channel)  # u w d
        states = [(nn.functional.embedding(tokens, t) * word_weights).sum(-2) for t in self.tables]
        return torch.stack(states, -2)  # u t d

    def centered_positions(self, tokens: Tensor) -> Tensor:
        """Return each position relative to the middle of the longest text (w)."""
        position = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)
        return position - (self.max_length + 1) / 2


def channel_weights(width: int, longest: int) -> Tensor:
    """Return the channel factor of position encoding (d).

    Channel factor times centered position is the position encoding minus 1.
    """
    return 4 * (torch.arange(1, width + 1) - (width + 1) / 2) / (width * longest)
