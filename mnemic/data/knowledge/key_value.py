"""Turn facts and text windows into key-value pairs of a memory.

Pure functions, one per form of key in Miller et al. 2016, section 3.2. An entity is written in
brackets, as in questions, so that the vocabulary has one entry for it (``[the bat]``), distinct
from its plain words (``bat``).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from mnemic.data.knowledge.format import Fact

KeyForm = Literal["facts", "sentences", "windows", "centres", "titles"]
INVERSE_MARK = "!"  # before a relation that is read from object to subject
WINDOW_TOKEN, TITLE_TOKEN = "<window>", "<title>"  # in a key: what the value of the window is
CENTER_MARK = ">"  # before a window's center entity, to make it a distinct word


class KeyValuePair(NamedTuple):
    """The key and the value of a memory slot, as texts."""

    key: str
    value: str


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
