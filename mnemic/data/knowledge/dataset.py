"""Datasets of questions about a knowledge base: from files, or generated."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar, Literal, NamedTuple

from mnemic.data.contract import SPLITS, DataSource, Layout, LoadedData, Names, Split
from mnemic.data.knowledge.batches import KnowledgeBase, KnowledgeDataset, encode_base, encode_questions
from mnemic.data.knowledge.documents import (
    EntityMarker,
    KnowledgeDocument,
    KnowledgeSlot,
    make_sentence_slots,
    make_window_slots,
    read_documents,
)
from mnemic.data.knowledge.format import Fact, KnowledgeError, KnowledgeQuestion, read_facts, read_questions
from mnemic.data.knowledge.generate import make_documents, make_facts, make_questions
from mnemic.data.knowledge.key_value import (
    CENTER_MARK,
    INVERSE_MARK,
    TITLE_TOKEN,
    WINDOW_TOKEN,
    KeyValuePair,
    bracket_entity,
    make_fact_pairs,
)
from mnemic.memory.parts.key_hash import KeyHash
from mnemic.text import WordTokenizer
from mnemic.text.tokenizers.words import normalize_word

KeyForm = Literal["facts", "sentences", "windows", "centres", "titles"]


class KnowledgeContent(NamedTuple):
    """The content of a knowledge base: facts, or documents with marked entities."""

    names: Sequence[str]  # of all entities
    facts: Sequence[Fact]
    documents: Sequence[KnowledgeDocument]


@dataclass(frozen=True, kw_only=True)
class KnowledgeSource(DataSource):
    """Base of both kinds of knowledge bases, with the keys they share."""

    layout: ClassVar[Layout] = "stories"
    has_knowledge_base: ClassVar[bool] = True
    objectives: ClassVar[Names] = ("answers",)
    suggestions: ClassVar[Names] = ("evaluate {run}", 'story ask --model {run} "who directed [NAME OF A FILM]"')
    generated_tasks: ClassVar[tuple[int, ...]] = ()
    names: ClassVar[Mapping[int, str]] = {1: "one-fact questions"}
    tasks: ClassVar[Sequence[int]] = [1]
    keys: KeyForm = "facts"
    reach: int = 3  # words to either side of an entity, if keys are windows
    validation: float = 0.1  # share of the training questions that is held out
    slots: int = 200  # maximum number of slots selected for a question
    common: int = 1000  # a word in more keys than this selects no slots

    def read_content(self) -> KnowledgeContent:
        """Read or generate the facts or documents of the knowledge base, as ``keys`` says."""
        raise NotImplementedError

    def read_split(self, split: Split) -> list[KnowledgeQuestion]:
        """Read or generate the questions of a split."""
        raise NotImplementedError

    def load(self) -> LoadedData[KnowledgeDataset]:
        """Load the base and all splits, and build the tokenizer from the training data."""
        content = self.read_content()
        questions = [*self.read_split("train"), *self.read_split("validation")]
        tokenizer = build_tokenizer(content, questions, self.keys)
        encoder = KnowledgeEncoder(self, tokenizer, content)
        train, validation, test = (encoder.encode_split(split) for split in SPLITS)
        max_words = max(dataset.question.shape[1] for dataset in (train, validation, test))
        sizes = {"vocab": len(tokenizer), "max_length": max(max_words, encoder.base.texts.shape[1])}
        return LoadedData(tokenizer, sizes, train, validation, test, self.generated_tasks)

    def dataset(self, split: Split, tokenizer: WordTokenizer, tasks: Sequence[int] | None = None) -> KnowledgeDataset:
        """Encode the questions of a split with a tokenizer."""
        return KnowledgeEncoder(self, tokenizer).encode_split(split)


@dataclass(frozen=True, kw_only=True)
class KnowledgeFolder(KnowledgeSource):
    """A folder with ``base``, the facts, and two question files, as MetaQA's 1-hop files.

    If ``validation`` is 0.1, every tenth training question of the file is held out: such files are
    often sorted by relation, so the last tenth would be another task. If ``keys`` are not facts,
    slots are made from ``documents``; the entities are then their titles, the answers of training
    questions, and the entities of ``base``, if that file exists.
    """

    files: ClassVar[str] = "knowledge"
    alternative: ClassVar[str] = "a generated base with --set data.kind=generated-knowledge"
    folder: str
    base: str = "kb.txt"
    train_file: str = "dev.txt"
    test_file: str = "test.txt"
    documents: str = "documents.jsonl"

    @property
    def root(self) -> Path:
        """Return the folder's path with ``~`` expanded."""
        return Path(self.folder).expanduser()

    def load_facts(self) -> list[Fact]:
        """Read the facts of the knowledge base."""
        return read_facts(self.root / self.base)

    def read_content(self) -> KnowledgeContent:
        """Read the facts or documents of the knowledge base, as ``keys`` says."""
        if self.keys == "facts":
            return make_fact_content(self.load_facts())
        facts = self.load_facts() if (self.root / self.base).is_file() else []
        documents = read_documents(self.root / self.documents)
        answers = [answer for question in self.read_split("train") for answer in question.answers]
        return make_document_content(documents, [*list_entities(facts), *answers])

    def read_split(self, split: Split) -> list[KnowledgeQuestion]:
        """Read the questions of a split."""
        name = self.test_file if split == "test" else self.train_file
        return select_split(read_questions(self.root / name), split, self.validation)


