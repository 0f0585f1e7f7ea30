"""The causal Transformer encoder: each token sees itself and the tokens before it.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS
from mnemic.encode.stacks import DECODERS, DecoderOutput, KeyValueCache
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import build

DEFAULT_STACK: Mapping[str, Any] = {"kind": "transformer"}


class CausalEncoder(TokenEncoder):
    """The body of a causal language model (Radford et al. 2018)."""

    is_causal = True

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        stack: Mapping[str, Any] = DEFAULT_STACK,
    ) -> None:
        super().__init__(width, vocab, embeddings)
        self.stack = build(DECODERS, stack, width=width, cross=False)

    def forward(self, tokens: Tensor, mask: Tensor, context: KeyValueCache | None = None) -> Tensor:
        """Encode tokens causally; ``context`` is the key/value cache of earlier tokens.

        ``tokens``, ``mask``: b n → b n d.
        """
        return self.encode_with_state(tokens, mask, context).states

    def encode_with_state(
        self, tokens: Tensor, mask: Tensor, cache: KeyValueCache | None = None, *, positions: Tensor | None = None
    ) -> DecoderOutput:
        """Encode tokens and return their states with the extended key/value cache.

        Positions continue after the tokens of the cache; rows with padding in between need their
        own ``positions``.
        """
        start = 0 if cache is None else cache.mask.shape[1]
        x = self.embeddings(tokens, mask, positions=positions, start=start)
        return self.stack(x, mask, cache)
