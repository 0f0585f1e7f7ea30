"""Decide whether a network knows the language of a text, by its vocabulary.

A vocabulary has whole words, or parts of several letters, of the languages that it was made from.
A word of another script falls apart into single letters, or is unknown altogether; such a text says
nothing to the network, and is read by its words alone. A Chinese character is known as a word only
to a vocabulary that has most of the common ones. The mean share of a word's letters that the
shipped reader's vocabulary knows is 1.0 in English, German and French, 0.2 in Ukrainian, 0.1 in
Korean and 0 in Chinese.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy

from mnemic.store.contract import PassageEmbedding
from mnemic.store.retrieve.embedders import Embedder
from mnemic.text.chinese import HAN, IDEOGRAPH
from mnemic.text.tokenizers.contract import Tokenizer

MIN_KNOWN_SHARE = 0.6  # of a known text; in SQuAD, no question has less than 0.97
CHARACTER_WEIGHT = 0.5  # of a Chinese character: most words have two
MIN_CHARACTER_SHARE = 0.5  # of the common Chinese characters, for a vocabulary of Chinese
# Every tenth of the 3,755 common characters: level 1 of GB 2312, in the order of their sounds.
COMMON_CHARACTERS = bytes(
    byte for high in range(0xB0, 0xD7) for low in range(0xA1, 0xFF, 10) for byte in (high, low)
).decode("gb2312")
_FOREIGN_LETTER = re.compile(r"[^\W\d_\x00-\x7f]")
_WORD = re.compile(rf"[{HAN}]|[^\s{HAN}]+")  # a Chinese character is a word

M = TypeVar("M")


@runtime_checkable
class TokenReader(Protocol):
    """A network that reads tokens; one without a tokenizer knows no language from another."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of its texts."""


def knows_language(model: object, text: str) -> bool:
    """Return whether a model can read a text; True for one without a tokenizer."""
    if not _FOREIGN_LETTER.search(text) or not isinstance(model, TokenReader):
        return True
    return compute_known_share(model.tokenizer, text) >= MIN_KNOWN_SHARE


def select_model(model: M | None, text: str) -> M | None:
    """Return a model if it knows the language of a text, else None."""
    return model if model is not None and knows_language(model, text) else None


def embed_known_passages(embedder: Embedder, texts: Sequence[str]) -> list[PassageEmbedding]:
    """Embed texts to store; those in an unknown language become zeros."""
    is_known = [knows_language(embedder, text) for text in texts]
    known_texts = [text for text, known in zip(texts, is_known) if known]
    embeddings = iter(embedder.embed_passages(known_texts) if known_texts else [])
    zeros = numpy.zeros((1, embedder.model.width), numpy.float32)
    nothing = PassageEmbedding(zeros[0], zeros[:0])
    return [next(embeddings) if known else nothing for known in is_known]


def compute_known_share(tokenizer: Tokenizer, text: str) -> float:
    """Return the mean share, over all words, of letters that a vocabulary knows.

    1.0 for a text without letters. Latin letters without accents are in every vocabulary, and an
    abbreviation is spelled out in any language: they are known.
    """
    known, total, num_words = find_known_positions(tokenizer, text), 0.0, 0.0
    knows_characters = IDEOGRAPH.search(text) is not None and has_chinese(tokenizer)
    for word in _WORD.finditer(text):
        letters = [position for position in range(*word.span()) if text[position].isalpha()]
        if not letters:
            continue
        is_character = IDEOGRAPH.match(word[0]) is not None
        if is_character or len(letters) == 1:
            share = float(letters[0] in known and (knows_characters or not is_character))
        else:
            share = sum(text[position].isascii() or known.get(position, 0) > 1 for position in letters) / len(letters)
        weight = CHARACTER_WEIGHT if is_character else 1.0
        total, num_words = total + weight * share, num_words + weight
    return total / num_words if num_words else 1.0


def has_chinese(tokenizer: Tokenizer) -> bool:
    """Return whether a vocabulary has most of the common Chinese characters."""
    num_known = len(find_known_positions(tokenizer, COMMON_CHARACTERS))
    return num_known >= MIN_CHARACTER_SHARE * len(COMMON_CHARACTERS)


def find_known_positions(tokenizer: Tokenizer, text: str) -> dict[int, int]:
    """Return the positions that tokens cover, each with the length of its token.

    A character of several tokens, as bytes are, or of an unknown one is not covered.
    """
    encoding = tokenizer.encode(text, special=False)
    num_tokens = Counter(encoding.offsets)
    lengths: dict[int, int] = {}
    for token_id, (start, end) in zip(encoding.ids, encoding.offsets):
        if token_id != tokenizer.unknown and num_tokens[start, end] == 1:
            length = len(text[start:end].strip())
            lengths |= dict.fromkeys(range(start, end), length)
    return lengths
