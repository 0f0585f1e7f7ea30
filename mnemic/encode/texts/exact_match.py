"""Add exact word matching to another text encoder.

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

DEFAULT_ENCODER: Mapping[str, Any] = {"kind": "bag", "position": False}
TEXT_ENCODERS: dict[str, Callable[..., Any]] = {"bag": Bag, "context-bag": ContextBag, "ngrams": Ngrams}


class ExactMatch(nn.Module):
    """Add λ Φ(x)ᵀΦ(y), the number of shared words, to the dot product of states.

    ``s(x, y) = Φ(x)ᵀUᵀUΦ(y) + λ Φ(x)ᵀΦ(y)``: Weston et al. 2015a, section 3.6. Of the width,
    ``channels`` are ``√λ Φ``, the same in all tables, and the rest is the encoder ``of``'s; so
    every dot product of states has both terms. λ is learned. Each word has a channel of its own
    where there are enough, else a fixed random vector of signs, whose products are right up to
    chance. Unseen words (``data.unseen``) count like any others.
    """

    reads_texts = True

    def __init__(
        self,
        width: int,
        vocab: int,
        unseen: int = 0,
        *,
        tables: int = 1,
        max_length: int = 12,
        encoder: Mapping[str, Any] = DEFAULT_ENCODER,
        channels: int = 20,
        weight: float = 0.1,
    ) -> None:
        super().__init__()
        if not 1 <= channels < width or not weight > 0:
            limits = "from 1 to width - 1 channels and a weight > 0"
            raise ValueError(f"exact takes {limits}, not {channels} of {width}, {weight = }")
        self.width, self.vocab, self.channels = width, vocab, channels
        sizes = {"vocab": vocab, "unseen": unseen, "tables": tables, "max_length": max_length}
        self.of = build(TEXT_ENCODERS, encoder, width=width - channels, **sizes)
        self.root = nn.Parameter(torch.tensor([weight**0.5]))  # √λ
        self.register_buffer("signs", make_word_signs(vocab + unseen, channels), persistent=False)  # v c
        self.signs: Tensor

    @property
    def tables(self) -> nn.ParameterList:
        return self.of.tables

    @property
    def words(self) -> nn.Parameter:
        return self.of.words

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: ``tokens``, ``mask``: u w → states u t d."""
        is_known = tokens < self.vocab
        if isinstance(self.of, ContextBag):
            states = self.of(tokens, mask)  # u t d-c
        else:
            states = self.of(torch.where(is_known, tokens, 0), mask & is_known)
        word_channels = nn.functional.embedding(tokens, self.signs) * mask.unsqueeze(-1)  # u w c
        exact = (self.root * word_channels.sum(-2)).unsqueeze(-2)  # u 1 c
        return torch.cat([states, exact.expand(*states.shape[:-1], -1)], -1)


def make_word_signs(num_words: int, channels: int) -> Tensor:
    """Return a fixed unit vector per word.

    It is one-hot, or random signs if there are too few channels.
    """
    if channels >= num_words:
        return torch.eye(num_words, channels)
    generator = torch.Generator().manual_seed(0)
    return (2.0 * torch.randint(2, (num_words, channels), generator=generator) - 1) * channels**-0.5
