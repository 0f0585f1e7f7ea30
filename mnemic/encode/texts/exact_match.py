"""Which words a text has, beside what another encoder says of it: shared words can be counted.

Shapes: u texts, w words, t tables, d width, c channels for words.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.texts.bag import Bag
from mnemic.encode.texts.context_bag import ContextBag
from mnemic.encode.texts.ngrams import Ngrams
from mnemic.recipe import build

PLAIN: Mapping[str, Any] = {"kind": "bag", "position": False}
OF: dict[str, Callable[..., Any]] = {"bag": Bag, "context": ContextBag, "ngrams": Ngrams}


class ExactMatch(nn.Module):
    """``s(x, y) = Φ(x)ᵀUᵀUΦ(y) + λ Φ(x)ᵀΦ(y)``: the second term counts the words that both have.

    Weston et al. 2015a, section 3.6. Of the width, ``channels`` are ``√λ Φ``, the same in all
    tables, and the rest is ``of``'s; so every dot product of states has both terms. λ is learned.
    A word's channels are its own where there are enough, else signs by dice that never change,
    whose products are right up to chance. Unseen words (``data.unseen``) count as any others.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        unseen: int = 0,
        *,
        tables: int = 1,
        longest: int = 12,
        of: Mapping[str, Any] = PLAIN,
        channels: int = 20,
        weight: float = 0.1,
    ) -> None:
        super().__init__()
        if not 1 <= channels < width or not weight > 0:
            came = f"{channels} of {width}, weight = {weight}"
            raise ValueError(
                f"exact takes from 1 to width - 1 channels and a weight > 0, not {came}"
            )
        self.width, self.vocab, self.channels = width, vocab, channels
        given = {"vocab": vocab, "unseen": unseen, "tables": tables, "longest": longest}
        self.of = build(OF, of, width=width - channels, **given)
        self.root = nn.Parameter(torch.tensor([weight**0.5]))  # √λ
        self.register_buffer("signs", signs(vocab + unseen, channels), persistent=False)  # v c
        self.signs: Tensor

    @property
    def tables(self) -> nn.ParameterList:
        return self.of.tables

    @property
    def words(self) -> nn.Parameter:
        return self.of.words

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """``tokens``, ``mask``: u w → states u t d."""
        met = tokens < self.vocab
        if isinstance(self.of, ContextBag):
            states = self.of(tokens, mask)  # u t d-c
        else:
            states = self.of(torch.where(met, tokens, 0), mask & met)
        own = nn.functional.embedding(tokens, self.signs) * mask.unsqueeze(-1)  # u w c
        exact = (self.root * own.sum(-2)).unsqueeze(-2)  # u 1 c
        return torch.cat([states, exact.expand(*states.shape[:-1], -1)], -1)


def signs(words: int, channels: int) -> Tensor:
    """A vector of length 1 for each word: a channel, or signs by dice if channels are too few."""
    if channels >= words:
        return torch.eye(words, channels)
    dice = torch.Generator().manual_seed(0)
    return (2.0 * torch.randint(2, (words, channels), generator=dice) - 1) * channels**-0.5
