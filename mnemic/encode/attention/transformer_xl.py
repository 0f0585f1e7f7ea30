"""Attention by content and by distance, as in Transformer-XL.

Shapes: b batch, n queries, m context positions, w distances, d width, h heads, c channels of one
head.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.attention.full import HeadProjection, KeyValues
from mnemic.encode.masks import CausalMask, to_dense_mask
from mnemic.encode.positions import MAX_WAVELENGTH
from mnemic.recipe import ConfigError

BIAS_SCALE = 0.02  # standard deviation of the global biases at the start


class TransformerXLAttention(nn.Module):
    """Multi-head attention whose scores are of content and of distance (Dai et al. 2019, 3.3).

    The score of key j for query i is ((q_i + u) · k_j + (q_i + v) · W r_(i-j)) / √c. r holds the
    sines of the distance, then its cosines; u and v are the same for all positions. No projection
    has a bias. Distances are unlimited, and negative where a query sees what comes later, so token
    embeddings need no positions (``positions = { kind = "none" }``). Padding counts as distance.

    ``clamp`` treats larger distances as this one, for texts longer than those of training; 0 takes
    all as they are. ``dropout`` drops attention weights and channels of r. ``fused`` uses torch's
    one-kernel attention, with the scores of distance as its bias.

    Where we differ: u and v belong to one layer, as in XLNet; in the paper all layers share them. A
    row without any visible position comes out as zeros.
    """

    supports_causal = supports_context = supports_rows = supports_scores = True
    supports_packing = False  # distances are counted in whole rows

    def __init__(self, width: int, *, heads: int = 4, dropout: float = 0.0, fused: bool = True, clamp: int = 0) -> None:
        super().__init__()
        if width % 2:
            raise ConfigError(f"attention by distance pairs sine and cosine; width {width} is odd")
        if clamp < 0:
            raise ConfigError(f"attention.clamp is a distance, or 0 for none, not {clamp}")
        self.project = HeadProjection(width, heads, bias=False)
        self.distance = nn.Linear(width, width, bias=False)  # W
        self.content_bias = nn.Parameter(torch.randn(heads, 1, width // heads) * BIAS_SCALE)  # u, h 1 c
        self.distance_bias = nn.Parameter(torch.randn(heads, 1, width // heads) * BIAS_SCALE)  # v, h 1 c
        self.width, self.dropout, self.fused, self.clamp = width, dropout, fused, clamp

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.project.heads

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x``, the end of ``context``, to the context.

        ``x`` b n d, ``context`` b m d, ``mask`` broadcastable to b h n m → b n d.
        """
        return self.attend(x, self.project_key_values(context), mask)

    def project_key_values(self, context: Tensor) -> KeyValues:
        """Compute the keys and values of a context, once per token in a decoder."""
        return self.project.project_key_values(context)

    def attend(self, x: Tensor, key_values: KeyValues, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        return self.attend_heads(self.project.project_query(x), key_values, mask)

    def attend_heads(
        self,
        query: Tensor,
        key_values: KeyValues,
        mask: Tensor | CausalMask,
        *,
        positions: Tensor | None = None,
        extra_scores: Tensor | None = None,
    ) -> Tensor:
        """Attend from the queries of all heads, b h n c, to keys and values.

        ``positions`` b n are those of the queries among the keys; without them they are the last
        ones. ``extra_scores`` b h n m are added to those of content and distance.
        """
        keys, values = key_values
        content_query = query + self.content_bias  # b h n c
        if positions is None:
            scores = self.distance_scores(query, keys.shape[2], is_causal=isinstance(mask, CausalMask))  # b h n m
        else:
            scores = self.distance_scores_at(query, keys.shape[2], positions)
        scores = scores if extra_scores is None else scores + extra_scores
        mask = to_dense_mask(mask, query.shape[2])
        has_visible = mask.any(-1, keepdim=True)  # b h n 1
        dropout = self.dropout if self.training else 0.0
        # A row without visible positions would be NaN: unmask it, zero it after.
        if self.fused:
            bias = scores.masked_fill(~(mask | ~has_visible), float("-inf"))
            mixed = nn.functional.scaled_dot_product_attention(
                content_query, keys, values, attn_mask=bias.to(query.dtype), dropout_p=dropout
            )
        else:
            scores = scores + content_query @ keys.mT * keys.shape[-1] ** -0.5
            weights = scores.masked_fill(~(mask | ~has_visible), float("-inf")).softmax(-1)
            mixed = nn.functional.dropout(weights, dropout, training=dropout > 0) @ values
        return self.project.merge_heads(mixed * has_visible) * has_visible.any(1)  # b n d

    def attention_scores(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the scores before the softmax, b h n m; -inf at hidden positions."""
        query, keys = self.project.project_query(x), self.project.split_heads(self.project.key(context))
        scores = (query + self.content_bias) @ keys.mT * keys.shape[-1] ** -0.5
        scores = scores + self.distance_scores(query, context.shape[1])
        return scores.masked_fill(~to_dense_mask(mask, x.shape[1]), float("-inf"))

    def distance_scores(self, query: Tensor, num_keys: int, *, is_causal: bool = False) -> Tensor:
        """Compute the scores of distances between queries and keys, b h n m.

        With ``is_causal`` those of later positions mean nothing.
        """
        nearest = 0 if is_causal else 1 - query.shape[2]  # the first query and the last key
        distances = num_keys - 1 - torch.arange(max(num_keys - nearest, 0), device=query.device)  # w
        return align_distances(self.score_distances(query, distances))[..., :num_keys]

    def distance_scores_at(self, query: Tensor, num_keys: int, positions: Tensor) -> Tensor:
        """As ``distance_scores``, for queries at any ``positions`` among the keys, b n."""
        keys = torch.arange(num_keys, device=query.device)  # m
        distances = torch.arange(num_keys - 1, -num_keys, -1, device=query.device)  # w, of all pairs
        columns = num_keys - 1 - (positions.unsqueeze(-1) - keys)  # b n m
        scores = self.score_distances(query, distances)  # b h n w
        return scores.gather(-1, columns.unsqueeze(1).expand(-1, scores.shape[1], -1, -1))

    def score_distances(self, query: Tensor, distances: Tensor) -> Tensor:
        """Score each query (b h n c) at each distance (w): b h n w."""
        vectors = encode_distances(distances, self.width, self.clamp, self.distance.weight.dtype)  # w d
        vectors = nn.functional.dropout(vectors, self.dropout, training=self.training)
        keys = self.project.split_heads(self.distance(vectors).unsqueeze(0))  # 1 h w c
        return (query + self.distance_bias) @ keys.mT * query.shape[-1] ** -0.5


def encode_distances(distances: Tensor, width: int, clamp: int, dtype: torch.dtype) -> Tensor:
    """Encode distances as sines, then cosines, of wavelengths up to 10,000 · 2π: w → w d."""
    if clamp:
        distances = distances.clamp(-clamp, clamp)
    precision = torch.promote_types(dtype, torch.float32)
    even = torch.arange(0, width, 2, device=distances.device, dtype=precision)  # d/2
    angles = distances.unsqueeze(-1) * MAX_WAVELENGTH ** (-even / width)  # w d/2
    return torch.cat([angles.sin(), angles.cos()], -1).to(dtype)


def align_distances(scores: Tensor) -> Tensor:
    """Shift the scores of distances so that column j is about key j.

    All rows come with the falling distances of the last query (… n w → … n w): row i moves
    n - 1 - i columns to the left, and what enters from the right means nothing.
    """
    num_queries, num_distances = scores.shape[-2:]
    # One more column and the rows read anew, one column shorter, move each row one further.
    padded = nn.functional.pad(scores, (1, 0)).flatten(-2)[..., num_queries:]
    return padded.unflatten(-1, (num_queries, num_distances))
