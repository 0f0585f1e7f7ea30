"""I of the frame: tokens to states.

Contract: ``encode(tokens, mask, context=None) → states``; ids b n and bool b n → b n d, zeros at
padding, ``width`` d. ``context`` is what the kind can look back at; each kind says what that is.
``bag`` sums up each text instead: one state a table, b t d.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.attention import ATTENTIONS, FullAttention, Heads, Kept
from mnemic.encode.bag import Bag
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.embeddings import EMBEDDINGS, Embeddings
from mnemic.encode.positions import POSITIONS
from mnemic.encode.recurrence import Recurrent
from mnemic.encode.recurrent import RECURRENTS, RecurrentEncoder
from mnemic.encode.stack import (
    DECODERS,
    STACKS,
    Cache,
    Context,
    Decoded,
    DecoderStack,
    EncoderStack,
)
from mnemic.encode.transformer import TransformerEncoder

ENCODERS: dict[str, Callable[..., Any]] = {
    "bag": Bag,
    "causal": CausalEncoder,
    "recurrent": RecurrentEncoder,
    "transformer": TransformerEncoder,
}

WHOLE = ("bag",)  # kinds that give each text as a whole, as a memory of texts wants it

__all__ = [
    "ATTENTIONS",
    "DECODERS",
    "EMBEDDINGS",
    "ENCODERS",
    "POSITIONS",
    "RECURRENTS",
    "STACKS",
    "WHOLE",
    "Bag",
    "Cache",
    "CausalEncoder",
    "Context",
    "Decoded",
    "DecoderStack",
    "Embeddings",
    "EncoderStack",
    "FullAttention",
    "Heads",
    "Kept",
    "Recurrent",
    "RecurrentEncoder",
    "TransformerEncoder",
]
