"""The words of a running text, as the annotators of named entities split it.

A Chinese character is a word; so is a name with its ``@`` or ``#``, what an apostrophe joins to
one (``'s``), and every other mark by itself.
"""

import re

from mnemic.text.chinese import HAN

_INNER = f"[^\\W{HAN}]+"  # letters, digits and underscores, but no Chinese
_WORD = re.compile(f"[{HAN}]|[@#]?{_INNER}(?:[-.]{_INNER})*|['’]{_INNER}|[^\\w\\s]")


def words_of(text: str) -> list[tuple[int, int]]:
    """Where each word stands, half open; blanks belong to none."""
    return [found.span() for found in _WORD.finditer(text)]
