"""Datasets of questions about a knowledge base: from files, or generated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from mnemic.data.contract import SPLITS, DataSource, Layout, LoadedData, Names, Split, check_count, check_share
from mnemic.data.knowledge.batches import KnowledgeBase, KnowledgeDataset, encode_base, encode_questions
from mnemic.data.knowledge.format import (
    Fact,
    KnowledgeDocument,
    KnowledgeQuestion,
    read_documents,
    read_facts,
    read_questions,
)
from mnemic.data.knowledge.generate import make_documents, make_facts, make_questions
from mnemic.data.knowledge.slots import EntityMarker, KeyForm, KeyValuePair, KnowledgeContent, list_entries, make_slots
from mnemic.memory.parts.key_hash import KeyHash
from mnemic.text import WordTokenizer


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

    def load_facts(self) -> list[Fact]:
        """Read or generate the facts of the knowledge base."""
        raise NotImplementedError

    def load_documents(self) -> list[KnowledgeDocument]:
        """Read or generate the documents of the knowledge base."""
        raise NotImplementedError

    def read_content(self) -> KnowledgeContent:
        """Load the facts or documents of the knowledge base, as ``keys`` says.

        The entities of documents are their titles, those of the facts, and the answers of training
        questions.
        """
        facts = self.load_facts()
        names = [entity for fact in facts for entity in (fact.subject, fact.object)]
        if self.keys == "facts":
            return KnowledgeContent(list(dict.fromkeys(names)), facts, [])
        documents = self.load_documents()
        names += [answer for question in self.read_split("train") for answer in question.answers]
        names = list(dict.fromkeys([*names, *(document.title for document in documents)]))
        marker = EntityMarker(names)
        return KnowledgeContent(names, [], [marker.mark_entities(document) for document in documents])

    def load(self) -> LoadedData[KnowledgeDataset]:
        """Load the base and all splits, and build the tokenizer from the training data."""
        content = self.read_content()
        texts = [question.text for split in SPLITS[:2] for question in self.read_split(split)]
        texts += [document.text for document in content.documents]
        tokenizer = WordTokenizer.from_texts(texts, extra=list_entries(content.names, content.facts, self.keys))
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

    def load_facts(self) -> list[Fact]:
        """Read the facts of the knowledge base; next to documents the file may be missing."""
        path = self.path / self.base
        return read_facts(path) if self.keys == "facts" or path.is_file() else []

    def load_documents(self) -> list[KnowledgeDocument]:
        """Read the documents of the knowledge base."""
        return read_documents(self.path / self.documents)

    def read_split(self, split: Split) -> list[KnowledgeQuestion]:
        """Read the questions of a split."""
        name = self.test_file if split == "test" else self.train_file
        return select_split(read_questions(self.path / name), split, self.validation)


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
        check_count("films", self.films)
        return make_facts(self.films, Random(self.seed))

    def load_documents(self) -> list[KnowledgeDocument]:
        """Generate the documents of the knowledge base."""
        return make_documents(self.load_facts())

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
        for pair, text in make_slots(self.content, tokenizer, key_form=source.keys, radius=source.reach):
            slots.setdefault(pair, text)
        self.slot_texts = list(slots.values())  # displayed as evidence
        self.base: KnowledgeBase = encode_base(slots, tokenizer)
        self.select = KeyHash(self.base.keys, max_slots=source.slots, max_frequency=source.common)

    def encode_split(self, split: Split) -> KnowledgeDataset:
        """Encode the questions of a split."""
        return encode_questions(self.source.read_split(split), self.base, self.tokenizer, self.select)


def select_split(questions: list[KnowledgeQuestion], split: Split, validation_share: float) -> list[KnowledgeQuestion]:
    """Select a split's questions from those of its file.

    A test file is one split. Of a training file, an evenly spaced share is the validation split.
    """
    check_share("validation", validation_share)
    if split == "test":
        return questions
    held_out = (
        int((index + 1) * validation_share + 1e-9) > int(index * validation_share + 1e-9)
        for index in range(len(questions))
    )
    return [question for question, is_held_out in zip(questions, held_out) if is_held_out == (split == "validation")]
