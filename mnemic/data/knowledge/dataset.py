"""Data sets of questions about a knowledge base: from files, or made by the generator."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple, Protocol

from mnemic.data.contract import Part, Sizes
from mnemic.data.knowledge.batches import Base, BaseQuestions, base_of, base_questions
from mnemic.data.knowledge.documents import (
    Document,
    Names,
    Told,
    read_documents,
    sentence_slots,
    window_slots,
)
from mnemic.data.knowledge.format import (
    Fact,
    KnowledgeError,
    Question,
    read_facts,
    read_questions,
)
from mnemic.data.knowledge.generate import make_documents, make_facts, make_questions
from mnemic.data.knowledge.key_value import BACK, CENTRE, TITLE, WINDOW, Pair, entity, fact_pairs
from mnemic.memory.parts.key_hash import KeyHash
from mnemic.text import Words
from mnemic.text.tokenizers.words import fold

Keys = Literal["facts", "sentences", "windows", "centres", "titles"]

TASKS: Mapping[int, str] = {1: "one-fact questions"}


class Material(NamedTuple):
    """What slots are made of: facts, or documents in whose text every entity is marked."""

    names: Sequence[str]  # of all entities
    facts: Sequence[Fact]
    documents: Sequence[Document]


class Known(Protocol):
    """Where facts or documents come from, and questions about them."""

    @property
    def validation(self) -> float: ...  # the share of the training questions that is held back

    @property
    def slots(self) -> int: ...  # the most that are selected for a question

    @property
    def common(self) -> int: ...  # a word in more keys than this selects none

    @property
    def keys(self) -> Keys: ...  # what a slot is found by

    @property
    def reach(self) -> int: ...  # words to either side of an entity, where keys are windows

    def material(self) -> Material: ...

    def told(self, part: Part) -> list[Question]: ...


class KnowledgeData(NamedTuple):
    """Everything training and evaluation need to know of a base and its questions."""

    words: Words
    sizes: Sizes
    train: BaseQuestions
    validation: BaseQuestions
    test: BaseQuestions
    made: tuple[int, ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class KnowledgeFolder:
    """A folder with ``base``, the facts, and two files of questions, as MetaQA's 1-hop files.

    Every tenth training question, counted evenly through the file, is held back if ``validation``
    is 0.1: such files are often sorted by relation, so the last tenth would be another task.
    Where ``keys`` are not facts, slots are made of ``documents``; entities are then their titles,
    the answers of training questions, and all that ``base`` names, if it is there.
    """

    folder: str
    base: str = "kb.txt"
    learnt: str = "dev.txt"
    tested: str = "test.txt"
    documents: str = "documents.jsonl"
    keys: Keys = "facts"
    reach: int = 3
    validation: float = 0.1
    slots: int = 200
    common: int = 1000

    @property
    def tasks(self) -> Sequence[int]:
        return list(TASKS)

    @property
    def names(self) -> Mapping[int, str]:
        return TASKS

    @property
    def root(self) -> Path:
        return Path(self.folder).expanduser()

    def facts(self) -> list[Fact]:
        return read_facts(self.root / self.base)

    def material(self) -> Material:
        if self.keys == "facts":
            return of_facts(self.facts())
        facts = self.facts() if (self.root / self.base).is_file() else []
        documents = read_documents(self.root / self.documents)
        answers = [answer for question in self.told("train") for answer in question.answers]
        return of_documents(documents, [*ends(facts), *answers])

    def told(self, part: Part) -> list[Question]:
        name = self.tested if part == "test" else self.learnt
        return part_of(read_questions(self.root / name), part, self.validation)

    def data(self) -> KnowledgeData:
        return knowledge_data(self, made=())

    def asked(self, part: Part, words: Words, tasks: Sequence[int] | None = None) -> BaseQuestions:
        return Sets(self, words).of(part)


@dataclass(frozen=True, kw_only=True)
class GeneratedKnowledge:
    """A made-up base of ``films`` films; ``seed`` alone decides what is in it.

    A tenth of all questions is the test set. Where ``keys`` are not facts, every film has a
    document that tells its facts in sentences.
    """

    films: int = 60
    seed: int = 0
    keys: Keys = "facts"
    reach: int = 3
    validation: float = 0.1
    slots: int = 200
    common: int = 50  # the base is small

    @property
    def tasks(self) -> Sequence[int]:
        return list(TASKS)

    @property
    def names(self) -> Mapping[int, str]:
        return TASKS

    def facts(self) -> list[Fact]:
        return make_facts(self.films, Random(self.seed))

    def material(self) -> Material:
        facts = self.facts()
        if self.keys == "facts":
            return of_facts(facts)
        return of_documents(make_documents(facts), ends(facts))

    def told(self, part: Part) -> list[Question]:
        every = make_questions(self.facts(), Random(self.seed + 1))
        cut = len(every) // 10
        own = every[:cut] if part == "test" else every[cut:]
        return part_of(own, part, self.validation)

    def data(self) -> KnowledgeData:
        return knowledge_data(self, made=tuple(TASKS))

    def asked(self, part: Part, words: Words, tasks: Sequence[int] | None = None) -> BaseQuestions:
        return Sets(self, words).of(part)


class Sets:
    """The sets of a source over one base, numbered and hashed once."""

    def __init__(self, source: Known, words: Words, material: Material | None = None) -> None:
        self.source, self.words = source, words
        self.material = source.material() if material is None else material
        slots: dict[Pair, str] = {}
        for pair, text in told_slots(source, self.material, words):
            slots.setdefault(pair, text)
        self.shown = list(slots.values())  # the words each slot is shown in
        self.base: Base = base_of(slots, words)
        self.select = KeyHash(self.base.keys, most=source.slots, common=source.common)

    def of(self, part: Part) -> BaseQuestions:
        return base_questions(self.source.told(part), self.base, self.words, self.select)


def knowledge_data(source: Known, *, made: tuple[int, ...]) -> KnowledgeData:
    """Read a base and all its questions, and number their words."""
    material = source.material()
    asked = [*source.told("train"), *source.told("validation")]
    words = vocabulary(material, asked, source.keys)
    sets = Sets(source, words, material)
    train, validation, test = (sets.of(part) for part in ("train", "validation", "test"))
    longest = max(part.question.shape[1] for part in (train, validation, test))
    sizes = {"vocab": len(words), "longest": max(longest, sets.base.texts.shape[1])}
    return KnowledgeData(words, sizes, train, validation, test, made)


def ends(facts: Iterable[Fact]) -> Iterator[str]:
    """Both ends of every fact."""
    return (end for fact in facts for end in (fact.subject, fact.object))


def of_facts(facts: Sequence[Fact]) -> Material:
    return Material(list(dict.fromkeys(ends(facts))), facts, [])


def of_documents(documents: Sequence[Document], names: Iterable[str]) -> Material:
    """Documents with all their entities marked; every title is an entity, too."""
    every = list(dict.fromkeys([*names, *(document.title for document in documents)]))
    found = Names(every)
    return Material(every, [], [found.mark(document) for document in documents])


def told_slots(source: Known, material: Material, words: Words) -> Iterator[Told]:
    """Every slot that facts or documents make, by the source's form of key."""
    if source.reach < 1:
        raise KnowledgeError(f"data.reach is a number of words from 1 on, not {source.reach}")
    for fact in material.facts:
        yield from (Told(pair, " | ".join(fact)) for pair in fact_pairs([fact]))
    entities = {fold(entity(name)) for name in material.names}
    for document in material.documents:
        if source.keys == "sentences":
            yield from sentence_slots(document, entities, words)
        else:
            form, reach = source.keys, source.reach
            yield from window_slots(document, entities, words, form=form, reach=reach)


def vocabulary(material: Material, asked: Sequence[Question], keys: Keys) -> Words:
    """The words of questions and documents, and as whole items every entity and every relation."""
    items = {entity(name) for name in material.names}
    for relation in {fact.relation for fact in material.facts}:
        items |= {relation, BACK + relation}
    if keys in ("centres", "titles"):
        items |= {CENTRE + entity(name) for name in material.names}
    if keys == "titles":
        items |= {WINDOW, TITLE}
    texts = (document.text for document in material.documents)
    return Words.of([*(question.text for question in asked), *texts], extra=items)


def part_of(questions: list[Question], part: Part, share: float) -> list[Question]:
    """All questions of a test file; of a training file those that are held back, or the others."""
    if not 0 <= share < 1:
        raise KnowledgeError(f"data.validation is a share from 0 to below 1, not {share}")
    if part == "test":
        return questions
    held = (int((n + 1) * share + 1e-9) > int(n * share + 1e-9) for n in range(len(questions)))
    return [own for own, back in zip(questions, held) if back == (part == "validation")]
