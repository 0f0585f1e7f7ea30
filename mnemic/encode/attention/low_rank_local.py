"""Low-rank and local attention: a few cheap heads see everything, the others what is near.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head, k rank;
g global heads, l local heads.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention.band import attend_band, compute_band_mask
from mnemic.encode.attention.full import KeyValues, compute_attention_scores, compute_attention_weights
from mnemic.encode.masks import CausalMask, expand_to_four_axes, to_dense_mask
from mnemic.recipe import ConfigError


class LowRankKeyValues(NamedTuple):
    """The keys and values of a context; global keys are narrow."""

    global_keys: Tensor  # b g m k
    local_keys: Tensor  # b l m c
    values: Tensor  # b h m c, global heads first


class LowRankProjection(nn.Module):
    """Projections to queries and keys of ``rank`` channels in global heads, and back."""

    def __init__(self, width: int, heads: int, global_heads: int, rank: int) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"width {width} does not divide into {heads} heads")
        if not 0 <= global_heads <= heads:
            raise ConfigError(f"global_heads is {global_heads}; of {heads} heads 0 to {heads} can be global")
        if not 1 <= rank <= width // heads:
            raise ConfigError(f"rank is {rank}; a head has {width // heads} channels, and a low rank is 1 to 4")
        self.heads, self.rank, self.global_heads = heads, rank, global_heads
        self.global_width = global_heads * rank
        key_width = self.global_width + (heads - global_heads) * (width // heads)
        self.query, self.key = nn.Linear(width, key_width), nn.Linear(width, key_width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def project_query(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Project to global queries, b g n k, and local ones, b l n c."""
        return self.split_kinds(self.query(x))

    def project_key_values(self, context: Tensor) -> LowRankKeyValues:
        """Project a context to the keys and values of all heads."""
        return LowRankKeyValues(*self.split_kinds(self.key(context)), split_heads(self.value(context), self.heads))

    def split_kinds(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Split channels into global heads, b g n k, and local ones."""
        global_part, local_part = x.split([self.global_width, x.shape[-1] - self.global_width], -1)
        return split_heads(global_part, self.global_heads), split_heads(local_part, self.heads - self.global_heads)

    def merge_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads and project back to the width."""
        return self.out(x.transpose(1, 2).flatten(2))  # b h n c -> b n d


class LowRankLocalAttention(nn.Module):
    """Global heads of low rank beside local heads of full width (Guo et al. 2019).

    From "Low-Rank and Locality Constrained Self-Attention for Sequence Modeling" (TASLP): near
    relations are many, far ones are few and many-to-one. The logits of each of ``global_heads``
    have at most the rank ``rank``; the other heads see positions at most ``reach`` away. Where we
    differ: the paper is closed, and the division into heads with one output projection is ours.

    With ``fused`` memory is linear in the length: the band is unfolded, and the global heads run in
    torch's one-kernel attention. Their time stays quadratic. ``fused=False`` gives the same numbers
    from plain matmuls of n² scores, which `torch.func.vmap` can batch on a CPU too.
    """

    supports_causal = supports_context = supports_rows = supports_scores = True

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        fused: bool = True,
        rank: int = 2,
        reach: int = 8,
        global_heads: int = 1,
    ) -> None:
        super().__init__()
        if reach < 0:
            raise ConfigError(f"reach is {reach}; expected 0, which is the position alone, or more")
        self.project = LowRankProjection(width, heads, global_heads, rank)
        self.dropout, self.fused, self.reach = dropout, fused, reach

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.project.heads

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x`` to all of ``context`` with few channels and to what is near.

        ``x`` b n d, ``context`` b m d, ``mask`` broadcastable to b h n m → b n d.
        """
        return self.attend(x, self.project_key_values(context), mask)

    def project_key_values(self, context: Tensor) -> LowRankKeyValues:
        """Compute the keys and values of a context, once per token in a decoder."""
        return self.project.project_key_values(context)

    def attend(self, x: Tensor, key_values: LowRankKeyValues, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        dropout, num_global = self.dropout if self.training else 0.0, self.project.global_heads
        global_query, local_query = self.project.project_query(x)
        global_mask, local_mask = split_mask(mask, num_global)
        outputs, sees_any = [], []
        if num_global:
            global_values = key_values.values[:, :num_global]
            has_visible = find_visible_rows(global_mask, x.shape[1])  # b g n 1
            attend = attend_fused if self.fused else attend_plain
            outputs.append(attend(global_query, key_values.global_keys, global_values, global_mask, dropout))
            outputs[0] = outputs[0] * has_visible
            sees_any.append(has_visible.any(1))
        if num_global < self.heads:
            local_key_values = KeyValues(key_values.local_keys, key_values.values[:, num_global:])
            band = attend_band(local_query, local_key_values, local_mask, self.reach, dropout=dropout)
            outputs.append(band.mixed)
            sees_any.append(band.has_visible.any(1))
        has_any = sees_any[0] | sees_any[-1]  # b n 1
        return self.project.merge_heads(torch.cat(outputs, 1)) * has_any

    def attention_scores(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the scores before the softmax, b h n m.

        They are -inf where hidden or out of reach.
        """
        global_query, local_query = self.project.project_query(x)
        key_values, (num_queries, num_keys) = self.project_key_values(context), (x.shape[1], context.shape[1])
        global_mask, local_mask = split_mask(mask, self.project.global_heads)
        global_mask = to_dense_mask(global_mask, num_queries)
        band = compute_band_mask(local_mask, num_queries, num_keys, self.reach)
        global_scores = compute_attention_scores(global_query, key_values.global_keys, global_mask)
        return torch.cat([global_scores, compute_attention_scores(local_query, key_values.local_keys, band)], 1)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Split the channels into heads, b n … → b h n c; there may be none."""
    return x.unflatten(-1, (heads, x.shape[-1] // max(heads, 1))).transpose(1, 2)


def split_mask(mask: Tensor | CausalMask, num_global: int) -> tuple[Tensor | CausalMask, Tensor | CausalMask]:
    """Split a mask into that of the global and that of the local heads."""
    if isinstance(mask, CausalMask):
        return mask, mask
    mask = expand_to_four_axes(mask)
    return (mask, mask) if mask.shape[1] == 1 else (mask[:, :num_global], mask[:, num_global:])


def find_visible_rows(mask: Tensor | CausalMask, num_queries: int) -> Tensor:
    """Return which queries see any position, broadcastable to b h n 1."""
    if isinstance(mask, CausalMask):
        has_visible = mask.keys.cumsum(1) > 0  # b m
        return has_visible[:, None, has_visible.shape[1] - num_queries :, None]
    return mask.any(-1, keepdim=True)


def attend_plain(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | CausalMask, dropout: float) -> Tensor:
    """Attend by plain matmuls, b h n c; the scores are n²."""
    weights = compute_attention_weights(query, keys, to_dense_mask(mask, query.shape[2]))
    return nn.functional.dropout(weights, dropout, training=dropout > 0) @ values


def attend_fused(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | CausalMask, dropout: float) -> Tensor:
    """Attend with keys narrower than the values, in one kernel, b h n c.

    The kernel wants equal widths: zeros fill up. It also takes either a mask or the word "causal":
    hidden keys of a causal mask get a channel of their own that makes their score tiny. A query
    that sees nothing gets any finite row.
    """
    scale, width = query.shape[-1] ** -0.5, values.shape[-1]
    num_queries, num_keys = query.shape[2], keys.shape[2]
    is_causal = isinstance(mask, CausalMask) and num_queries == num_keys
    if isinstance(mask, CausalMask) and is_causal:
        tiny = max(torch.finfo(keys.dtype).min, torch.finfo(torch.float32).min) / 2  # the sum stays finite
        bias = torch.zeros_like(mask.keys, dtype=keys.dtype).masked_fill(~mask.keys, tiny)  # b m
        keys = torch.cat([keys, bias[:, None, :, None].expand(*keys.shape[:-1], 1)], -1)
        query = torch.cat([query, query.new_ones(*query.shape[:-1], 1)], -1)
        dense = None
    else:
        dense = to_dense_mask(mask, num_queries)
        dense = dense | ~dense.any(-1, keepdim=True)
    size = max(width, query.shape[-1])
    query, keys, values = (nn.functional.pad(x, (0, size - x.shape[-1])) for x in (query, keys, values))
    mixed = nn.functional.scaled_dot_product_attention(
        query, keys, values, attn_mask=dense, dropout_p=dropout, is_causal=is_causal, scale=scale
    )
    return mixed[..., :width]
