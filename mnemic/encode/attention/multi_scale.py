"""Multi-scale attention: each head has a window of its own, small ones in low layers.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

from itertools import accumulate
from math import exp

import torch
from torch import Tensor, nn

from mnemic.encode.attention.band import attend_band, compute_band_mask
from mnemic.encode.attention.full import HeadProjection, KeyValues, compute_attention_scores
from mnemic.encode.masks import CausalMask, expand_to_four_axes
from mnemic.recipe import ConfigError

FIXED_SCALES, TEXT_SHARES = (1, 3), (16, 8, 4)  # positions to either side; n/16, n/8, n/4
NUM_SCALES = len(FIXED_SCALES) + len(TEXT_SHARES)


class MultiScaleAttention(nn.Module):
    """Heads with windows of different sizes (Guo et al. 2020).

    They see 1, 3, n/16, n/8 or n/4 positions to either side (arXiv:1912.00544). The lower the
    layer, the more heads have small windows: the share of scale k grows with exp(z_k), where z_k =
    z_{k+1} + ``alpha`` / layer, and 0 at the largest scale and in the last layer. Rounded, they sum
    to ``heads``; heads left over go to the largest remainder, of equal ones to the larger scale.

    Where we differ: n is the number of positions that a query may see, so the text's own length
    without padding, and in a decoder that of the text so far. A share of it is rounded down, to at
    least 1. Windows of n/4 leave time and memory quadratic, with a smaller factor.
    """

    supports_causal = supports_context = supports_rows = supports_scores = True

    def __init__(
        self, width: int, *, heads: int = 4, dropout: float = 0.0, alpha: float = 0.5, layer: int = 0, depth: int = 1
    ) -> None:
        super().__init__()
        self.project = HeadProjection(width, heads)
        self.dropout = dropout
        if alpha < 0:
            raise ConfigError(f"alpha is {alpha}; 0 spreads heads evenly over the scales, more prefers small ones")
        self.heads_of_scale = count_heads(heads, alpha, layer, depth)

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.project.heads

    def list_head_groups(self) -> list[tuple[int, slice]]:
        """List the scales that have heads, small ones first, each with its heads."""
        ends = list(accumulate(self.heads_of_scale))
        groups = enumerate(zip(self.heads_of_scale, ends))
        return [(scale, slice(end - count, end)) for scale, (count, end) in groups if count]

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x`` to what is near in ``context``, each head in its window.

        ``x`` b n d, ``context`` b m d, ``mask`` broadcastable to b h n m → b n d.
        """
        return self.attend(x, self.project_key_values(context), mask)

    def project_key_values(self, context: Tensor) -> KeyValues:
        """Compute the keys and values of a context, once per token in a decoder."""
        return self.project.project_key_values(context)

    def attend(self, x: Tensor, key_values: KeyValues, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        query, num_keys = self.project.project_query(x), key_values.keys.shape[2]
        dropout = self.dropout if self.training else 0.0
        scale_reaches = compute_scale_reaches(count_visible(mask, x.shape[1], num_keys))
        outputs = []
        for scale, group in self.list_head_groups():
            outputs.append(
                attend_band(
                    query[:, group],
                    KeyValues(*(tensor[:, group] for tensor in key_values)),
                    mask if isinstance(mask, CausalMask) else select_heads(expand_to_four_axes(mask), group),
                    compute_max_reach(scale, num_keys),
                    reaches=select_heads(scale_reaches[scale], group),
                    dropout=dropout,
                )
            )
        mixed = torch.cat([output.mixed for output in outputs], 1)  # b h n c
        has_visible = torch.stack([output.has_visible.any(1) for output in outputs]).any(0)  # b n 1
        return self.project.merge_heads(mixed) * has_visible

    def attention_scores(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the scores before the softmax, b h n m.

        They are -inf where hidden or out of a head's window.
        """
        keys = self.project_key_values(context).keys
        scale_reaches = compute_scale_reaches(count_visible(mask, x.shape[1], context.shape[1]))
        groups = self.list_head_groups()
        reaches = torch.cat([scale_reaches[scale].expand(-1, self.heads, -1)[:, group] for scale, group in groups], 1)
        visible = compute_band_mask(mask, x.shape[1], context.shape[1], reaches.unsqueeze(-1))
        return compute_attention_scores(self.project.project_query(x), keys, visible)


def count_heads(heads: int, alpha: float, layer: int, depth: int) -> tuple[int, ...]:
    """Count the heads of each scale in a layer, from 0, of ``depth``."""
    step = 0.0 if layer == depth - 1 else alpha / (layer + 1)
    weights = [exp(step * (NUM_SCALES - 1 - scale)) for scale in range(NUM_SCALES)]
    shares = [heads * weight / sum(weights) for weight in weights]
    counts = [int(share) for share in shares]
    by_remainder = sorted(range(NUM_SCALES), key=lambda scale: (round(shares[scale] - counts[scale], 9), scale))
    for scale in by_remainder[NUM_SCALES - heads + sum(counts) :]:
        counts[scale] += 1
    return tuple(counts)


def count_visible(mask: Tensor | CausalMask, num_queries: int, num_keys: int) -> Tensor:
    """Count the positions that each query may see, broadcastable to b h n."""
    if isinstance(mask, CausalMask):
        return mask.keys.cumsum(1)[:, None, num_keys - num_queries :]
    mask = expand_to_four_axes(mask)
    return mask.expand(*mask.shape[:-1], num_keys).sum(-1)


def compute_scale_reaches(lengths: Tensor) -> list[Tensor]:
    """Compute how many positions to either side each scale sees, in texts of these lengths."""
    fixed = [torch.full_like(lengths, reach) for reach in FIXED_SCALES]
    return [*fixed, *((lengths // share).clamp(min=1) for share in TEXT_SHARES)]


def compute_max_reach(scale: int, num_keys: int) -> int:
    """Compute the largest reach of a scale in a context of this length."""
    return [*FIXED_SCALES, *(max(num_keys // share, 1) for share in TEXT_SHARES)][scale]


def select_heads(x: Tensor, heads: slice) -> Tensor:
    """Select heads, b h … → b g …, unless all have the same."""
    return x if x.shape[1] == 1 else x[:, heads]
