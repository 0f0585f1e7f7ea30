"""Bag of n-grams: a sentence as the sum of its hashed n-grams.

Shapes: u texts, w words, g n-grams (all lengths together), t tables, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import Bag

# Odd, one per position, so that the order of words matters.
HASH_MULTIPLIERS = (1_000_003, 8_191, 131_071)


class Ngrams(nn.Module):
    """A bag of 1- to ``most``-grams (NG of Weston et al. 2015b).

    Each word has a vector of its own. A longer n-gram shares one of ``buckets`` with all that hash
    to the same number, so the encoder needs no dictionary of n-grams. These start at 0: an n-gram
    never met in training adds nothing.
    """

    reads_texts = True

    def __init__(self, width: int, vocab: int, *, tables: int = 1, max_n: int = 3, buckets: int = 1024) -> None:
        super().__init__()
        if not 1 <= max_n <= len(HASH_MULTIPLIERS) or buckets < 1:
            raise ValueError(f"ngrams takes most from 1 to 3 and buckets ≥ 1, not most = {max_n}, {buckets = }")
        self.width, self.vocab, self.max_n, self.buckets = width, vocab, max_n, buckets
        self.bag = Bag(width, vocab + buckets * (max_n > 1), tables=tables, position=False)
        with torch.no_grad():
            for table in self.bag.tables:
                table[vocab:] = 0.0

    @property
    def tables(self) -> nn.ParameterList:
        return self.bag.tables

    @property
    def words(self) -> nn.Parameter:
        """The vectors of words, then of buckets."""
        return self.bag.words

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: ``tokens``, ``mask``: u w → states u t d."""
        return self.bag(*self.hash_ngrams(tokens, mask))

    def hash_ngrams(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the id of every n-gram, and whether its words are real.

        Both are u g.
        """
        ids, real = [tokens], [mask]
        for length in range(2, min(self.max_n, tokens.shape[-1]) + 1):
            num_ngrams = tokens.shape[-1] - length + 1
            columns = [(tokens[..., i : i + num_ngrams], mask[..., i : i + num_ngrams]) for i in range(length)]
            mixed = torch.stack([token_ids * mixer for (token_ids, _), mixer in zip(columns, HASH_MULTIPLIERS)])
            ids.append(self.vocab + scramble_bits(mixed.sum(0) + length) % self.buckets)
            real.append(torch.stack([column_mask for _, column_mask in columns]).all(0))
        return torch.cat(ids, -1), torch.cat(real, -1)


def scramble_bits(number: Tensor) -> Tensor:
    """Hash numbers so that neighbors end up far apart; never negative."""
    number = number * 2_654_435_761 % 2**32
    return (number ^ (number >> 15)) * 40_503 % 2**32 >> 4
