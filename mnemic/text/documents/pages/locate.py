"""Locate words of a passage on a page, whatever its blanks, hyphens or order."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MIN_PIECE = 3  # letters of a piece of the words that is looked for alone
_PIECES = re.compile(r"[\n\t]+|(?<=[.;:,])\s+")


class Letters(NamedTuple):
    """The normalized letters and digits of a text, each with its position in it."""

    text: str
    positions: list[int]


def normalize_letters(characters: Iterable[str]) -> Letters:
    """Keep letters and digits, without case and ligatures.

    >>> normalize_letters("A-B\\n ﬁ")
    Letters(text='abfi', positions=[0, 2, 5, 5])
    """
    letters, positions = list[str](), list[int]()
    for position, character in enumerate(characters):
        for letter in unicodedata.normalize("NFKC", character).casefold():
            if letter.isalnum():
                letters.append(letter)
                positions.append(position)
    return Letters("".join(letters), positions)


def locate_span(page: Sequence[str], passage: str, start: int, end: int) -> list[int]:
    """Return the positions on a page of the characters of a span of a passage.

    The whole passage says which occurrence is meant; where the page has it in another order, the
    span or its pieces are looked for alone.

    >>> locate_span("1. one or 2. one or", "2. one", 3, 6)
    [13, 14, 15]
    """
    letters = normalize_letters(page)
    span = normalize_letters(passage[start:end]).text
    before, after = normalize_letters(passage[:start]).text, normalize_letters(passage[end:]).text
    if not span:
        return []
    first = letters.text.find(before + span + after)
    first = first + len(before) if first >= 0 else find_nearest(letters.text, span, before, after)
    if first >= 0:
        return list(range(letters.positions[first], letters.positions[first + len(span) - 1] + 1))
    positions, reached = set[int](), 0
    for text in _PIECES.split(passage[start:end]):
        piece = normalize_letters(text).text
        first = letters.text.find(piece, reached)
        first = letters.text.find(piece) if first < 0 else first
        if len(piece) >= MIN_PIECE and first >= 0:
            reached = first + len(piece)
            positions.update(letters.positions[first:reached])
    return sorted(positions)


def find_nearest(text: str, span: str, before: str, after: str) -> int:
    """Return where a span occurs with the most of its context; -1 if nowhere."""
    best, best_size, first = -1, -1, text.find(span)
    while first >= 0:
        size = count_equal(text[:first][::-1], before[::-1])
        size += count_equal(text[first + len(span) :], after)
        if size > best_size:
            best, best_size = first, size
        first = text.find(span, first + 1)
    return best


def count_equal(first: str, second: str) -> int:
    """Count the letters that two texts begin with alike."""
    return next((number for number, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
