"""A sentence as the sum of its words, where words never met are told by their neighbours.

Shapes: u texts, w words, t tables, d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import Bag


class ContextBag(nn.Module):
    """A ``bag`` where an unseen word is what stands left and right of it, in vectors of their own.

    Weston et al. 2015a, section 3.5. The data gives ``unseen`` ids, from ``vocab`` on, to words
    that training never met (``data.unseen``); they have no vectors. For the neighbours' vectors to
    be learned, a word is ``hidden`` that often in training, as if it had never been met.

    Where we differ: the neighbours are those in this text, not those of all texts so far.
    """

    def __init__(
        self, width: int, vocab: int, unseen: int = 0, *, tables: int = 1, hidden: float = 0.1
    ) -> None:
        super().__init__()
        if not 0 <= hidden < 1:
            raise ValueError(f"context takes hidden from 0 to below 1, not {hidden}")
        self.width, self.vocab, self.unseen, self.hidden = width, vocab, unseen, hidden
        self.bag = Bag(width, 3 * vocab, tables=tables, position=False)  # words, left, right

    @property
    def tables(self) -> nn.ParameterList:
        return self.bag.tables

    @property
    def words(self) -> nn.Parameter:
        return self.bag.words

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """``tokens``, ``mask``: u w → states u t d."""
        strange = tokens >= self.vocab
        if self.training and self.hidden:
            strange = strange | (torch.rand_like(tokens, dtype=torch.float) < self.hidden)
        return self.bag(*self.features(tokens, mask, strange))

    def features(self, tokens: Tensor, mask: Tensor, strange: Tensor) -> tuple[Tensor, Tensor]:
        """The number of every feature, and whether it is there: u 3w each."""
        named = mask & (tokens < self.vocab)
        tokens = torch.where(named, tokens, 0)
        left, right = (nn.functional.pad(tokens, side) for side in ((1, -1), (-1, 1)))
        beside = [nn.functional.pad(named, side) & mask & strange for side in ((1, -1), (-1, 1))]
        ids = torch.cat([tokens, self.vocab + left, 2 * self.vocab + right], -1)
        return ids, torch.cat([named & ~strange, *beside], -1)
