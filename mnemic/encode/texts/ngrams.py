"""A sentence as the sum of its words, pairs of words, and so on.

Shapes: u texts, w words, g n-grams (all lengths together), t tables, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import Bag

MIXERS = (1_000_003, 8_191, 131_071)  # odd, one a place, so that the order of words counts


class Ngrams(nn.Module):
    """A bag of 1- to ``most``-grams (NG of Weston et al. 2015b): a ``bag`` of more than words.

    A word has a vector of its own. A longer n-gram shares one of ``buckets`` with all that hash to
    the same number, so the encoder needs no dictionary of n-grams. These begin at 0: one that was
    never met in training says nothing.
    """

    def __init__(
        self, width: int, vocab: int, *, tables: int = 1, most: int = 3, buckets: int = 1024
    ) -> None:
        super().__init__()
        if not 1 <= most <= len(MIXERS) or buckets < 1:
            came = f"most = {most}, buckets = {buckets}"
            raise ValueError(f"ngrams takes most from 1 to 3 and buckets ≥ 1, not {came}")
        self.width, self.vocab, self.most, self.buckets = width, vocab, most, buckets
        self.bag = Bag(width, vocab + buckets * (most > 1), tables=tables, position=False)
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
        """``tokens``, ``mask``: u w → states u t d."""
        return self.bag(*self.ngrams(tokens, mask))

    def ngrams(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The number of every n-gram, and whether all its words are real: u g each."""
        ids, real = [tokens], [mask]
        for length in range(2, min(self.most, tokens.shape[-1]) + 1):
            ends = tokens.shape[-1] - length + 1
            parts = [(tokens[..., i : i + ends], mask[..., i : i + ends]) for i in range(length)]
            mixed = torch.stack([part * mixer for (part, _), mixer in zip(parts, MIXERS)])
            ids.append(self.vocab + spread(mixed.sum(0) + length) % self.buckets)
            real.append(torch.stack([here for _, here in parts]).all(0))
        return torch.cat(ids, -1), torch.cat(real, -1)


def spread(number: Tensor) -> Tensor:
    """Neighbouring numbers far apart, none below 0."""
    number = number * 2_654_435_761 % 2**32
    return (number ^ (number >> 15)) * 40_503 % 2**32 >> 4