@dataclass(frozen=True, kw_only=True)
class GeneratedKnowledge(KnowledgeSource):
    """A synthetic knowledge base of ``films`` films that depends only on ``seed``.

    A tenth of all questions is the test split. If ``keys`` are not facts, every film has a document
    that states its facts in sentences.
    """

    file_kind: ClassVar[str] = "knowledge"
    shared_keys: ClassVar[Names] = ("validation", "slots", "common", "keys", "reach")
    generated_tasks: ClassVar[tuple[int, ...]] = (1,)
    films: int = 60
    seed: int = 0
    common: int = 50  # the base is small

    def load_facts(self) -> list[Fact]:
        """Generate the facts of the knowledge base."""
        return make_facts(self.films, Random(self.seed))

    def read_content(self) -> KnowledgeContent:
        """Generate the facts or documents of the knowledge base, as ``keys`` says."""
        facts = self.load_facts()
        if self.keys == "facts":
            return make_fact_content(facts)
        return make_document_content(make_documents(facts), list_entities(facts))

    def read_split(self, split: Split) -> list[KnowledgeQuestion]:
        """Generate the questions of a split."""
        questions = make_questions(self.load_facts(), Random(self.seed + 1))
        num_test = len(questions) // 10
        file_questions = questions[:num_test] if split == "test" else questions[num_test:]
        return select_split(file_questions, split, self.validation)


class KnowledgeEncoder:
    """Encodes the questions of a source; the knowledge base is encoded and hashed once."""

    def __init__(
        self, source: KnowledgeSource, tokenizer: WordTokenizer, content: KnowledgeContent | None = None
    ) -> None:
        self.source, self.tokenizer = source, tokenizer
        self.content = source.read_content() if content is None else content
        slots: dict[KeyValuePair, str] = {}
        for pair, text in make_slots(source, self.content, tokenizer):
            slots.setdefault(pair, text)
        self.slot_texts = list(slots.values())  # displayed as evidence
        self.base: KnowledgeBase = encode_base(slots, tokenizer)
        self.select = KeyHash(self.base.keys, max_slots=source.slots, max_frequency=source.common)

    def encode_split(self, split: Split) -> KnowledgeDataset:
        """Encode the questions of a split."""
        return encode_questions(self.source.read_split(split), self.base, self.tokenizer, self.select)


def list_entities(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield the subject and the object of every fact."""
    return (entity for fact in facts for entity in (fact.subject, fact.object))


def make_fact_content(facts: Sequence[Fact]) -> KnowledgeContent:
    """Collect facts with the names of all their entities."""
    return KnowledgeContent(list(dict.fromkeys(list_entities(facts))), facts, [])


def make_document_content(documents: Sequence[KnowledgeDocument], names: Iterable[str]) -> KnowledgeContent:
    """Mark all entities in documents; every title is an entity, too."""
    entities = list(dict.fromkeys([*names, *(document.title for document in documents)]))
    marker = EntityMarker(entities)
    return KnowledgeContent(entities, [], [marker.mark_entities(document) for document in documents])


def make_slots(source: KnowledgeSource, content: KnowledgeContent, tokenizer: WordTokenizer) -> Iterator[KnowledgeSlot]:
    """Yield the slots of all facts or documents, with the source's form of key."""
    if source.reach < 1:
        raise KnowledgeError(f"data.reach is a number of words from 1 on, not {source.reach}")
    for fact in content.facts:
        yield from (KnowledgeSlot(pair, " | ".join(fact)) for pair in make_fact_pairs([fact]))
    entities = {normalize_word(bracket_entity(name)) for name in content.names}
    for document in content.documents:
        if source.keys == "sentences":
            yield from make_sentence_slots(document, entities, tokenizer)
        else:
            key_form, radius = source.keys, source.reach
            yield from make_window_slots(document, entities, tokenizer, key_form=key_form, radius=radius)


def build_tokenizer(
    content: KnowledgeContent, questions: Sequence[KnowledgeQuestion], key_form: KeyForm
) -> WordTokenizer:
    """Build a tokenizer from questions and documents, with one entry per entity and relation."""
    entries = {bracket_entity(name) for name in content.names}
    for relation in {fact.relation for fact in content.facts}:
        entries |= {relation, INVERSE_MARK + relation}
    if key_form in ("centres", "titles"):
        entries |= {CENTER_MARK + bracket_entity(name) for name in content.names}
    if key_form == "titles":
        entries |= {WINDOW_TOKEN, TITLE_TOKEN}
    texts = (document.text for document in content.documents)
    return WordTokenizer.from_texts([*(question.text for question in questions), *texts], extra=entries)


def select_split(questions: list[KnowledgeQuestion], split: Split, validation_share: float) -> list[KnowledgeQuestion]:
    """Select a split's questions from those of its file.

    A test file is one split. Of a training file, an evenly spaced share is the validation split.
    """
    if not 0 <= validation_share < 1:
        raise KnowledgeError(f"data.validation is a share from 0 to below 1, not {validation_share}")
    if split == "test":
        return questions
    held_out = (
        int((index + 1) * validation_share + 1e-9) > int(index * validation_share + 1e-9)
        for index in range(len(questions))
    )
    return [question for question, is_held_out in zip(questions, held_out) if is_held_out == (split == "validation")]
