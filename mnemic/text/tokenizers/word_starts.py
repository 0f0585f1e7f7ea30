"""Which tokens begin a word: what whole-word masking asks for."""

import re
import unicodedata
from collections.abc import Sequence

from mnemic.text.chinese import HAN
from mnemic.text.sentences import Span
from mnemic.text.tokenizers.offsets import Offset

_IDEOGRAPH = re.compile(f"[{HAN}]")


def word_starts(text: str, offsets: Sequence[Offset], words: Sequence[Span] = ()) -> list[bool]:
    """True for each token that begins a word, whatever the tokenizer's kind.

    A word is a run of letters, digits and marks, or one character of any other sort; a Chinese
    character is a word of its own, unless it stands in one of ``words``. Tokens that share a
    character, as those of byte-level BPE may, belong to one word.
    """
    within = {place for word in words for place in range(word.start + 1, word.end)}
    starts: list[bool] = []
    before = reached = -1
    for start, end in offsets:
        joined = start < reached or (
            start == reached and (before == start or start in within or _joins(text, start))
        )
        starts.append(not joined)
        before, reached = start, max(reached, end)
    return starts


def chinese_words(text: str) -> list[Span]:
    """The Chinese words of more than one character, as ``rjieba`` finds them."""
    try:
        import rjieba  # here: only Chinese texts need it
    except ModuleNotFoundError as error:
        raise ValueError(
            "Chinese words need rjieba, which is not installed: pip install 'mnemic[chinese]'"
        ) from error
    if not _IDEOGRAPH.search(text):
        return []
    found = (Span(start, end) for _, start, end in rjieba.tokenize(text))
    return [word for word in found if len(word_of := text[slice(*word)]) > 1 and _has_han(word_of)]


def _has_han(word: str) -> bool:
    return _IDEOGRAPH.search(word) is not None


def _joins(text: str, place: int) -> bool:
    """Whether the characters before and at ``place`` belong to one word by themselves."""
    return place < len(text) and all(map(_in_word, text[place - 1 : place + 1]))


def _in_word(letter: str) -> bool:
    if letter.isascii():
        return letter.isalnum()
    if unicodedata.category(letter).startswith("M"):
        return True
    return letter.isalnum() and not _IDEOGRAPH.match(letter)
