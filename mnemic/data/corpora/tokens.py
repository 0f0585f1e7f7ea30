"""Tokenize documents: ids, where words start, and where sentences end."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mnemic.text import Span, Tokenizer, split_sentences
from mnemic.text.tokenizers.word_starts import find_word_starts

WordFinder = Callable[[str], Sequence[Span]]


class TokenizedDocument(NamedTuple):
    """A document as n tokens, without special tokens."""

    ids: np.ndarray  # n, int32
    word_starts: np.ndarray  # n, bool: True where a word starts
    sentence_ends: Sequence[int]  # number of tokens up to each sentence's end


def tokenize_document(text: str, tokenizer: Tokenizer, find_words: WordFinder | None = None) -> TokenizedDocument:
    """Tokenize a text, and find its sentences; those without a token are left out.

    ``find_words`` finds words that blanks do not separate, such as ``find_chinese_words``.
    """
    encoded = tokenizer.encode(text, special=False)
    token_starts = np.array([start for start, _ in encoded.offsets], dtype=np.int64)
    character_ends = [span.end for span in split_sentences(text)]
    token_ends = np.searchsorted(token_starts, character_ends).tolist()
    words = find_words(text) if find_words is not None else ()
    return TokenizedDocument(
        np.array(encoded.ids, dtype=np.int32),
        np.array(find_word_starts(text, encoded.offsets, words), dtype=bool),
        [end for end, before in zip(token_ends, [0, *token_ends]) if end > before],
    )
