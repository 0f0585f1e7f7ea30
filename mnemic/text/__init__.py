"""Strings to tokens and sentences, always with the character offsets that quote the text.

A tokenizer comes from ``TOKENIZERS[kind](texts)``, which learns its vocabulary, or from
``load(path)``, which reads any stored one, Hugging Face's included; ``Tokenizer`` is what all of
them promise. ``load_subwords(folder)`` knows the vocab.txt of a BERT, too. ``sentences(text)`` cuts
a text, English or Chinese, into spans that tile it.
"""

from collections.abc import Callable, Mapping

from mnemic.text.chinese import share_of_han
from mnemic.text.sentences import Span, sentences, trim
from mnemic.text.tokenizers.contract import Encoded, Frame, Tokenizer
from mnemic.text.tokenizers.huggingface import load_subwords
from mnemic.text.tokenizers.load import load
from mnemic.text.tokenizers.subwords import Subwords
from mnemic.text.tokenizers.trainers import TRAINERS
from mnemic.text.tokenizers.words import Words
from mnemic.text.windows import Room, Windowed, WindowError

TOKENIZERS: Mapping[str, Callable[..., Tokenizer]] = {"words": Words.of, **TRAINERS}

__all__ = [
    "TOKENIZERS",
    "TRAINERS",
    "Encoded",
    "Frame",
    "Room",
    "Span",
    "Subwords",
    "Tokenizer",
    "WindowError",
    "Windowed",
    "Words",
    "load",
    "load_subwords",
    "sentences",
    "share_of_han",
    "trim",
]
