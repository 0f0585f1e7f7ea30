"""I of the frame: tokens to states.

``load_encoder`` reads a Transformer from a Hugging Face folder, ``encode_ragged`` gives it texts of
different lengths without padding, ``for_inference`` makes it as fast as the machine allows.

Contract: ``encode(tokens, mask, context=None) → states``; ids b n and bool b n → b n d, zeros at
padding, ``width`` d. ``context`` is what the kind can look back at; each kind says what that is.
``bag``, ``context``, ``exact``, ``masked-bag``, ``ngrams`` and ``sentence`` give each text as a
whole instead: one state a table, u w → u t d; their ``words`` are the word vectors (v d), which
other parts may share.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.attention import ATTENTIONS, FullAttention, Heads, Kept
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.embeddings import EMBEDDINGS, Embeddings
from mnemic.encode.fusion import FUSIONS
from mnemic.encode.huggingface import Pretrained, load_encoder, save_encoder
from mnemic.encode.packed import Packed
from mnemic.encode.pooler import Pooler
from mnemic.encode.positions import POSITIONS
from mnemic.encode.precision import for_inference
from mnemic.encode.ragged import encode_ragged
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
from mnemic.encode.texts.bag import Bag
from mnemic.encode.texts.context_bag import ContextBag
from mnemic.encode.texts.exact_match import ExactMatch
from mnemic.encode.texts.masked_bag import MaskedBag
from mnemic.encode.texts.ngrams import Ngrams
from mnemic.encode.texts.recurrent_sentence import RecurrentSentence
from mnemic.encode.texts.word_vectors import WordVectors
from mnemic.encode.transformer import TransformerEncoder

ENCODERS: dict[str, Callable[..., Any]] = {
    "bag": Bag,
    "causal": CausalEncoder,
    "context": ContextBag,
    "exact": ExactMatch,
    "masked-bag": MaskedBag,
    "ngrams": Ngrams,
    "recurrent": RecurrentEncoder,
    "sentence": RecurrentSentence,
    "transformer": TransformerEncoder,
    "words": WordVectors,
}

# Kinds that a memory of texts can use: each text by itself, as a whole or word by word.
WHOLE = ("bag", "context", "exact", "masked-bag", "ngrams", "sentence", "words")

__all__ = [
    "ATTENTIONS",
    "DECODERS",
    "EMBEDDINGS",
    "ENCODERS",
    "FUSIONS",
    "POSITIONS",
    "RECURRENTS",
    "STACKS",
    "WHOLE",
    "Bag",
    "Cache",
    "CausalEncoder",
    "Context",
    "ContextBag",
    "Decoded",
    "DecoderStack",
    "Embeddings",
    "EncoderStack",
    "ExactMatch",
    "FullAttention",
    "Heads",
    "Kept",
    "MaskedBag",
    "Ngrams",
    "Packed",
    "Pooler",
    "Pretrained",
    "Recurrent",
    "RecurrentEncoder",
    "RecurrentSentence",
    "TransformerEncoder",
    "WordVectors",
    "encode_ragged",
    "for_inference",
    "load_encoder",
    "save_encoder",
]
