"""A document as tokens: where its sentences end, and where its words begin."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mnemic.data.corpora.document import Document
from mnemic.text import Span, Tokenizer, sentences
from mnemic.text.tokenizers.word_starts import word_starts

FindWords = Callable[[str], Sequence[Span]]


class Tokens(NamedTuple):
    """The tokens of a document, n of them, without special ones."""

    ids: np.ndarray  # n, int32
    starts: np.ndarray  # n, bool: True where a word begins
    ends: Sequence[int]  # how many tokens there are up to each sentence's end


def tokenised(
    documents: Iterable[Document], tokenizer: Tokenizer, words: FindWords | None = None
) -> Iterator[Tokens]:
    """The documents as tokens, one by one as they are asked for."""
    return (tokenise(document.text, tokenizer, words) for document in documents)


def tokenise(text: str, tokenizer: Tokenizer, words: FindWords | None = None) -> Tokens:
    """All tokens of ``text``; a sentence without any is left out.

    ``words`` finds words that the text does not show by blanks, such as ``chinese_words``.
    """
    encoded = tokenizer.encode(text, special=False)
    begins = np.array([start for start, _ in encoded.offsets], dtype=np.int64)
    borders = [span.end for span in sentences(text)]
    ends = np.searchsorted(begins, borders).tolist()
    found = words(text) if words is not None else ()
    return Tokens(
        np.array(encoded.ids, dtype=np.int32),
        np.array(word_starts(text, encoded.offsets, found), dtype=bool),
        [end for end, before in zip(ends, [0, *ends]) if end > before],
    )
