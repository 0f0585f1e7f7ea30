"""What a slot is found by and what it gives: facts and documents as pairs of a key and a value.

Pure functions, one for each form of key in Miller et al. 2016, section 3.2. An entity is spelled in
brackets, as questions spell it, so that the vocabulary has it whole (``[the bat]``) and apart from
the plain words it is made of (``bat``).
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from mnemic.data.knowledge.format import Fact

BACK = "!"  # before a relation that is read from object to subject
WINDOW, TITLE = "<window>", "<title>"  # what a window's value is, told by a word of its key


class Pair(NamedTuple):
    """The two texts of a slot."""

    key: str
    value: str


def entity(name: str) -> str:
    """An entity as keys, values and questions spell it."""
    return f"[{name}]"


def fact_pairs(facts: Iterable[Fact]) -> Iterator[Pair]:
    """Every fact in both directions: subject + relation → object, object + !relation → subject."""
    for fact in facts:
        yield Pair(f"{entity(fact.subject)} {fact.relation}", entity(fact.object))
        yield Pair(f"{entity(fact.object)} {BACK}{fact.relation}", entity(fact.subject))


def sentence_pairs(sentences: Iterable[str]) -> Iterator[Pair]:
    """Key and value are the same sentence: a plain memory network as a special case."""
    for sentence in sentences:
        yield Pair(sentence, sentence)


def window_pairs(
    words: Sequence[str], entities: Container[str], *, reach: int = 3
) -> Iterator[Pair]:
    """Key: ``reach`` words to either side of an entity and itself; value: that entity.

    ``words`` are those of a document, entities whole and spelled as in ``entities``.
    """
    for place, word in enumerate(words):
        if word in entities:
            around = words[max(place - reach, 0) : place + reach + 1]
            yield Pair(" ".join(around), word)


def title_pairs(
    title: str, words: Sequence[str], entities: Container[str], *, reach: int = 3
) -> Iterator[Pair]:
    """Each window twice: it gives its centre, and the document's title, which is often the answer.

    A word of the key tells which of the two the value is (``Window + Title`` of the paper).
    """
    for window, centre in window_pairs(words, entities, reach=reach):
        yield Pair(f"{WINDOW} {window}", centre)
        yield Pair(f"{TITLE} {window}", title)
