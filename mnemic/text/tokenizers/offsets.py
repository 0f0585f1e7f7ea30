"""Correct a subword tokenizer's offsets so that they quote the text as a reader would."""

import unicodedata
from collections.abc import Sequence

Offset = tuple[int, int]

_MARKERS = {"▁", "Ġ"}  # pieces that stand for the blank before a word


def align_offsets(text: str, tokens: Sequence[str], offsets: Sequence[Offset]) -> list[Offset]:
    """Correct token offsets: no leading blank, no letter without its combining marks.

    White space at the edges of a token is left out, unless the token is nothing else. A word marker
    that stands for no blank of the text gets an empty span. A combining mark that the tokenizer
    dropped or merged belongs to the letter it modifies.
    """
    settled = [_trim_offset(text, token, *offset) for token, offset in zip(tokens, offsets)]
    return settled if text.isascii() else _include_marks(text, settled)


def _trim_offset(text: str, token: str, start: int, end: int) -> Offset:
    """Trim white space from the edges of one token's offsets."""
    quoted = text[start:end]
    inside = quoted.strip()
    if not inside or len(inside) == len(quoted):
        stands_for_nothing = token in _MARKERS and inside not in {"", token}
        return (start, start) if stands_for_nothing else (start, end)
    start += len(quoted) - len(quoted.lstrip())
    return start, start + len(inside)


def _include_marks(text: str, offsets: list[Offset]) -> list[Offset]:
    """Extend each offset over the combining marks that follow it."""
    complete: list[Offset] = []
    following = len(text)  # where the next token begins
    for start, end in reversed(offsets):
        while end < following and unicodedata.category(text[end]).startswith("M"):
            end += 1
        complete.append((start, end))
        following = start
    return complete[::-1]
