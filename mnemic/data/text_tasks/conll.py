"""Words with tags: CoNLL columns, the word first and the tag last, a blank line between sentences.

A word's text is joined with blanks, so that offsets mean the same as in a running text.
"""

from collections.abc import Sequence
from pathlib import Path

from mnemic.data.text_tasks.examples import Tagged, TextError
from mnemic.data.text_tasks.files import lines

PREFIXES = ("B-", "I-")
OUTSIDE = "O"


def read_conll(path: Path, *, numbered: bool = False) -> list[Tagged]:
    """All sentences of a file. ``numbered`` words have a digit behind them, as in Weibo NER,
    which says where in its Chinese word a character stands; it is left out."""
    found: list[Tagged] = []
    words: list[str] = []
    tags: list[str] = []
    for number, line in lines(path):
        if not line.strip():
            if words:
                found.append(tagged(words, tags))
            words, tags = [], []
            continue
        if line.startswith("-DOCSTART-"):
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        word, tag = cells[0], cells[-1].strip()
        if len(cells) < 2 or not (tag == OUTSIDE or tag.startswith(PREFIXES)):
            raise TextError(
                f"{path}, line {number}: {line!r}; expected a word, a tab or blank, and a tag "
                "(O, B-… or I-…) in the last column"
            )
        if numbered and len(word) > 1 and word[-1].isdecimal():
            word = word[:-1]
        words.append(word)
        tags.append(tag)
    if words:
        found.append(tagged(words, tags))
    if not found:
        raise TextError(f"{path} holds no sentences")
    return found


def tagged(words: Sequence[str], tags: Sequence[str]) -> Tagged:
    """A sentence as one text, its words a blank apart."""
    places, at = [], 0
    for word in words:
        places.append((at, at + len(word)))
        at += len(word) + 1
    return Tagged(" ".join(words), tuple(places), tuple(tags))
