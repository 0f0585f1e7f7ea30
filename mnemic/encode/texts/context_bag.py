"""Bag of words in which unseen words are represented by their neighbors.

Shapes: u texts, w words, t tables, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import Bag


class ContextBag(nn.Module):
    """A ``bag`` that represents an unseen word by its left and right neighbors.

    Weston et al. 2015a, section 3.5; neighbors have separate left and right vectors. The data gives
    ``unseen`` ids, from ``vocab`` on, to words that training never met (``data.unseen``); they have
    no vectors. To train the neighbors' vectors, each word is treated as unseen with probability
    ``hidden`` in training.

    Where we differ: the neighbors are those in this text, not those of all texts so far.
    """

    reads_texts = True

    def __init__(self, width: int, vocab: int, unseen: int = 0, *, tables: int = 1, hide_rate: float = 0.1) -> None:
        super().__init__()
        if not 0 <= hide_rate < 1:
            raise ValueError(f"context takes hidden from 0 to below 1, not {hide_rate}")
        self.width, self.vocab, self.unseen, self.hidden = width, vocab, unseen, hide_rate
        self.bag = Bag(width, 3 * vocab, tables=tables, position=False)  # words, left, right

    @property
    def tables(self) -> nn.ParameterList:
        return self.bag.tables

    @property
    def words(self) -> nn.Parameter:
        return self.bag.words

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: ``tokens``, ``mask``: u w → states u t d."""
        is_unseen = tokens >= self.vocab
        if self.training and self.hidden:
            is_unseen = is_unseen | (torch.rand_like(tokens, dtype=torch.float) < self.hidden)
        return self.bag(*self.build_features(tokens, mask, is_unseen))

    def build_features(self, tokens: Tensor, mask: Tensor, is_unseen: Tensor) -> tuple[Tensor, Tensor]:
        """Return the id of every feature, and whether it is present: u 3w each."""
        is_known = mask & (tokens < self.vocab)
        tokens = torch.where(is_known, tokens, 0)
        left_ids, right_ids = (nn.functional.pad(tokens, side) for side in ((1, -1), (-1, 1)))
        neighbor_masks = [nn.functional.pad(is_known, side) & mask & is_unseen for side in ((1, -1), (-1, 1))]
        ids = torch.cat([tokens, self.vocab + left_ids, 2 * self.vocab + right_ids], -1)
        return ids, torch.cat([is_known & ~is_unseen, *neighbor_masks], -1)
