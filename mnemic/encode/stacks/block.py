"""One layer of a Transformer encoder or decoder (Vaswani et al. 2017, figure 1).

Shapes: b batch, n tokens, m context positions, d width, h heads.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.encode.masks import CausalMask, find_visible_keys
from mnemic.encode.norms import NormKind, make_norm, normalize
from mnemic.encode.packed import PackedMask

Norm = Literal["pre", "post"]
Activation = Literal["gelu", "gelu_tanh", "relu"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": nn.functional.gelu,
    "gelu_tanh": partial(nn.functional.gelu, approximate="tanh"),  # ALBERT and GPT-2
    "relu": nn.functional.relu,
}


class AddNorm(nn.Module):
    """A residual connection with a norm after ("post") or before ("pre") the sub-layer.

    "post" is norm(x + sublayer(x)), "pre" is x + sublayer(norm(x)). ``norm_kind`` is the norm. One
    over the batch needs to know the real tokens, ``is_real`` b n.
    """

    def __init__(
        self, width: int, *, norm: Norm, epsilon: float, dropout: float, norm_kind: NormKind = "layer"
    ) -> None:
        super().__init__()
        self.is_pre_norm = norm == "pre"
        self.norm: Any = make_norm(norm_kind, width, epsilon)
        self.dropout = nn.Dropout(dropout)

    @property
    def uses_mask(self) -> bool:
        """Whether the norm needs to know the real tokens."""
        return getattr(self.norm, "uses_mask", False)

    def pre_norm(self, x: Tensor, is_real: Tensor | None = None) -> Tensor:
        """Normalize the sub-layer's input if the norm comes first."""
        return normalize(self.norm, x, is_real) if self.is_pre_norm else x

    def add_and_norm(self, x: Tensor, update: Tensor, is_real: Tensor | None = None) -> Tensor:
        """Add the sub-layer's output to ``x`` and normalize if the norm comes last."""
        x = x + self.dropout(update)
        return x if self.is_pre_norm else normalize(self.norm, x, is_real)


class FeedForward(nn.Module):
    """The feed-forward network W₂ activation(W₁ x), at every position alike (equation 2)."""

    def __init__(self, width: int, inner: int, activation: Activation, *, bias: bool = True) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner, bias=bias)
        self.narrow = nn.Linear(inner, width, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.narrow(self.activation(self.widen(x)))


class GatedFeedForward(nn.Module):
    """The feed-forward network W₂ (activation(W₀ x) ⊙ W₁ x) (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, width: int, inner: int, activation: Activation, *, bias: bool = False) -> None:
        super().__init__()
        self.gate, self.widen = (nn.Linear(width, inner, bias=bias) for _ in range(2))
        self.narrow = nn.Linear(inner, width, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.narrow(self.activation(self.gate(x)) * self.widen(x))


FEED_FORWARDS: dict[str, Callable[..., nn.Module]] = {"plain": FeedForward, "gated": GatedFeedForward}
DEFAULT_FEED: Mapping[str, Any] = {"kind": "plain"}


class EncoderBlock(nn.Module):
    """Self-attention, then a feed-forward network, each with residual and norm."""

    def __init__(self, attention: Any, feed_forward: nn.Module, make_add_norm: Callable[[], AddNorm]) -> None:
        super().__init__()
        self.attention, self.around_attention = attention, make_add_norm()
        self.feed, self.around_feed = feed_forward, make_add_norm()

    def forward(self, x: Tensor, mask: Tensor | PackedMask, prefix: Tensor | None = None) -> Tensor:
        """Run the layer on ``x`` b n d.

        ``prefix`` b m d are states before ``x`` that it may attend to; ``mask`` is broadcastable to
        b h n m+n.
        """
        context = x if prefix is None else torch.cat([prefix, x], 1)  # b m+n d
        is_known = self.find_real_tokens(mask, context.shape[1])  # b m+n
        is_real = None if is_known is None else is_known[:, -x.shape[1] :]  # b n
        context = self.around_attention.pre_norm(context, is_known)
        update = self.attention(context[:, -x.shape[1] :], context, mask)
        x = self.around_attention.add_and_norm(x, update, is_real)
        return self.around_feed.add_and_norm(x, self.feed(self.around_feed.pre_norm(x, is_real)), is_real)

    def find_real_tokens(self, mask: Any, num_tokens: int) -> Tensor | None:
        """Find the tokens that any query sees, if the norms need to know: b m+n."""
        return find_visible_keys(mask, num_tokens) if self.around_attention.uses_mask else None

    def attention_scores(self, x: Tensor, mask: Tensor, prefix: Tensor | None = None) -> Tensor:
        """Return the attention scores of this layer, b h n m+n; -inf where hidden.

        ``x`` is b n d; ``prefix`` and ``mask`` as in ``forward``, dense.
        """
        context = x if prefix is None else torch.cat([prefix, x], 1)
        context = self.around_attention.pre_norm(context, self.find_real_tokens(mask, context.shape[1]))
        return self.attention.attention_scores(context[:, -x.shape[1] :], context, mask)


class DecoderBlock(nn.Module):
    """Self-attention, cross-attention over a source (optional), feed-forward network."""

    def __init__(
        self, attention: Any, cross: Any, feed_forward: nn.Module, make_add_norm: Callable[[], AddNorm]
    ) -> None:
        super().__init__()
        self.attention, self.around_attention = attention, make_add_norm()
        self.cross, self.around_cross = cross, None if cross is None else make_add_norm()
        self.feed, self.around_feed = feed_forward, make_add_norm()

    def forward(
        self, x: Tensor, mask: Tensor | CausalMask, past: Any, source: Any, source_mask: Tensor
    ) -> tuple[Tensor, Any]:
        """Run the layer on new tokens and extend the key/value cache.

        ``x`` b n d follows the tokens of ``past``, ``source`` are the keys and values of a source;
        masks are broadcastable to b h n m → b n d, and the past with the keys and values of ``x``.
        """
        query = self.around_attention.pre_norm(x)
        new = self.attention.project_key_values(query)
        key_values = type(new)(*(torch.cat(pair, -2) for pair in zip(past, new)))  # … m+n …
        x = self.around_attention.add_and_norm(x, self.attention.attend(query, key_values, mask))
        if self.around_cross is not None:
            query = self.around_cross.pre_norm(x)
            x = self.around_cross.add_and_norm(x, self.cross.attend(query, source, source_mask))
        return self.around_feed.add_and_norm(x, self.feed(self.around_feed.pre_norm(x))), key_values

    def project_context(self, states: Tensor) -> Any:
        """Compute the keys and values of earlier inputs of this layer, b m d."""
        return self.attention.project_key_values(self.around_attention.pre_norm(states))

    def attention_scores(self, x: Tensor, prefix: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the self-attention's scores, b h n m+n; -inf where hidden.

        ``prefix`` b m d are inputs of this layer before ``x``, its input b n d.
        """
        context = self.around_attention.pre_norm(torch.cat([prefix, x], 1))
        return self.attention.attention_scores(context[:, prefix.shape[1] :], context, mask)


def share_across_layers(blocks: Any) -> None:
    """Let all layers use the modules of the first that their attention shares, in place."""
    for block in blocks:
        for name in getattr(block.attention, "shared_parts", ()):
            setattr(block.attention, name, getattr(blocks[0].attention, name))
