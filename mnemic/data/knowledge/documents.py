"""Documents as a memory: every sentence of theirs, or every window around an entity, is a slot.

Their text is plain. An entity is found in it by its name, spelled and capitalised as it is known,
the one of most words first, and put in brackets, as questions have it.
"""

import json
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mnemic.data.knowledge.format import KnowledgeError, each_line
from mnemic.data.knowledge.key_value import WINDOWS, Pair, entity, sentence_pair, windows
from mnemic.text import Words
from mnemic.text.rules import ends_of


class Document(NamedTuple):
    """A text and what it is about."""

    title: str
    text: str


class Told(NamedTuple):
    """A slot, and the words it is shown in."""

    pair: Pair
    text: str


def read_documents(path: Path) -> list[Document]:
    """All documents of a file of JSON lines, in order."""
    return list(each_line(path, document_of))


def document_of(line: str) -> Document:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    parts = [row.get(name) for name in Document._fields] if isinstance(row, dict) else []
    if not parts or not all(isinstance(part, str) and part.strip() for part in parts):
        raise KnowledgeError(f'expected {{"title": "…", "text": "…"}}, not {line[:60]!r}')
    title, text = (part.strip() for part in parts if isinstance(part, str))
    return Document(title, text)


class Names:
    """Finds entities in plain text."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self.words = Words.of([], extra=self.names)

    def mark(self, document: Document) -> Document:
        """The document with brackets around every entity of its text."""
        text, parts, reached = document.text, [], 0
        for start, end in self.words.encode(text).offsets:
            if text[start:end] in self.names:
                parts += [text[reached:start], entity(text[start:end])]
                reached = end
        return Document(document.title, "".join([*parts, text[reached:]]))


def sentence_slots(document: Document, entities: Container[str], words: Words) -> Iterator[Told]:
    """Every sentence of a marked document that names an entity."""
    start = 0
    for end in [*ends_of(document.text), len(document.text)]:
        sentence = document.text[start:end].strip()
        start = end
        if any(word in entities for word in words.encode(sentence).tokens):
            yield Told(sentence_pair(sentence), f"{document.title}: {sentence}")


def window_slots(
    document: Document, entities: Container[str], words: Words, *, form: str, reach: int
) -> Iterator[Told]:
    """Every window of a marked document, as pairs of one ``form`` of ``WINDOWS``.

    It is shown as it stands there, with what it gives behind it.
    """
    title, text = document
    read = words.encode(text)
    for window in windows(read.tokens, entities, reach=reach):
        first, last = window.start, window.start + len(window.words) - 1
        quote = text[read.offsets[first][0] : read.offsets[last][1]]
        start, end = read.offsets[first + window.centre]
        for pair in WINDOWS[form](window, entity(title)):
            own = pair.value == window.words[window.centre]
            given = text[start + 1 : end - 1] if own else title  # without brackets
            yield Told(pair, f"{title}: {quote} → {given}")
