"""Decoders without a cache of keys: they run again over all tokens so far.

Shapes: b batch, n new tokens, m tokens so far, d width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.masks import CausalMask
from mnemic.encode.stacks.decoder import DecoderOutput
from mnemic.recipe import ConfigError


class EmbeddingCache(NamedTuple):
    """The embeddings of the tokens so far: a decoder's state between two calls."""

    embeddings: Tensor  # b m d
    mask: Tensor  # b m, True at real tokens


class RecomputingDecoder(nn.Module):
    """The base of causal stacks that compute each token from all tokens before it.

    A subclass has ``run_layers(x, mask)`` over whole texts. Token by token gives the same states as
    all at once, at the cost of all tokens for each.
    """

    def __init__(self, width: int, cross: bool) -> None:
        super().__init__()
        if cross:
            raise ConfigError("this stack of layers has no attention over a source; use kind 'transformer'")
        self.width = width

    def run_layers(self, x: Tensor, mask: CausalMask) -> Tensor:
        """Run all layers over whole texts, b n d → b n d."""
        raise NotImplementedError

    def empty_cache(self, like: Tensor) -> EmbeddingCache:
        """Return an empty cache; ``like`` (b … d) gives batch size, type and device."""
        embeddings = like.new_zeros(like.shape[0], 0, self.width)
        return EmbeddingCache(embeddings, embeddings.new_zeros(embeddings.shape[:2], dtype=torch.bool))

    def forward(self, x: Tensor, mask: Tensor, cache: EmbeddingCache | None = None) -> DecoderOutput:
        """Run all layers on cached and new tokens; return the new states.

        ``x`` b n d, ``mask`` b n.
        """
        cache = self.empty_cache(x) if cache is None else cache
        cache = EmbeddingCache(torch.cat([cache.embeddings, x], 1), torch.cat([cache.mask, mask], 1))
        states = self.run_layers(cache.embeddings, CausalMask(cache.mask))
        return DecoderOutput(states[:, states.shape[1] - x.shape[1] :] * mask.unsqueeze(-1), cache)
