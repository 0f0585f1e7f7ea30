"""Attention with a learned bias for each bucket of distances, as in T5.

Shapes: b batch, n queries, m context positions, h heads, c channels of one head, w distances.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.attention.distances import DistanceAttention
from mnemic.encode.attention.full import KeyValues
from mnemic.encode.masks import CausalMask
from mnemic.encode.packed import PackedMask
from mnemic.recipe import ConfigError


class DistanceBias(nn.Module):
    """One number per head for each bucket of distances."""

    def __init__(self, width: int, heads: int, *, buckets: int, max_distance: int, is_causal: bool) -> None:
        super().__init__()
        num_exact = buckets // (2 if is_causal else 4)
        if buckets < 4 or max_distance <= num_exact:
            raise ConfigError(
                f"attention.buckets is at least 4, and max_distance more than the {num_exact} distances with a bucket "
                f"of their own, not {buckets} and {max_distance}"
            )
        self.buckets, self.max_distance, self.is_causal = buckets, max_distance, is_causal
        self.table = nn.Parameter(torch.randn(buckets, heads) * width**-0.5)

    def forward(self, num_queries: int, num_context: int) -> Tensor:
        """Return the bias of each query and context position, h n m.

        One number per distance is looked up; queries are the end of the context.
        """
        num_distances = max(num_queries + num_context - 1, 0)
        distances = torch.arange(num_distances, device=self.table.device) + 1 - num_context
        buckets = find_bucket(distances, self.buckets, self.max_distance, is_causal=self.is_causal)
        bias = nn.functional.embedding(buckets, self.table).T  # h w
        return bias.unfold(-1, num_context, 1).flip(-2)


class BucketedAttention(DistanceAttention):
    """Add a learned bias of the distance to the scores of attention (T5).

    Raffel et al. 2020, section 2.1. Near distances have a bucket each, far ones share buckets that
    grow like a logarithm, up to ``max_distance``; each bucket has one number per head. Half of the
    ``buckets`` are for what is ahead; a decoder, which sees nothing ahead, uses all of them for
    what is before. All layers of a stack share the bias of layer 0; over a source, without
    distances, there is none. Projections have no bias, and scores are not divided by √c: queries
    start smaller instead. ``head_width`` is the width of one head, 0 for width / heads.

    Where we differ: a row without any visible position comes out as zeros. Without ``fused`` the
    same numbers come from plain matmuls.
    """

    supports_cross = decodes_in_slots = True
    scale: float | None = 1.0
    shared_parts = ("bias",)

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        buckets: int = 32,
        max_distance: int = 128,
        head_width: int = 0,
        fused: bool = True,
        is_causal: bool = False,
        is_cross: bool = False,
    ) -> None:
        super().__init__(width, heads=heads, dropout=dropout, bias=False, head_width=head_width)
        self.fused = fused
        sizes: dict[str, Any] = {"buckets": buckets, "max_distance": max_distance, "is_causal": is_causal}
        self.bias = None if is_cross else DistanceBias(width, heads, **sizes)
        inner = self.project.query.weight.shape[0]
        nn.init.normal_(self.project.query.weight, std=(width * inner / heads) ** -0.5)
        for linear in (self.project.key, self.project.value):
            nn.init.normal_(linear.weight, std=width**-0.5)
        nn.init.normal_(self.project.out.weight, std=inner**-0.5)

    @property
    def supports_packing(self) -> bool:
        """Whether ``mask`` may be a ``PackedMask``: a GPU's kernels take no bias."""
        return self.fused and self.project.query.weight.device.type != "cuda"

    def attend(self, x: Tensor, key_values: KeyValues, mask: Tensor | CausalMask | PackedMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        if not isinstance(mask, PackedMask):
            return super().attend(x, key_values, mask)
        if not mask.lengths:  # known on the device alone
            return super().attend(x, key_values, mask.to_dense_mask())
        return self.project.merge_heads(self.attend_texts(self.project.project_query(x), key_values, mask))

    def attend_texts(self, query: Tensor, key_values: KeyValues, packed: PackedMask) -> Tensor:
        """Attend within each packed text, 1 h t c; equal lengths share a call."""
        runs = list(packed.length_runs())
        sizes = [length * count for length, count in runs]
        dropout = self.dropout if self.training else 0.0
        outputs = []
        for (length, count), *run_tensors in zip(runs, *(x.split(sizes, 2) for x in (query, *key_values))):
            q, k, v = (x[0].unflatten(1, (count, -1)).transpose(0, 1) for x in run_tensors)  # g h n c
            bias = self.position_bias(length, length)
            output = nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=None if bias is None else bias.to(q.dtype), dropout_p=dropout, scale=1.0
            )
            outputs.append(output.transpose(1, 2).flatten(0, 1))  # (g n) h c
        return torch.cat(outputs).transpose(0, 1).unsqueeze(0)  # 1 h t c

    def mix_visible(self, query: Tensor, key_values: KeyValues, mask: Tensor, dropout: float) -> Tensor:
        """Mix the values of visible positions, in one kernel."""
        if not self.fused:
            return super().mix_visible(query, key_values, mask, dropout)
        bias = self.position_bias(query.shape[2], key_values.keys.shape[2])
        if bias is not None:
            mask = bias.to(query.dtype).masked_fill(~mask, float("-inf"))
        return nn.functional.scaled_dot_product_attention(
            query, *key_values, attn_mask=mask, dropout_p=dropout, scale=1.0
        )

    def compute_scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compute q kᵀ and the bias of the distance, b h n m."""
        scores, bias = query @ keys.mT, self.position_bias(query.shape[2], keys.shape[2])
        return scores if bias is None else scores + bias

    def step_bias(self, num_steps: int) -> Tensor | None:
        """Return what is added to a decoder's scores of each step so far, h m."""
        bias = self.position_bias(1, num_steps)
        return None if bias is None else bias[:, 0]

    def position_bias(self, num_queries: int, num_context: int) -> Tensor | None:
        """Return the bias of queries and context, h n m; None over a source."""
        return None if self.bias is None else self.bias(num_queries, num_context)


def find_bucket(distances: Tensor, buckets: int, max_distance: int, *, is_causal: bool) -> Tensor:
    """Return the bucket of each distance from a query to a position; negative is before.

    >>> find_bucket(torch.tensor([-200, -20, -3, 0, 3, 20]), 32, 128, is_causal=False).tolist()
    [15, 10, 3, 0, 19, 26]
    """
    first = torch.zeros_like(distances)
    if is_causal:
        steps = -distances.clamp(max=0)
    else:
        buckets //= 2
        first, steps = (distances > 0) * buckets, distances.abs()
    num_exact = buckets // 2
    logs = (steps.clamp(min=1) / num_exact).log() / math.log(max_distance / num_exact)
    far = num_exact + (logs * (buckets - num_exact)).long()
    return first + torch.where(steps < num_exact, steps, far.clamp(max=buckets - 1))
