"""Encoders: from token ids to hidden states (I of the memory-network frame).

``load_encoder`` reads a Transformer from a Hugging Face folder, ``encode_ragged`` runs it on texts
of different lengths without padding, ``prepare_for_inference`` makes it as fast as the machine
allows.

Contract: ``encode(tokens, mask, context=None) → states``; ids b n and bool b n → b n d, zeros at
padding, ``width`` d. ``context`` is what the kind can look back at; each kind documents it.
Kinds with ``reads_texts`` encode each text as a whole instead, for a memory: one state per table,
u w → u t d; their ``words`` are the word vectors (v d), which other parts may share.
"""

from collections.abc import Callable
from typing import Any

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.elmo import ELMoEncoder
from mnemic.encode.embeddings import EMBEDDINGS, Embeddings
from mnemic.encode.fusion import FUSIONS
from mnemic.encode.huggingface import Pretrained, load_encoder, save_encoder
from mnemic.encode.packed import PackedMask
from mnemic.encode.pictures.brnn import BRNNEncoder
from mnemic.encode.positions import POSITIONS
from mnemic.encode.precision import prepare_for_inference
from mnemic.encode.ragged import encode_ragged
from mnemic.encode.recurrent import RECURRENTS, RecurrentEncoder, RecurrentOutput
from mnemic.encode.seq2seq.encoder_decoder import EncoderDecoder
from mnemic.encode.seq2seq.translation import TranslationEncoder
from mnemic.encode.stacks import DECODERS, STACKS, DecoderStack
from mnemic.encode.texts.bag import Bag
from mnemic.encode.texts.context_bag import ContextBag
from mnemic.encode.texts.exact_match import ExactMatch
from mnemic.encode.texts.masked_bag import MaskedBag
from mnemic.encode.texts.ngrams import Ngrams
from mnemic.encode.texts.recurrent_sentence import RecurrentSentence
from mnemic.encode.texts.word_ngrams import WordNgrams
from mnemic.encode.texts.word_vectors import WordVectors
from mnemic.encode.transformer import TransformerEncoder

ENCODERS: dict[str, Callable[..., Any]] = {
    "bag": Bag,
    "brnn": BRNNEncoder,
    "causal": CausalEncoder,
    "context-bag": ContextBag,
    "elmo": ELMoEncoder,
    "encoder-decoder": EncoderDecoder,
    "exact-match": ExactMatch,
    "masked-bag": MaskedBag,
    "ngrams": Ngrams,
    "recurrent": RecurrentEncoder,
    "recurrent-sentence": RecurrentSentence,
    "transformer": TransformerEncoder,
    "translation": TranslationEncoder,
    "word-ngrams": WordNgrams,
    "word-vectors": WordVectors,
}
