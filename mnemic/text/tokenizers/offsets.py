"""Make a subword tokenizer's offsets quote the text the way a reader would."""

import unicodedata
from collections.abc import Sequence

Offset = tuple[int, int]

_MARKERS = {"▁", "Ġ"}  # pieces that stand for the blank before a word


def settle(text: str, tokens: Sequence[str], offsets: Sequence[Offset]) -> list[Offset]:
    """Offsets in which a token quotes neither the blank before its word nor half a letter.

    White space at the edges of a token is left out, unless the token is nothing else. A word
    marker that stands for no blank of the text gets an empty span. A combining mark that the
    tokenizer dropped or merged belongs to the letter it stands on.
    """
    settled = [_trimmed(text, token, *offset) for token, offset in zip(tokens, offsets)]
    return settled if text.isascii() else _with_marks(text, settled)


def _trimmed(text: str, token: str, start: int, end: int) -> Offset:
    quoted = text[start:end]
    inside = quoted.strip()
    if not inside or len(inside) == len(quoted):
        stands_for_nothing = token in _MARKERS and inside not in {"", token}
        return (start, start) if stands_for_nothing else (start, end)
    start += len(quoted) - len(quoted.lstrip())
    return start, start + len(inside)


def _with_marks(text: str, offsets: list[Offset]) -> list[Offset]:
    complete: list[Offset] = []
    following = len(text)  # where the next token begins
    for start, end in reversed(offsets):
        while end < following and unicodedata.category(text[end]).startswith("M"):
            end += 1
        complete.append((start, end))
        following = start
    return complete[::-1]
