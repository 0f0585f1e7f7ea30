"""Turn documents into memory slots: one per sentence, or per window around an entity.

The text of a document is plain. Entities are found in it by their exact name (case matters, the
name of the most words first) and put in brackets, as in questions.
"""

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mnemic.data.knowledge.format import Fact, KnowledgeError, parse_lines
from mnemic.data.knowledge.key_value import (
    WINDOW_PAIR_MAKERS,
    KeyForm,
    KeyValuePair,
    bracket_entity,
    extract_windows,
    make_fact_pairs,
    make_sentence_pair,
)
from mnemic.text import WordTokenizer
from mnemic.text.rules import find_sentence_ends
from mnemic.text.tokenizers.words import normalize_word


class KnowledgeDocument(NamedTuple):
    """A text with its title, the entity it is about."""

    title: str
    text: str


class KnowledgeContent(NamedTuple):
    """The content of a knowledge base: facts, or documents with marked entities."""

    names: Sequence[str]  # of all entities
    facts: Sequence[Fact]
    documents: Sequence[KnowledgeDocument]


class KnowledgeSlot(NamedTuple):
    """A key-value pair of the memory, and the text that evidence displays for it."""

    pair: KeyValuePair
    text: str


def read_documents(path: Path) -> list[KnowledgeDocument]:
    """Read the documents of a JSON-lines file, in order."""
    return list(parse_lines(path, parse_document))


def parse_document(line: str) -> KnowledgeDocument:
    """Parse a JSON line with a title and a text."""
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    fields = [row.get(name) for name in KnowledgeDocument._fields] if isinstance(row, dict) else []
    if not fields or not all(isinstance(field, str) and field.strip() for field in fields):
        raise KnowledgeError(f'expected {{"title": "…", "text": "…"}}, not {line[:60]!r}')
    title, text = (field.strip() for field in fields if isinstance(field, str))
    return KnowledgeDocument(title, text)


class EntityMarker:
    """Puts brackets around the entities of plain texts."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self.tokenizer = WordTokenizer.from_texts([], extra=self.names)

    def mark_entities(self, document: KnowledgeDocument) -> KnowledgeDocument:
        """Return the document with brackets around every entity of its text."""
        text, pieces, done = document.text, [], 0
        for start, end in self.tokenizer.encode(text).offsets:
            if text[start:end] in self.names:
                pieces += [text[done:start], bracket_entity(text[start:end])]
                done = end
        return KnowledgeDocument(document.title, "".join([*pieces, text[done:]]))


def make_slots(
    content: KnowledgeContent, tokenizer: WordTokenizer, *, key_form: KeyForm, radius: int
) -> Iterator[KnowledgeSlot]:
    """Yield the slots of all facts or documents, with this form of key."""
    if radius < 1:
        raise KnowledgeError(f"data.reach is a number of words from 1 on, not {radius}")
    for fact in content.facts:
        yield from (KnowledgeSlot(pair, " | ".join(fact)) for pair in make_fact_pairs([fact]))
    entities = {normalize_word(bracket_entity(name)) for name in content.names}
    for document in content.documents:
        if key_form == "sentences":
            yield from make_sentence_slots(document, entities, tokenizer)
        else:
            yield from make_window_slots(document, entities, tokenizer, key_form=key_form, radius=radius)


def make_sentence_slots(
    document: KnowledgeDocument, entities: Container[str], tokenizer: WordTokenizer
) -> Iterator[KnowledgeSlot]:
    """Yield one slot per sentence of a marked document that names an entity."""
    start = 0
    for end in [*find_sentence_ends(document.text), len(document.text)]:
        sentence = document.text[start:end].strip()
        start = end
        if any(word in entities for word in tokenizer.encode(sentence).tokens):
            yield KnowledgeSlot(make_sentence_pair(sentence), f"{document.title}: {sentence}")


def make_window_slots(
    document: KnowledgeDocument, entities: Container[str], tokenizer: WordTokenizer, *, key_form: str, radius: int
) -> Iterator[KnowledgeSlot]:
    """Yield the slots of all entity windows of a marked document.

    ``key_form`` is a key of ``WINDOW_PAIR_MAKERS``. A slot is displayed as the text of its window,
    followed by its value.
    """
    title, text = document
    encoding = tokenizer.encode(text)
    for window in extract_windows(encoding.tokens, entities, radius=radius):
        first, last = window.start, window.start + len(window.words) - 1
        quote = text[encoding.offsets[first][0] : encoding.offsets[last][1]]
        start, end = encoding.offsets[first + window.center]
        for pair in WINDOW_PAIR_MAKERS[key_form](window, bracket_entity(title)):
            is_center = pair.value == window.words[window.center]
            value_text = text[start + 1 : end - 1] if is_center else title  # without brackets
            yield KnowledgeSlot(pair, f"{title}: {quote} → {value_text}")
