"""Attention kinds: ``forward(x, context, mask)``, b n d and b m d → b n d.

``mask`` is bool, True where a query may attend, and broadcastable to b h n m; a row without any
visible position comes out as zeros. It reaches an encoder's layer as b 1 1 m. A constructor may
take ``layer``, the number of its layer from 0, ``depth``, the number of layers, ``is_causal``, in a
decoder, and ``is_cross``, over a source. ``shared_parts`` are names of modules that the layers of a
stack share: those of layer 0.

What a kind can do is an attribute of its class; one that is missing is False:

- ``supports_context``: ``x`` may be the end of a longer ``context``; distances are counted from
  that end. Without it both are the same.
- ``supports_causal``: a decoder can use it. ``mask`` may be a ``CausalMask``, and ``forward`` is
  split in two, ``project_key_values(context)``, a NamedTuple of tensors that are concatenated on
  their second to last axis, and ``attend(x, key_values, mask)``.
- ``supports_cross``: ``x`` may also attend to another text, to which it has no distance.
- ``supports_rows``: ``mask`` may be b 1 n m, different for each query.
- ``supports_packing``: ``mask`` may be a ``PackedMask``, packed texts that attend to themselves.
- ``supports_scores``: it has ``heads`` and ``attention_scores(x, context, mask)``, its scores
  before the softmax, b h n m, -inf where hidden: what a student's attention is compared by.
- ``decodes_in_slots``: a decoder may keep keys and values of several beams in one place; the kind
  has ``scale``, of its scores, and ``step_bias(num_steps)``, what is added to them.
- ``draws_buckets``: ``attend_with_buckets(x, context, mask, buckets)`` also returns the random
  buckets it used; with them a second call gives the same states.
- ``max_length``: the largest number of positions, None if unlimited.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.attention.bucketed import BucketedAttention as BucketedAttention
from mnemic.encode.attention.distance_aware import DistanceAwareAttention
from mnemic.encode.attention.external import ExternalAttention
from mnemic.encode.attention.full import FullAttention, KeyValues
from mnemic.encode.attention.low_rank_local import LowRankLocalAttention
from mnemic.encode.attention.lsh import LSHAttention
from mnemic.encode.attention.masked import MaskedAttention
from mnemic.encode.attention.mlp_mixer import TokenMixing
from mnemic.encode.attention.multi_scale import MultiScaleAttention
from mnemic.encode.attention.relative import RelativeAttention
from mnemic.encode.attention.sinusoidal_relative import SinusoidalRelativeAttention
from mnemic.encode.attention.transformer_xl import TransformerXLAttention

ATTENTIONS: dict[str, Callable[..., Any]] = {
    "bucketed": BucketedAttention,
    "distance-aware": DistanceAwareAttention,
    "external": ExternalAttention,
    "full": FullAttention,
    "low-rank-local": LowRankLocalAttention,
    "lsh": LSHAttention,
    "masked": MaskedAttention,
    "mlp-mixer": TokenMixing,
    "multi-scale": MultiScaleAttention,
    "relative": RelativeAttention,
    "sinusoidal-relative": SinusoidalRelativeAttention,
    "transformer-xl": TransformerXLAttention,
}
