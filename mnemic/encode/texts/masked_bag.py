"""A sentence as the sum of its words, each weighted by a learned mask of its place.

Shapes: u texts, w words, j places (the longest text), v vocabulary, t tables, d width.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import DENSE


class MaskedBag(nn.Module):
    """``Σ_j f_j ∘ E w_j`` with one word table E and one mask f a table (Henaff et al. 2017, eq. 1).

    EntNet's encoder: table 0 are the stories' masks, table 1 the questions'. As ``bag``, but the
    weight of a place is learned, and all tables share their words.
    ``start="ones"`` begins as a plain bag of words, as the paper says. In the authors' code that
    is true of the questions alone: ``"noise"`` begins the stories' mask as small noise, too.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        tables: int = 1,
        longest: int = 12,
        start: Literal["ones", "noise"] = "ones",
    ) -> None:
        super().__init__()
        self.width = width
        self.words = nn.Parameter(torch.randn(vocab, width) * 0.1)
        masks = torch.ones(tables, longest, width)
        if start == "noise":
            masks[0] = torch.randn(longest, width) * 0.1
        self.masks = nn.Parameter(masks)  # t j d

    @property
    def tables(self) -> list[Tensor]:
        """The word vectors, which all tables share: what a tied response uses."""
        return [self.words]

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """``tokens``, ``mask``: u w → states u t d."""
        if tokens.shape[-1] > self.masks.shape[1]:
            most = self.masks.shape[1]
            raise ValueError(
                f"a text of {tokens.shape[-1]} words, but this network has masks for the places of "
                f"at most {most}; say it in shorter sentences"
            )
        small = self.words.shape[0] <= DENSE
        return self.counted(tokens, mask) if small else self.looked_up(tokens, mask)

    def counted(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Where each word stands as zeros and ones, and one matmul with all words at all places."""
        places, vocab = tokens.shape[-1], self.words.shape[0]
        where = self.words.new_zeros(tokens.shape[-2], places, vocab)  # u w v
        where = where.scatter(-1, tokens.unsqueeze(-1), mask.to(where.dtype).unsqueeze(-1))
        placed = self.masks[:, :places].transpose(0, 1).unsqueeze(1) * self.words.unsqueeze(1)
        whole = where.flatten(-2) @ placed.flatten(2).flatten(0, 1)  # u (w v) @ (w v) (t d)
        return whole.unflatten(-1, (self.masks.shape[0], self.width))  # u t d

    def looked_up(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The definition, word by word; for vocabularies too large to count in."""
        vectors = nn.functional.embedding(tokens, self.words) * mask.unsqueeze(-1)  # u w d
        return (vectors.unsqueeze(-3) * self.masks[:, : tokens.shape[-1]]).sum(-2)  # u t d
