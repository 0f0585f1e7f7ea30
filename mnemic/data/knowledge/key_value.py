"""What a slot is found by and what it gives: facts and documents as pairs of a key and a value.

Pure functions, one for each form of key in Miller et al. 2016, section 3.2. An entity is spelled in
brackets, as questions spell it, so that the vocabulary has it whole (``[the bat]``) and apart from
the plain words it is made of (``bat``).
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from mnemic.data.knowledge.format import Fact

BACK = "!"  # before a relation that is read from object to subject
WINDOW, TITLE = "<window>", "<title>"  # what a window's value is, told by a word of its key
CENTRE = ">"  # before the entity in a window's centre, which is then another word than elsewhere


class Pair(NamedTuple):
    """The two texts of a slot."""

    key: str
    value: str


class Window(NamedTuple):
    """The words around an entity, and that entity."""

    words: Sequence[str]
    centre: int  # which of them is the entity
    start: int  # which word of the document is the first


def entity(name: str) -> str:
    """An entity as keys, values and questions spell it."""
    return f"[{name}]"


def fact_pairs(facts: Iterable[Fact]) -> Iterator[Pair]:
    """Every fact in both directions: subject + relation → object, object + !relation → subject."""
    for fact in facts:
        yield Pair(f"{entity(fact.subject)} {fact.relation}", entity(fact.object))
        yield Pair(f"{entity(fact.object)} {BACK}{fact.relation}", entity(fact.subject))


def sentence_pair(sentence: str) -> Pair:
    """Key and value are the same sentence: a plain memory network as a special case."""
    return Pair(sentence, sentence)


def windows(words: Sequence[str], entities: Container[str], *, reach: int = 3) -> Iterator[Window]:
    """``reach`` words to either side of every entity, and itself.

    ``words`` are those of a document, entities whole and spelled as in ``entities``.
    """
    for place, word in enumerate(words):
        if word in entities:
            start = max(place - reach, 0)
            yield Window(words[start : place + reach + 1], place - start, start)


def window_pairs(window: Window, title: str) -> list[Pair]:
    """Key: the window; value: the entity in its centre."""
    return [Pair(" ".join(window.words), window.words[window.centre])]


def centre_pairs(window: Window, title: str) -> list[Pair]:
    """As ``window_pairs``, but the key tells the centre from all other words by a word of its own.

    Else two entities that stand side by side have the same key (``Window + Center Encoding``).
    """
    before, after = window.words[: window.centre], window.words[window.centre + 1 :]
    value = window.words[window.centre]
    return [Pair(" ".join([*before, CENTRE + value, *after]), value)]


def title_pairs(window: Window, title: str) -> list[Pair]:
    """Each window twice: it gives its centre, and the document's title, which is often the answer.

    A word of the key tells which of the two the value is (``Window + Title`` of the paper). Only
    where the centre is the answer is it marked: the title is found by it.
    """
    (own,), (plain,) = centre_pairs(window, title), window_pairs(window, title)
    return [
        Pair(f"{WINDOW} {own.key}", own.value),
        Pair(f"{TITLE} {plain.key}", title),
    ]


WINDOWS: dict[str, Callable[[Window, str], list[Pair]]] = {
    "windows": window_pairs,
    "centres": centre_pairs,
    "titles": title_pairs,
}
