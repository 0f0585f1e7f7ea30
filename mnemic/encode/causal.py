"""The causal Transformer: each token sees itself and the tokens before it.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from mnemic.encode.embeddings import EMBEDDINGS
from mnemic.encode.stack import DECODERS, Cache, Decoded
from mnemic.recipe import build

SUM: Mapping[str, Any] = {"kind": "sum"}
DECODER: Mapping[str, Any] = {"kind": "transformer"}


class CausalEncoder(nn.Module):
    """The body of a language model (Radford et al. 2018): as ``transformer``, but never ahead."""

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = SUM,
        stack: Mapping[str, Any] = DECODER,
    ) -> None:
        super().__init__()
        self.width = width
        self.embeddings = build(EMBEDDINGS, embeddings, width=width, vocab=vocab)
        self.stack = build(DECODERS, stack, width=width, cross=False)

    def forward(self, tokens: Tensor, mask: Tensor, context: Cache | None = None) -> Tensor:
        """``tokens``, ``mask``: b n → b n d; ``context`` is the cache of what came before."""
        return self.carry(tokens, mask, context).states

    def carry(
        self,
        tokens: Tensor,
        mask: Tensor,
        cache: Cache | None = None,
        *,
        positions: Tensor | None = None,
    ) -> Decoded:
        """As ``forward``, with the cache to go on with.

        Tokens are counted on from the cache's; rows padded in between want their ``positions``.
        """
        start = 0 if cache is None else cache.mask.shape[1]
        x = self.embeddings(tokens, mask, positions=positions, start=start)
        return self.stack(x, mask, cache)
