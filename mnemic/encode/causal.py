"""The causal Transformer encoder: each token sees itself and the tokens before it.

Shapes: b batch, n tokens, m earlier tokens, h heads, d width.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from mnemic.encode.embeddings import DEFAULT_EMBEDDINGS
from mnemic.encode.stacks import DECODERS, DecoderOutput, KeyValueCache, StackContext, extend_context
from mnemic.encode.token_encoder import TokenEncoder
from mnemic.recipe import build

DEFAULT_STACK: Mapping[str, Any] = {"kind": "transformer"}


class CausalEncoder(TokenEncoder):
    """The body of a causal language model (Radford et al. 2018).

    ``memory_length`` is the number of earlier states per layer that a segment of a running text
    attends to (Dai et al. 2019, section 3.2): ``encode_segment`` reads such a text segment by
    segment. No weight depends on it, so a test may have a longer memory than training.
    """

    is_causal = True

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS,
        stack: Mapping[str, Any] = DEFAULT_STACK,
        memory_length: int = 0,
    ) -> None:
        super().__init__(width, vocab, embeddings)
        self.stack: Any = build(DECODERS, stack, width=width, cross=False)
        self.memory_length = memory_length
        self.check_memory_length("transformer")

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

    def encode_segment(
        self, tokens: Tensor, mask: Tensor, context: StackContext | None = None
    ) -> tuple[Tensor, StackContext]:
        """Encode the next segment of texts; return states and the next context.

        ``tokens``, ``mask``: b n → b n d. Gradients reach the weights that project the context, and
        nothing of earlier segments.
        """
        output = self.stack(self.embeddings(tokens, mask), mask, context=context)
        return output.states, extend_context(context, output.layer_inputs, mask, self.memory_length)

    def iterate_scores(self, tokens: Tensor, mask: Tensor, context: StackContext) -> Iterator[Tensor]:
        """Yield each layer's attention scores of the context and the segment, b h n m+n."""
        yield from self.stack.iterate_scores(self.embeddings(tokens, mask), mask, context)
