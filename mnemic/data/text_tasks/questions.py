"""Data sources of questions from several files, to read alone or to retrieve and read.

The files are entries of ``sources`` (see ``QuestionSource``), relative to ``folder``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from mnemic.data.contract import SPLITS, Data, Names, Split, check_minimum, check_share
from mnemic.data.text_tasks.augment_questions import Augmentation
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.dataset import SquadFiles
from mnemic.data.text_tasks.encode_windows import encode_questions
from mnemic.data.text_tasks.examples import QuestionExample, TextError
from mnemic.data.text_tasks.question_sources import (
    QuestionArticle,
    assign_splits,
    augment_articles,
    make_articles,
    parse_sources,
    read_sources,
)
from mnemic.data.text_tasks.retrieval import ArticleFiles, make_evaluation_dataset
from mnemic.recipe import ConfigError, construct
from mnemic.text import Tokenizer


@dataclass(frozen=True, kw_only=True)
class SourceFiles(SquadFiles):
    """Base of the kinds of questions from several files, with the keys of both.

    ``validation`` is the share of groups that is held out; a group is all texts with one title, and
    equal texts. ``normalize`` brings questions into one form (``mnemic.text.questions``).
    ``augment`` changes the form of shares of the training questions: lower, unmarked (no question
    mark), keywords and misspelled. Of texts without a title ``texts_per_article`` neighbors are an
    article.
    """

    files: ClassVar[str] = "question"
    alternative: ClassVar[str] = "your own JSON lines, and list them in data.sources"
    sources: Sequence[Mapping[str, Any]]
    normalize: bool = False
    augment: Mapping[str, Any] = field(default_factory=dict)
    texts_per_article: int = 8
    seed: int = 0  # of the augmentation

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("validation", self.validation)
        check_minimum("texts_per_article", self.texts_per_article, 1)
        if (self.train_file, self.validation_file, self.test_file) != ("train", "", "dev"):
            raise ConfigError("data.sources names the files: leave out train_file, validation_file and test_file")

    @cached_property
    def articles_by_split(self) -> dict[Split, list[QuestionArticle]]:
        """The articles of each split; training questions are augmented."""
        augmentation = construct(Augmentation, self.augment, name="augment")
        sources = parse_sources(self.sources)
        questions = read_sources(sources, self.path, normalize=self.normalize)
        split_of = assign_splits(questions, sources, self.validation)
        articles: dict[Split, list[QuestionArticle]] = {}
        for split in SPLITS:
            selected = [question for question in questions if split_of[question.group] == split]
            articles[split] = make_articles(selected, sources, self.texts_per_article)
        if not articles["train"]:
            raise TextError("no file of data.sources is for training")
        return articles | {"train": augment_articles(articles["train"], augmentation, self.seed)}


@dataclass(frozen=True, kw_only=True)
class QuestionFiles(SourceFiles):
    """Questions with answers in a text, from several files with weights."""

    objectives: ClassVar[Names] = ("spans",)
    reads_segments: ClassVar[bool] = True

    def read_split(self, split: Split) -> list[QuestionExample]:
        """Read the questions of one split, without those that no span answers."""
        return [
            example
            for article in self.articles_by_split[split]
            for example in article.examples
            if example.is_extractive
        ]

    def load(self) -> Data:
        """Read the training and validation questions, and train the tokenizer."""
        data = super().load()
        rows = split_answer_lists(self.articles_by_split["train"])
        rows = [row._replace(examples=[example for example in row.examples if example.is_extractive]) for row in rows]
        train = encode_questions([e for row in rows for e in row.examples], data.tokenizer, self.window_options)
        return data._replace(train=replace(train, weights=weigh_questions(rows)))

    def encode(self, examples: Sequence[QuestionExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Encode questions with their texts."""
        return encode_questions(examples, tokenizer, self.window_options)


@dataclass(frozen=True, kw_only=True)
class QuestionArticles(SourceFiles, ArticleFiles):
    """Questions from several files, to learn retrieval of texts and reading of answers together.

    As ``ArticleFiles``. Questions without an answer are read with their text, a hard negative.
    """

    validation: float = 0.1

    def read_split(self, split: Split) -> list[list[QuestionExample]]:
        """Read the articles of one split."""
        articles = self.articles_by_split[split]
        return [article.examples for article in (split_answer_lists(articles) if split == "train" else articles)]

    def load(self) -> Data:
        """Read the training and validation articles, and train the tokenizer."""
        data, articles = super().load(), split_answer_lists(self.articles_by_split["train"])
        train: Any = data.train
        is_standalone = repeat_by_question(articles, [article.source.standalone for article in articles])
        return data._replace(train=replace(train, weights=weigh_questions(articles), is_standalone=is_standalone))

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TextDataset:
        """Return each question with its text and with a wrong one, and the retrieval test."""
        articles = self.articles_by_split[split]
        train_texts = self.read_split("train")
        return make_evaluation_dataset(
            self.read_split(split),
            tokenizer,
            self.window_options,
            train_texts + (self.read_split("validation") if split == "test" else []),
            standalone=[article.source.standalone for article in articles],
        )


def split_answer_lists(articles: Sequence[QuestionArticle]) -> list[QuestionArticle]:
    """Replace each question that needs several answers by one question per answer."""
    return [
        article._replace(examples=[single for example in article.examples for single in example.split_answers()])
        for article in articles
    ]


def weigh_questions(articles: Sequence[QuestionArticle]) -> Tensor | None:
    """Return how often an epoch has each question; None if each is there once."""
    weights = [article.source.weight for article in articles]
    return None if set(weights) == {1.0} else repeat_by_question(articles, weights)


def repeat_by_question(articles: Sequence[QuestionArticle], values: Sequence[Any]) -> Tensor:
    """Repeat the value of each article for its questions."""
    return torch.tensor(values).repeat_interleave(torch.tensor([len(article.examples) for article in articles]))
