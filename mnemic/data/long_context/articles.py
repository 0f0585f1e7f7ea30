"""SQuAD articles as long texts: read the whole article first, then answer questions.

There is no background text: the article itself is the long text, and the reader does not know in
advance which sentences contain answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mnemic.data.contract import SPLITS, Split
from mnemic.data.long_context.background import encode_novels
from mnemic.data.long_context.batches import LongDataset, LongExample
from mnemic.data.long_context.dataset import SMALL_WORDPIECE, LongData
from mnemic.data.long_context.hide import check_segment_size
from mnemic.data.text_tasks.examples import QuestionExample as Question
from mnemic.data.text_tasks.files import find_file
from mnemic.data.text_tasks.retrieval import group_by_text
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS, split_off_validation
from mnemic.data.text_tasks.squad import read_articles
from mnemic.recipe import ConfigError, build
from mnemic.text import SubwordTokenizer, Tokenizer
from mnemic.text.rules import find_sentence_ends

NO_TOKENS = np.zeros(0, dtype=np.int32)


class ArticleQuestion(NamedTuple):
    """A question about an article, with the sentences that contain its answer."""

    question: Question  # with its paragraph and its answers
    facts: frozenset[int]  # indices of the article's sentences that contain the answer


class Article(NamedTuple):
    """The sentences of an article and all questions about it."""

    sentences: tuple[str, ...]
    paragraphs: tuple[int, ...]  # the paragraph number of each sentence
    questions: tuple[ArticleQuestion, ...]


@dataclass(frozen=True, kw_only=True)
class LongArticles:
    """Articles in SQuAD's format, read in full before their questions are asked.

    In training an example is a span of the article around the answer, of 1 to ``segments`` segments
    of ``length`` tokens; otherwise it has as many segments as the article, up to ``segments``. A
    share of the articles is held out (``validation``). With ``paragraphs`` each paragraph begins a
    new segment unless all of it fits into the current one, in training and, at empty lines, in any
    text that is read later.
    """

    folder: str = ""
    train_file: str = "train"
    test_file: str = "dev"
    validation: float = 0.03
    length: int = 128
    segments: int = 8
    paragraphs: bool = False
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL_WORDPIECE)
    seed: int = 0

    @property
    def tasks(self) -> Sequence[int]:
        """Return the numbers of the tasks."""
        return (0,)

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of each task."""
        return {0: "sentence"}

    def read_articles(self, split: Split) -> list[Article]:
        """Read the articles of a split from its file."""
        if not self.folder:
            raise ConfigError("data.folder is missing: a folder with SQuAD's train and dev files")
        if split == "test":
            return [split_article(questions) for questions in read_articles(find_file(self.folder, self.test_file))]
        articles = [questions for questions in read_articles(find_file(self.folder, self.train_file)) if questions]
        return [
            split_article(questions)
            for questions in split_off_validation(articles, self.validation)[split == "validation"]
        ]

    def load(self) -> LongData:
        """Load all splits and build the tokenizer from the training articles."""
        check_segment_size(self.length, self.segments)
        articles = self.read_articles("train")
        texts = [text for article in articles for text in article.sentences]
        texts += [article_question.question.question for article in articles for article_question in article.questions]
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=texts)
        if not isinstance(tokenizer, SubwordTokenizer):
            raise ConfigError("articles need subwords: data.tokenizer.kind is wordpiece or stored")
        train, validation, test = (self.dataset(split, tokenizer) for split in SPLITS)
        return LongData(tokenizer, {"vocab": len(tokenizer), "max_length": self.length}, train, validation, test)

    def dataset(self, split: Split, tokenizer: Tokenizer, tasks: Sequence[int] | None = None) -> LongDataset:
        """Encode the questions of a split with a tokenizer."""
        assert isinstance(tokenizer, SubwordTokenizer)
        examples = [
            example
            for article in self.read_articles(split)
            for example in encode_article(article, tokenizer, paragraphs=self.paragraphs)
        ]
        return LongDataset(
            examples=examples,
            background=encode_novels([], tokenizer),
            tokenizer=tokenizer,
            length=self.length,
            segments=self.segments,
            target="sentence",
            seed=self.seed,
        )


def split_article(questions: Sequence[Question]) -> Article:
    """Split an article into sentences and locate the answers of its questions.

    ``questions`` are all questions of the article, each with its paragraph. An answer may extend
    over several sentences.
    """
    sentences: list[str] = []
    paragraphs: list[int] = []
    article_questions: list[ArticleQuestion] = []
    for paragraph, (text, paragraph_questions) in enumerate(group_by_text(questions).items()):
        cuts = [0, *find_sentence_ends(text), len(text)]
        spans = [(start, end) for start, end in pairwise(cuts) if text[start:end].strip()]
        for question in paragraph_questions:
            article_questions.append(ArticleQuestion(question, find_answer_sentences(question, spans, len(sentences))))
        sentences += [text[start:end].strip() for start, end in spans]
        paragraphs += [paragraph] * len(spans)
    return Article(tuple(sentences), tuple(paragraphs), tuple(article_questions))


def find_answer_sentences(question: Question, spans: Sequence[tuple[int, int]], first_sentence: int) -> frozenset[int]:
    """Find the sentences that overlap the answer, numbered from ``first_sentence``."""
    if question.start < 0:
        return frozenset()
    answer_end = question.start + len(question.answers[0])
    sentences = (
        sentence
        for sentence, (start, end) in enumerate(spans, start=first_sentence)
        if start < answer_end and end > question.start
    )
    return frozenset(sentences)


def encode_article(article: Article, tokenizer: SubwordTokenizer, *, paragraphs: bool = False) -> list[LongExample]:
    """Encode the answerable questions of an article; all share one story.

    Sentences that no question is about are background, which a memory need not store.
    """
    ids = tokenizer.encode_batch(list(article.sentences))
    story = tuple(np.array(sentence_ids, dtype=np.int32) for sentence_ids in ids)
    answerable = [entry for entry in article.questions if entry.facts]
    question_ids = tokenizer.encode_batch([entry.question.question for entry in answerable])
    all_facts = frozenset[int]().union(*(entry.facts for entry in answerable))
    paragraph_tokens = (
        paragraph_tokens_of(article.paragraphs, [len(sentence_ids) for sentence_ids in ids]) if paragraphs else ()
    )
    return [
        LongExample(
            story=story,
            question=np.array(question, dtype=np.int32),
            answer=NO_TOKENS,
            facts=tuple(sorted(entry.facts)),
            task=0,
            all_facts=all_facts,
            paragraph_tokens=paragraph_tokens,
        )
        for entry, question in zip(answerable, question_ids)
    ]


def paragraph_tokens_of(paragraphs: Sequence[int], num_tokens: Sequence[int]) -> tuple[int, ...]:
    """Count for each sentence the tokens of the paragraph it begins; otherwise 0."""
    totals: dict[int, int] = {}
    for paragraph, count in zip(paragraphs, num_tokens):
        totals[paragraph] = totals.get(paragraph, 0) + count
    begins_paragraph = [
        sentence == 0 or paragraphs[sentence - 1] != paragraph for sentence, paragraph in enumerate(paragraphs)
    ]
    return tuple(totals[paragraph] if is_first else 0 for paragraph, is_first in zip(paragraphs, begins_paragraph))
