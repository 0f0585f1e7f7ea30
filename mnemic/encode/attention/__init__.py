"""Attention kinds: ``forward(x, context, mask)``, b n d and b m d → b n d.

``mask`` is bool, True where a query may attend, and broadcastable to b h n m; a row without any
visible position comes out as zeros. When ``x`` is the end of ``context``, distances are counted
from that end. ``mask`` reaches an encoder's layer as b 1 1 m, or b 1 n m where rows differ.
``supports_cache`` is true of a kind that a decoder can use: it also splits its ``forward`` in two,
``project_key_values(context)`` and ``attend(x, key_values, mask)``. Where ``supports_packing`` is
true, ``mask`` may be a ``PackedMask``: packed sequences that attend only to themselves. A kind with
``supports_scores`` has ``heads`` and ``attention_scores(x, context, mask)``, its scores before the
softmax, b h n m, -inf where hidden: what a student's attention is compared by.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.attention.full import FullAttention, KeyValues
from mnemic.encode.attention.masked import MaskedAttention

ATTENTIONS: dict[str, Callable[..., Any]] = {"full": FullAttention, "masked": MaskedAttention}
