"""Find the tokens that begin a word, for whole-word masking."""

import re
import unicodedata
from collections.abc import Sequence

from mnemic.text.chinese import IDEOGRAPH
from mnemic.text.sentences import Span
from mnemic.text.tokenizers.offsets import Offset

WORD = re.compile(r"\w+")
RUN_SEPARATORS = (" ", "-", "'", "’")  # between the words of a run
SUFFIXES = ("s",)  # after an apostrophe


def find_word_starts(text: str, offsets: Sequence[Offset], word_spans: Sequence[Span] = ()) -> list[bool]:
    """Mark each token that begins a word, for any kind of tokenizer.

    A word is a run of letters, digits and marks, or one character of any other sort; a Chinese
    character is a word by itself, unless it is inside one of ``word_spans``, which may hold blanks.
    Tokens that share a character, as those of byte-level BPE may, belong to one word.
    """
    inner_positions = {position for word in word_spans for position in range(word.start + 1, word.end)}
    starts: list[bool] = []
    previous_start = reached = -1
    for start, end in offsets:
        continues_word = (
            start < reached
            or start in inner_positions
            or (start == reached and (previous_start == start or _is_inside_word(text, start)))
        )
        starts.append(not continues_word)
        previous_start, reached = start, max(reached, end)
    return starts


def find_chinese_words(text: str) -> list[Span]:
    """Return the spans of Chinese words of several characters, as found by ``rjieba``."""
    try:
        import rjieba  # imported here: only Chinese texts need it
    except ModuleNotFoundError as error:
        raise ValueError("Chinese words need rjieba, which is not installed: pip install 'mnemic[chinese]'") from error
    if not IDEOGRAPH.search(text):
        return []
    spans = (Span(start, end) for _, start, end in rjieba.tokenize(text))
    return [span for span in spans if span.end - span.start > 1 and IDEOGRAPH.search(text, *span)]


def find_capitalized_runs(text: str) -> list[Span]:
    """Return the spans of two or more capitalized words in a row, such as names.

    Single blanks, hyphens or apostrophes stand between the words of a run.

    >>> text = "Ada met Mary-Ann Lee in New York's zoo."
    >>> [text[span.start : span.end] for span in find_capitalized_runs(text)]
    ['Mary-Ann Lee', "New York's"]
    """
    runs: list[Span] = []
    num_words = 0
    for word in WORD.finditer(text):
        continues_run = num_words > 0 and text[runs[-1].end : word.start()] in RUN_SEPARATORS
        if continues_run and (word.group()[0].isupper() or word.group() in SUFFIXES):
            runs[-1] = Span(runs[-1].start, word.end())
            num_words += word.group() not in SUFFIXES
            continue
        if num_words == 1:
            runs.pop()
        num_words = 0
        if word.group()[0].isupper():
            runs.append(Span(*word.span()))
            num_words = 1
    return runs[:-1] if num_words == 1 else runs


def _is_inside_word(text: str, position: int) -> bool:
    """Check whether the characters before and at ``position`` belong to one word."""
    return position < len(text) and all(map(_is_word_character, text[position - 1 : position + 1]))


def _is_word_character(character: str) -> bool:
    """Check whether a character belongs to words; Chinese characters do not."""
    if character.isascii():
        return character.isalnum()
    if unicodedata.category(character).startswith("M"):
        return True
    return character.isalnum() and not IDEOGRAPH.match(character)
