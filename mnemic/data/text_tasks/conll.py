"""Reader of tagged words in CoNLL columns: word first, tag last, blank lines between sentences.

Words are joined by blanks, so that offsets mean the same as in running text.
"""

from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path

from mnemic.data.text_tasks.examples import TaggedExample, TextError
from mnemic.data.text_tasks.files import read_lines

TAG_PREFIXES = ("B-", "I-")
OUTSIDE_TAG = "O"


def read_conll(path: Path, *, strip_digits: bool = False) -> list[TaggedExample]:
    """Read all sentences of a file.

    ``strip_digits`` removes the last digit of each word: in Weibo NER it is the position of a
    character in its Chinese word.
    """
    sentences: list[TaggedExample] = []
    words: list[str] = []
    tags: list[str] = []
    for number, line in chain(read_lines(path), [(0, "")]):  # a blank line ends the last sentence
        if not line.strip():
            if words:
                sentences.append(join_words(words, tags))
            words, tags = [], []
            continue
        if line.startswith("-DOCSTART-"):
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        word, tag = cells[0], cells[-1].strip()
        if len(cells) < 2 or not (tag == OUTSIDE_TAG or tag.startswith(TAG_PREFIXES)):
            raise TextError(
                f"{path}, line {number}: {line!r}; expected a word, a tab or blank, and a tag "
                "(O, B-… or I-…) in the last column"
            )
        if strip_digits and len(word) > 1 and word[-1].isdecimal():
            word = word[:-1]
        words.append(word)
        tags.append(tag)
    if not sentences:
        raise TextError(f"{path} holds no sentences")
    return sentences


def join_words(words: Sequence[str], tags: Sequence[str]) -> TaggedExample:
    """Join the words of a sentence by blanks, and keep their spans."""
    starts = accumulate((len(word) + 1 for word in words), initial=0)
    word_spans = tuple((start, start + len(word)) for start, word in zip(starts, words))
    return TaggedExample(" ".join(words), word_spans, tuple(tags))
