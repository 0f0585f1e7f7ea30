"""Split strings into tokens and sentences, with character offsets that quote the text.

A tokenizer comes from ``TOKENIZERS[kind](texts)``, which learns its vocabulary, or from
``load_tokenizer(path)``, which reads any saved one, Hugging Face's included; ``Tokenizer`` is the
protocol of all of them. ``load_subword_tokenizer(folder)`` also reads the vocab.txt of a BERT.
``split_sentences(text)`` splits a text, English or Chinese, into spans that cover it.
"""

from collections.abc import Callable, Mapping

from mnemic.text.chinese import han_fraction
from mnemic.text.sentences import Span, split_sentences, trim_span
from mnemic.text.tokenizers.contract import Encoding, Tokenizer
from mnemic.text.tokenizers.huggingface import load_subword_tokenizer
from mnemic.text.tokenizers.load import load_tokenizer
from mnemic.text.tokenizers.subwords import SubwordTokenizer
from mnemic.text.tokenizers.trainers import TRAINERS
from mnemic.text.tokenizers.words import WordTokenizer
from mnemic.text.windows import WindowedText, WindowOptions

TOKENIZERS: Mapping[str, Callable[..., Tokenizer]] = {"words": WordTokenizer.from_texts, **TRAINERS}
