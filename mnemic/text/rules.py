"""Plain rules: the words of a running text, and where its sentences end.

Words are split as the annotators of named entities do it: a Chinese character is a word; so is a
name with its ``@`` or ``#``, what an apostrophe joins to one (``'s``), and every other mark by
itself.
"""

import re

from mnemic.text.chinese import HAN

_INNER = f"[^\\W{HAN}]+"  # letters, digits and underscores, but no Chinese
_WORD = re.compile(f"[{HAN}]|[@#]?{_INNER}(?:[-.]{_INNER})*|['’]{_INNER}|[^\\w\\s]")
# What a full stop behind it does not end: titles of people and places, "vs", and initials; "I" is
# rather the pronoun.
_TITLES = "Mr|Mrs|Ms|Messrs|Mme|Mlle|Dr|Prof|Rev|Hon|Capt|Col|Gen|Lt|Sgt|St|Mt|vs"
_SHORT = "".join(f"(?<!\\b{own})" for own in (*_TITLES.split("|"), "[A-HJ-Z]", r"e\.g", r"i\.e"))
_END = re.compile(
    rf"(?:[!?]|{_SHORT}\.)[\"'”’)]*(?=\s|$)|[。！？][”’」』）]*|\S(?=[^\S\n]*\n\s*\n)"
)

_BREAK = re.compile(r"\n[^\S\n]*\n\s*")


def words_of(text: str) -> list[tuple[int, int]]:
    """Where each word stands, half open; blanks belong to none."""
    return [found.span() for found in _WORD.finditer(text)]


def ends_of(text: str) -> list[int]:
    """Where sentences end by plain rules.

    Behind . ! or ? and its quotes, before a blank, unless the full stop is that of a title or an
    initial; behind their Chinese forms; at an empty line. ``mnemic.text.sentences`` knows far more;
    this is for texts of millions of words, and needs no other package.
    """
    return [found.end() for found in _END.finditer(text)]


def breaks_of(text: str) -> list[int]:
    """Where paragraphs begin behind empty lines."""
    return [found.end() for found in _BREAK.finditer(text)]
