"""Find words, sentence ends and paragraphs by plain rules, without other packages.

Words are split as in named-entity corpora: a Chinese character is a word; so is a name with its
``@`` or ``#``, a clitic with its apostrophe (``'s``), and every other punctuation mark by itself.
"""

import re

from mnemic.text.chinese import HAN

_INNER = f"[^\\W{HAN}]+"  # letters, digits and underscores, but no Chinese
_WORD = re.compile(f"[{HAN}]|[@#]?{_INNER}(?:[-.]{_INNER})*|['’]{_INNER}|[^\\w\\s]")
# A full stop after these ends no sentence: titles of people and places, "vs", and initials; "I" is
# more often the pronoun.
_TITLES = "Mr|Mrs|Ms|Messrs|Mme|Mlle|Dr|Prof|Rev|Hon|Capt|Col|Gen|Lt|Sgt|St|Mt|vs"
_SHORT = "".join(f"(?<!\\b{title})" for title in (*_TITLES.split("|"), "[A-HJ-Z]", r"e\.g", r"i\.e"))
_END = re.compile(rf"(?:[!?]|{_SHORT}\.)[\"'”’)]*(?=\s|$)|[。！？][”’」』）]*|\S(?=[^\S\n]*\n\s*\n)")

_BREAK = re.compile(r"\n[^\S\n]*\n\s*")


def find_words(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each word of a text."""
    return [match.span() for match in _WORD.finditer(text)]


def find_sentence_ends(text: str) -> list[int]:
    """Return the positions at which sentences end, by plain rules.

    A sentence ends after . ! or ? and its closing quotes, before white space, unless the full stop
    belongs to a title or an initial; after the Chinese forms of these marks; and at an empty line.
    ``mnemic.text.sentences`` is far more accurate; this is for texts of millions of words, and
    needs no other package.
    """
    return [match.end() for match in _END.finditer(text)]


def find_paragraph_starts(text: str) -> list[int]:
    """Return the positions at which paragraphs start after empty lines."""
    return [match.end() for match in _BREAK.finditer(text)]
