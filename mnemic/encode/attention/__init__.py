"""Attention kinds: ``forward(x, context, mask)``, b n d and b m d → b n d.

``mask`` is bool, True = may be seen, and broadcastable to b h n m; a row that may see nothing comes
out as zeros. When ``x`` is the end of ``context``, distances are counted from that end. A kind that
a decoder can use also splits its ``forward`` in two: ``keep(context)`` and ``mix(x, kept, mask)``.
Where ``packs`` is true, ``mask`` may be ``Packed``: texts in one row, each of which sees itself.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.attention.full import FullAttention
from mnemic.encode.attention.heads import Heads, Kept
from mnemic.encode.attention.masked import MaskedAttention

ATTENTIONS: dict[str, Callable[..., Any]] = {"full": FullAttention, "masked": MaskedAttention}

__all__ = ["ATTENTIONS", "FullAttention", "Heads", "Kept", "MaskedAttention"]
