"""Turn facts and documents into memory slots: pairs of a key and a value.

One form of key each of Miller et al. 2016, section 3.2. An entity is written in brackets, as in
questions, so that the vocabulary has one entry for it (``[the bat]``), distinct from its plain
words (``bat``). The text of a document is plain: entities are found in it by their exact name (case
matters, the name of the most words first).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from mnemic.data.knowledge.format import Fact, KnowledgeDocument, KnowledgeError
from mnemic.text import WordTokenizer
from mnemic.text.rules import find_sentence_ends
from mnemic.text.tokenizers.words import normalize_word

KeyForm = Literal["facts", "sentences", "windows", "centres", "titles"]
INVERSE_MARK = "!"  # before a relation that is read from object to subject
WINDOW_TOKEN, TITLE_TOKEN = "<window>", "<title>"  # in a key: what the value of the window is
CENTER_MARK = ">"  # before a window's center entity, to make it a distinct word


class KeyValuePair(NamedTuple):
    """The key and the value of a memory slot, as texts."""

    key: str
    value: str


class KnowledgeContent(NamedTuple):
    """The content of a knowledge base: facts, or documents with marked entities."""

    names: Sequence[str]  # of all entities
    facts: Sequence[Fact]
    documents: Sequence[KnowledgeDocument]


class KnowledgeSlot(NamedTuple):
    """A key-value pair of the memory, and the text that evidence displays for it."""

    pair: KeyValuePair
    text: str


class EntityWindow(NamedTuple):
    """The words around an entity, with the entity."""

    words: Sequence[str]
    center: int  # index of the entity in words
    start: int  # index of the first word in the document


def bracket_entity(name: str) -> str:
    """Put an entity's name in brackets, as keys, values and questions have it."""
    return f"[{name}]"


def list_entries(names: Iterable[str], facts: Iterable[Fact], key_form: KeyForm) -> set[str]:
    """List the vocabulary entries that keys and values need: entities, relations and marks."""
    entries = {bracket_entity(name) for name in names}
    if key_form in ("centres", "titles"):
        entries |= {CENTER_MARK + entity for entity in entries}
    if key_form == "titles":
        entries |= {WINDOW_TOKEN, TITLE_TOKEN}
    relations = {fact.relation for fact in facts}
    return entries | relations | {INVERSE_MARK + relation for relation in relations}


def make_fact_pairs(facts: Iterable[Fact]) -> Iterator[KeyValuePair]:
    """Yield each fact in both directions: by its subject and by its object.

    The keys are subject + relation (value: object) and object + !relation (value: subject).
    """
    for fact in facts:
        yield KeyValuePair(f"{bracket_entity(fact.subject)} {fact.relation}", bracket_entity(fact.object))
        yield KeyValuePair(f"{bracket_entity(fact.object)} {INVERSE_MARK}{fact.relation}", bracket_entity(fact.subject))


def make_sentence_pair(sentence: str) -> KeyValuePair:
    """Use a sentence as key and value: the special case of a plain memory network."""
    return KeyValuePair(sentence, sentence)


def extract_windows(tokens: Sequence[str], entities: Container[str], *, radius: int = 3) -> Iterator[EntityWindow]:
    """Yield a window of ``radius`` words to either side of every entity.

    ``tokens`` are the words of a document; an entity is one token, spelled as in ``entities``.
    """
    for position, word in enumerate(tokens):
        if word in entities:
            start = max(position - radius, 0)
            yield EntityWindow(tokens[start : position + radius + 1], position - start, start)


def make_window_pairs(window: EntityWindow, title: str) -> list[KeyValuePair]:
    """Make a pair of the window as key and its center entity as value."""
    return [KeyValuePair(" ".join(window.words), window.words[window.center])]


def make_center_pairs(window: EntityWindow, title: str) -> list[KeyValuePair]:
    """Make a pair like ``make_window_pairs``, with a marked center in the key.

    Without the mark two adjacent entities have the same key (``Window + Center Encoding``).
    """
    before, after = window.words[: window.center], window.words[window.center + 1 :]
    value = window.words[window.center]
    return [KeyValuePair(" ".join([*before, CENTER_MARK + value, *after]), value)]


def make_title_pairs(window: EntityWindow, title: str) -> list[KeyValuePair]:
    """Make two pairs of a window: its value is the center, or the title.

    The document's title is often the answer. A word of the key says which of the two the value is
    (``Window + Title`` of the paper). The center is marked only where it is the value: otherwise it
    serves to find the title.
    """
    (center,), (plain,) = make_center_pairs(window, title), make_window_pairs(window, title)
    return [
        KeyValuePair(f"{WINDOW_TOKEN} {center.key}", center.value),
        KeyValuePair(f"{TITLE_TOKEN} {plain.key}", title),
    ]


WINDOW_PAIR_MAKERS: dict[str, Callable[[EntityWindow, str], list[KeyValuePair]]] = {
    "windows": make_window_pairs,
    "centres": make_center_pairs,
    "titles": make_title_pairs,
}


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
