"""Data sets of questions about a knowledge base: from files, or made by the generator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from mnemic.data.contract import Part, Sizes
from mnemic.data.knowledge.format import (
    Fact,
    KnowledgeError,
    Question,
    read_facts,
    read_questions,
)
from mnemic.data.knowledge.generate import make_facts, make_questions
from mnemic.data.knowledge.keys import BACK, entity, fact_pairs
from mnemic.data.knowledge.tensors import Base, BaseQuestions, base_of, base_questions
from mnemic.memory.select import KeyHash
from mnemic.text import Words

TASKS: Mapping[int, str] = {1: "one-fact questions"}


class Known(Protocol):
    """Where facts and questions come from."""

    @property
    def validation(self) -> float: ...  # the share of the training questions that is held back

    @property
    def slots(self) -> int: ...  # the most that are selected for a question

    @property
    def common(self) -> int: ...  # a word in more keys than this selects none

    def facts(self) -> list[Fact]: ...

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
    """

    folder: str
    base: str = "kb.txt"
    learnt: str = "dev.txt"
    tested: str = "test.txt"
    validation: float = 0.1
    slots: int = 200
    common: int = 1000

    @property
    def tasks(self) -> Sequence[int]:
        return list(TASKS)

    @property
    def names(self) -> Mapping[int, str]:
        return TASKS

    def facts(self) -> list[Fact]:
        return read_facts(Path(self.folder).expanduser() / self.base)

    def told(self, part: Part) -> list[Question]:
        name = self.tested if part == "test" else self.learnt
        return part_of(read_questions(Path(self.folder).expanduser() / name), part, self.validation)

    def data(self) -> KnowledgeData:
        return knowledge_data(self, made=())

    def asked(self, part: Part, words: Words, tasks: Sequence[int] | None = None) -> BaseQuestions:
        return Sets(self, words).of(part)


@dataclass(frozen=True, kw_only=True)
class GeneratedKnowledge:
    """A made-up base of ``films`` films; ``seed`` alone decides what is in it.

    A tenth of all questions is the test set.
    """

    films: int = 60
    seed: int = 0
    validation: float = 0.1
    slots: int = 200
    common: int = 1000

    @property
    def tasks(self) -> Sequence[int]:
        return list(TASKS)

    @property
    def names(self) -> Mapping[int, str]:
        return TASKS

    def facts(self) -> list[Fact]:
        return make_facts(self.films, Random(self.seed))

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

    def __init__(self, source: Known, words: Words, facts: Sequence[Fact] | None = None) -> None:
        self.source, self.words = source, words
        pairs = fact_pairs(source.facts() if facts is None else facts)
        self.base: Base = base_of(pairs, words)
        self.select = KeyHash(self.base.keys, most=source.slots, common=source.common)

    def of(self, part: Part) -> BaseQuestions:
        return base_questions(self.source.told(part), self.base, self.words, self.select)


def knowledge_data(source: Known, *, made: tuple[int, ...]) -> KnowledgeData:
    """Read a base and all its questions, and number their words."""
    facts = source.facts()
    words = vocabulary(facts, [*source.told("train"), *source.told("validation")])
    sets = Sets(source, words, facts)
    train, validation, test = (sets.of(part) for part in ("train", "validation", "test"))
    longest = max(part.question.shape[1] for part in (train, validation, test))
    sizes = {"vocab": len(words), "longest": max(longest, sets.base.texts.shape[1])}
    return KnowledgeData(words, sizes, train, validation, test, made)


def vocabulary(facts: Sequence[Fact], asked: Sequence[Question]) -> Words:
    """The words of the questions, and as whole items every entity and every relation."""
    items = {entity(end) for fact in facts for end in (fact.subject, fact.object)}
    for relation in {fact.relation for fact in facts}:
        items |= {relation, BACK + relation}
    return Words.of([question.text for question in asked], extra=items)


def part_of(questions: list[Question], part: Part, share: float) -> list[Question]:
    """All questions of a test file; of a training file those that are held back, or the others."""
    if not 0 <= share < 1:
        raise KnowledgeError(f"data.validation is a share from 0 to below 1, not {share}")
    if part == "test":
        return questions
    held = (int((n + 1) * share + 1e-9) > int(n * share + 1e-9) for n in range(len(questions)))
    return [own for own, back in zip(questions, held) if back == (part == "validation")]
