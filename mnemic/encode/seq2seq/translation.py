"""A new encoder in place of a pre-trained encoder's word vectors, to translate (BART).

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks import real_token_mask
from mnemic.encode.transformer import DEFAULT_STACK, TokenInputs, TransformerEncoder
from mnemic.recipe import ConfigError

DEFAULT_SOURCE: Mapping[str, Any] = {}


class TranslationEncoder(TransformerEncoder):
    """Read a foreign language by a small encoder before a pre-trained one.

    Lewis et al. 2020, section 3.4. ``source`` has the ``embeddings`` and the ``stack`` of the small
    encoder, ``new`` of the network. Its states take the place of the pre-trained encoder's word
    vectors; positions, norm and layers of that encoder follow. It is trained in two phases: first
    the new encoder, the positions, and the queries, keys and values of the first layer; then all
    (recipe ``bart-translation``).

    Where we differ: one vocabulary serves both languages.
    """

    takes_notes = has_layers = False

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        stack: Mapping[str, Any] = DEFAULT_STACK,
        source: Mapping[str, Any] = DEFAULT_SOURCE,
    ) -> None:
        super().__init__(width, vocab, embeddings=embeddings, stack=stack)
        if unknown := source.keys() - {"embeddings", "stack"}:
            raise ConfigError(f"model.encode.source has embeddings and a stack, not {min(unknown)!r}")
        if self.segments:
            raise ConfigError("a translation's encoder has no segments: set model.encode.embeddings.segments=0")
        self.new = TransformerEncoder(width, vocab, **source)

    def embed(self, inputs: TokenInputs, mask: Tensor | PackedMask) -> tuple[Tensor, dict[str, Any]]:
        """Encode tokens by the new encoder, and add the positions of the pre-trained one."""
        x = self.new(inputs.tokens, mask, positions=inputs.positions)  # b n d
        x = x + self.embeddings.positions(inputs.tokens, positions=inputs.positions).to(x.dtype)
        return self.embeddings.dropout(self.embeddings.norm(x)) * real_token_mask(mask).unsqueeze(-1), {}
