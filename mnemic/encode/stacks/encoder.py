"""The stack of bidirectional Transformer layers, an encoder.

Shapes: b batch, n tokens, m context positions, d width.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.norms import NormKind, make_norm, normalize
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks.block import (
    DEFAULT_FEED,
    FEED_FORWARDS,
    Activation,
    AddNorm,
    EncoderBlock,
    Norm,
    share_across_layers,
)
from mnemic.encode.stacks.context import StackContext
from mnemic.recipe import ConfigError, build, check_repeats, join_words, select_kinds

DEFAULT_ATTENTION: Mapping[str, Any] = {"kind": "full"}
SharedPart = Literal["all", "attention", "feed-forward"]


class EncoderStack(nn.Module):
    """Transformer layers in which every token sees every token (Vaswani et al. 2017, figure 1).

    ``inner`` is the width of the feed-forward network, 0 for four times ``width``. With
    ``norm="pre"`` (Xiong et al. 2020) a last norm follows the layers. ``groups`` is the number of
    different layers: neighbors share their weights where it is smaller than ``depth`` (ALBERT; Lan
    et al. 2020, section 3.1); 0 means that no layers share. ``share`` says what they share: all
    weights, or one sub-layer with its norm while the other is each layer's own (their section 4.5).
    ``norm_kind`` is "layer", "rms", "batch" (over the real tokens of a batch) or "none", and
    ``feed`` the kind of feed-forward network, "plain" or "gated". Padding comes out as zeros.
    """

    def __init__(
        self,
        width: int,
        *,
        depth: int = 2,
        groups: int = 0,
        share: SharedPart = "all",
        inner: int = 0,
        norm: Norm = "post",
        norm_kind: NormKind = "layer",
        epsilon: float = 1e-5,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        feed: Mapping[str, Any] = DEFAULT_FEED,
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        if not 0 <= groups <= depth:
            raise ConfigError(f"{depth} layers cannot have the weights of {groups} groups")
        num_unique = groups if groups and share == "all" else depth
        make_add_norm = partial(AddNorm, width, norm=norm, epsilon=epsilon, dropout=dropout, norm_kind=norm_kind)
        unique_blocks = [
            EncoderBlock(
                build(ATTENTIONS, attention, width=width, layer=layer, depth=depth),
                build(FEED_FORWARDS, feed, width=width, inner=inner or 4 * width, activation=activation),
                make_add_norm,
            )
            for layer in range(num_unique)
        ]
        self.blocks: Any = nn.ModuleList(unique_blocks[i * num_unique // depth] for i in range(depth))
        if groups and share != "all":
            share_sublayer(self.blocks, groups, share)
        share_across_layers(self.blocks)
        self.norm = make_norm(norm_kind, width, epsilon) if norm == "pre" else nn.Identity()

    @property
    def supports_packing(self) -> bool:
        """Whether ``mask`` may be a ``PackedMask``."""
        return all(
            getattr(block.attention, "supports_packing", False) and not block.around_attention.uses_mask
            for block in self.blocks
        )

    @property
    def supports_context(self) -> bool:
        """Whether the layers can attend to states before the tokens."""
        return all(getattr(block.attention, "supports_context", False) for block in self.blocks)

    @property
    def supports_rows(self) -> bool:
        """Whether ``mask`` may depend on the query."""
        return all(getattr(block.attention, "supports_rows", False) for block in self.blocks)

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens; None if unlimited."""
        return min_length(getattr(block.attention, "max_length", None) for block in self.blocks)

    @property
    def max_attention_dropout(self) -> float:
        """The largest attention dropout of the layers; 0 outside training."""
        dropouts = (block.attention.dropout for block in self.blocks)
        return max(dropouts, default=0.0) if self.training else 0.0

    def forward(self, x: Tensor, mask: Tensor | PackedMask, context: StackContext | None = None) -> Tensor:
        """Run all layers: ``x`` b n d → b n d.

        ``mask`` is b n, or b n n where it depends on the query (row). With a ``PackedMask``, ``x``
        is one row of packed texts, each of which attends only to itself.
        """
        *_, x = self.iterate_layers(x, mask, context)
        is_real = real_token_mask(mask)
        return normalize(self.norm, x, is_real) * is_real.unsqueeze(-1)

    def iterate_layers(
        self, x: Tensor, mask: Tensor | PackedMask, context: StackContext | None = None
    ) -> Iterator[Tensor]:
        """Yield the input of the first layer, then the output of each layer.

        These are depth + 1 times b n d, before the last norm; padding is not zeroed.
        """
        if isinstance(mask, PackedMask) and (context is not None or not self.supports_packing):
            mask = mask.to_dense_mask()
        if context is not None:
            require_ability(self.blocks, "supports_context", "support a context of earlier states")
        if isinstance(mask, Tensor) and mask.dim() == 3:
            require_ability(self.blocks, "supports_rows", "let each token see others: it takes a mask b n, not b n n")
        visible = mask
        if isinstance(mask, Tensor):
            visible = mask.unsqueeze(1) if mask.dim() == 3 else mask[:, None, None]  # b 1 n|1 n
            if context is not None:
                context_visible = context.mask[:, None, None].expand(-1, -1, visible.shape[2], -1)
                visible = torch.cat([context_visible, visible], -1)  # b 1 n|1 m+n
        yield x
        for number, block in enumerate(self.blocks):
            x = block(x, visible, None if context is None else context.layers[number])
            yield x

    def iterate_scores(self, x: Tensor, mask: Tensor, context: StackContext) -> Iterator[Tensor]:
        """Yield each layer's attention scores, b h n m+n; -inf where hidden.

        ``x`` b n d and ``mask`` b n follow the context of m states.
        """
        require_ability(self.blocks, "supports_scores", "return its scores")
        visible = torch.cat([context.mask, mask], 1)[:, None, None]  # b 1 1 m+n
        for block, layer_input, prefix in zip(self.blocks, self.iterate_layers(x, mask, context), context.layers):
            yield block.attention_scores(layer_input, visible, prefix)


def share_sublayer(blocks: Any, groups: int, share: SharedPart) -> None:
    """Let the layers of each group share one sub-layer, with its norm, in place."""
    names = {"attention": ("attention", "around_attention"), "feed-forward": ("feed", "around_feed")}
    first_blocks: dict[int, nn.Module] = {}
    for number, block in enumerate(blocks):
        first = first_blocks.setdefault(number * groups // len(blocks), block)
        for name in names[share]:
            setattr(block, name, getattr(first, name))


def require_ability(blocks: Iterable[Any], ability: str, verb: str) -> None:
    """Raise a ConfigError, with the kinds that can, if the attention of a layer cannot."""
    if not all(getattr(block.attention, ability, False) for block in blocks):
        known = join_words(select_kinds(ATTENTIONS, **{ability: True}))
        raise ConfigError(f"the attention of these layers does not {verb}; kinds that can: {known}")


def min_length(lengths: Iterable[int | None]) -> int | None:
    """Return the smallest of several maximum lengths; None if all are unlimited."""
    return min((length for length in lengths if length is not None), default=None)


def real_token_mask(mask: Tensor | PackedMask) -> Tensor:
    """Return which tokens are not padding, b n.

    With a mask b n n those are the tokens that see any token or are seen.
    """
    if isinstance(mask, PackedMask):
        return torch.ones(1, mask.num_tokens, dtype=torch.bool, device=mask.cu_seqlens.device)
    return mask if mask.dim() == 2 else mask.any(-1) | mask.any(-2)
