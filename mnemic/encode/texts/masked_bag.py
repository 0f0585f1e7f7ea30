"""Bag of words with a learned weight vector per position.

Shapes: u texts, w words, j positions (the longest text), v vocabulary, t tables, d width.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import MAX_DENSE_VOCAB


class MaskedBag(nn.Module):
    """Sum word vectors weighted by a learned mask per position (Henaff et al. 2017).

    ``Σ_j f_j ∘ E w_j`` with one word table E and one mask f per table (equation 1). EntNet's
    encoder: table 0 has the stories' masks, table 1 the questions'. As ``bag``, but the weight of a
    position is learned, and all tables share their words. ``start="ones"`` begins as a plain bag of
    words, as the paper says. In the authors' code that is true of the questions only: ``"noise"``
    begins the stories' mask as small noise, too.
    """

    reads_texts = True

    def __init__(
        self, width: int, vocab: int, *, tables: int = 1, max_length: int = 12, init: Literal["ones", "noise"] = "ones"
    ) -> None:
        super().__init__()
        self.width = width
        self.words = nn.Parameter(torch.randn(vocab, width) * 0.1)
        masks = torch.ones(tables, max_length, width)
        if init == "noise":
            masks[0] = torch.randn(max_length, width) * 0.1
        self.masks = nn.Parameter(masks)  # t j d

    @property
    def tables(self) -> list[Tensor]:
        """The word vectors, which all tables share, for tied responses."""
        return [self.words]

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: ``tokens``, ``mask``: u w → states u t d."""
        if tokens.shape[-1] > self.masks.shape[1]:
            raise ValueError(
                f"a text of {tokens.shape[-1]} words, but this network has masks for the places of "
                f"at most {self.masks.shape[1]}; say it in shorter sentences"
            )
        is_small = self.words.shape[0] <= MAX_DENSE_VOCAB
        return self.sum_by_one_hot(tokens, mask) if is_small else self.sum_by_lookup(tokens, mask)

    def sum_by_one_hot(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Sum masked word vectors with one matmul of one-hot words, for small vocabularies."""
        num_words, vocab = tokens.shape[-1], self.words.shape[0]
        one_hot = self.words.new_zeros(tokens.shape[-2], num_words, vocab)  # u w v
        one_hot = one_hot.scatter(-1, tokens.unsqueeze(-1), mask.to(one_hot.dtype).unsqueeze(-1))
        masked_vectors = self.masks[:, :num_words].transpose(0, 1).unsqueeze(1) * self.words.unsqueeze(1)
        sums = one_hot.flatten(-2) @ masked_vectors.flatten(2).flatten(0, 1)  # u (w v) @ (w v) (t d)
        return sums.unflatten(-1, (self.masks.shape[0], self.width))  # u t d

    def sum_by_lookup(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Sum masked word vectors by looking up each word, for large vocabularies."""
        vectors = nn.functional.embedding(tokens, self.words) * mask.unsqueeze(-1)  # u w d
        return (vectors.unsqueeze(-3) * self.masks[:, : tokens.shape[-1]]).sum(-2)  # u t d
