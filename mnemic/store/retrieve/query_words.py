"""Extract the words of texts and queries for full-text search, Chinese included."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec

from mnemic.text.chinese import HAN, han_fraction
from mnemic.text.documents import DocumentError
from mnemic.text.sentences import MIN_HAN_FRACTION, Span
from mnemic.text.stop_words import STOP_WORDS

MAX_PART_LENGTH = 4  # characters of a part of a Chinese word
_HAN_RUN = re.compile(f"[{HAN}]+")
_WORD = re.compile(r"\w+")


def segment_chinese(text: str) -> str | None:
    """Separate the Chinese words of a text by blanks; None if that changes nothing.

    Without ``rjieba``, a little Chinese in a text of another language stays as it is.
    """
    if not _HAN_RUN.search(text):
        return None
    check_chinese(text)
    if not can_segment_chinese():
        return None
    import rjieba  # imported here: only Chinese texts need it

    return _HAN_RUN.sub(lambda run: f" {' '.join(rjieba.cut(run.group()))} ", text)


def check_chinese(text: str) -> None:
    """Raise ``DocumentError`` for a Chinese text if ``rjieba`` is not installed."""
    if not can_segment_chinese() and han_fraction(text) >= MIN_HAN_FRACTION:
        raise DocumentError("a Chinese text needs rjieba, which is not installed: pip install 'mnemic[chinese]'")


@cache
def can_segment_chinese() -> bool:
    """Return whether ``rjieba`` is installed."""
    return find_spec("rjieba") is not None


def extract_words(text: str) -> list[str]:
    """Return the distinct words of a text in lower case, without stop words.

    If all of them are stop words, they are returned.
    """
    words = list(dict.fromkeys(_WORD.findall((segment_chinese(text) or text).lower())))
    return [word for word in words if word not in STOP_WORDS] or words


def find_words(text: str) -> Iterator[Span]:
    """Yield the spans of a text's words, Chinese ones too, in order."""
    segmented, position = segment_chinese(text) or text, 0
    for word in _WORD.findall(segmented):
        position = text.index(word, position)
        yield Span(position, position + len(word))
        position += len(word)


def split_unknown_words(words: Sequence[str], is_known: Callable[[str], bool]) -> list[str]:
    """Add the parts of each Chinese word that no passage has.

    Whether a name takes in the character beside it depends on the sentence: a question may have
    程廷华入 where the passage has 程廷华.
    """
    all_words = list(words)
    for word in words:
        if len(word) > 2 and _HAN_RUN.fullmatch(word) and not is_known(word):
            all_words += [
                word[start : start + length]
                for length in range(min(len(word) - 1, MAX_PART_LENGTH), 1, -1)
                for start in range(len(word) - length + 1)
            ]
    return [word for word in dict.fromkeys(all_words) if word in words or word not in STOP_WORDS]


def build_fts5_query(words: list[str], *, require_all: bool = False) -> str:
    """Build an FTS5 query for texts with any of these words, or with all."""
    quoted = ('"' + word.replace('"', '""') + '"' for word in words)
    return (" AND " if require_all else " OR ").join(quoted)
