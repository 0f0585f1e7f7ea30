"""SQuAD articles as long texts: read the whole article first, then answer questions.

There is no background text: the article itself is the long text, and the reader does not know in
advance which sentences contain answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

from mnemic.data.contract import SPLITS, LoadedData, Split
from mnemic.data.long_context.background import encode_arrays, encode_novels
from mnemic.data.long_context.batches import NO_TOKENS, LongDataset, LongExample
from mnemic.data.long_context.dataset import LongSource
from mnemic.data.text_tasks.examples import QuestionExample as Question
from mnemic.data.text_tasks.files import find_file
from mnemic.data.text_tasks.retrieval import group_by_text
from mnemic.data.text_tasks.splits import split_off_validation
from mnemic.data.text_tasks.squad import read_articles
from mnemic.recipe import ConfigError
from mnemic.text import SubwordTokenizer, Tokenizer
from mnemic.text.rules import find_sentence_ends


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
class LongArticles(LongSource):
    """Articles in SQuAD's format, read in full before their questions are asked.

    In training an example is a span of the article around the answer, of 1 to ``segments`` segments
    of ``length`` tokens; otherwise it has as many segments as the article, up to ``segments``. A
    share of the articles is held out (``validation``). With ``paragraphs`` each paragraph begins a
    new segment unless all of it fits into the current one, in training and, at empty lines, in any
    text that is read later.
    """

    tasks: ClassVar[Sequence[int]] = (0,)
    names: ClassVar[Mapping[int, str]] = {0: "sentence"}
    folder: str = ""
    train_file: str = "train"
    test_file: str = "dev"
    validation: float = 0.03
    segments: int = 8
    paragraphs: bool = False

    def read_articles(self, split: Split) -> list[Article]:
        """Read the articles of a split from its file."""
        if not self.folder:
            raise ConfigError("data.folder is missing: a folder with SQuAD's train and dev files")
        articles = read_articles(find_file(self.folder, self.test_file if split == "test" else self.train_file))
        if split != "test":
            answerable = [questions for questions in articles if questions]
            articles = split_off_validation(answerable, self.validation)[split == "validation"]
        return [split_article(questions) for questions in articles]

    def load(self) -> LoadedData[LongDataset]:
        """Load all splits and build the tokenizer from the training articles."""
        articles = self.read_articles("train")
        texts = [text for article in articles for text in article.sentences]
        texts += [article_question.question.question for article in articles for article_question in article.questions]
        tokenizer = self.build_tokenizer(texts, "articles")
        train, validation, test = (self.dataset(split, tokenizer) for split in SPLITS)
        return LoadedData(tokenizer, {"vocab": len(tokenizer), "max_length": self.length}, train, validation, test)

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
            facts = frozenset(len(sentences) + index for index in question.find_answer(spans))
            article_questions.append(ArticleQuestion(question, facts))
        sentences += [text[start:end].strip() for start, end in spans]
        paragraphs += [paragraph] * len(spans)
    return Article(tuple(sentences), tuple(paragraphs), tuple(article_questions))


def encode_article(article: Article, tokenizer: SubwordTokenizer, *, paragraphs: bool = False) -> list[LongExample]:
    """Encode the answerable questions of an article; all share one story.

    Sentences that no question is about are background, which a memory need not store.
    """
    story = tuple(encode_arrays(article.sentences, tokenizer))
    answerable = [entry for entry in article.questions if entry.facts]
    questions = encode_arrays([entry.question.question for entry in answerable], tokenizer)
    all_facts = frozenset[int]().union(*(entry.facts for entry in answerable))
    paragraph_tokens = paragraph_tokens_of(article.paragraphs, [len(ids) for ids in story]) if paragraphs else ()
    return [
        LongExample(
            story=story,
            question=question,
            answer=NO_TOKENS,
            facts=tuple(sorted(entry.facts)),
            task=0,
            all_facts=all_facts,
            paragraph_tokens=paragraph_tokens,
        )
        for entry, question in zip(answerable, questions)
    ]


def paragraph_tokens_of(paragraphs: Sequence[int], num_tokens: Sequence[int]) -> tuple[int, ...]:
    """Count for each sentence the tokens of the paragraph it begins; otherwise 0."""
    totals: dict[int, int] = {}
    for paragraph, count in zip(paragraphs, num_tokens):
        totals[paragraph] = totals.get(paragraph, 0) + count
    previous = [None, *paragraphs]
    return tuple(totals[paragraph] if paragraph != before else 0 for before, paragraph in zip(previous, paragraphs))
