"""The Transformer encoder: embeddings, then a stack in which every token sees every token.

Shapes: b batch, n tokens, m context positions, d width.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from mnemic.encode.embeddings import EMBEDDINGS
from mnemic.encode.stack import STACKS, Context, real
from mnemic.recipe import build

SUM: Mapping[str, Any] = {"kind": "sum"}
ENCODER: Mapping[str, Any] = {"kind": "encoder"}


class TransformerEncoder(nn.Module):
    """Tokens read in both directions at once (Vaswani et al. 2017; as a model, BERT)."""

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        embeddings: Mapping[str, Any] = SUM,
        stack: Mapping[str, Any] = ENCODER,
    ) -> None:
        super().__init__()
        self.width = width
        self.embeddings = build(EMBEDDINGS, embeddings, width=width, vocab=vocab)
        self.stack = build(STACKS, stack, width=width)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor,
        context: Context | None = None,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """``tokens`` b n → b n d, zeros at padding.

        ``mask`` is b n, or b n n where not every token may see the same: texts packed into one
        row, say, which also want their own ``positions``. ``context`` is seen by every token.
        """
        x = self.embeddings(tokens, real(mask), segments=segments, positions=positions)
        return self.stack(x, mask, context)
