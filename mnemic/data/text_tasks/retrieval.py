"""Data source of SQuAD articles, for retrieving texts and reading answers in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

import torch
from torch import Tensor

from mnemic.data.contract import Split
from mnemic.data.text_tasks.batches import RetrievalTest, TextDataset
from mnemic.data.text_tasks.dataset import list_question_texts
from mnemic.data.text_tasks.encode_windows import encode_labeled, encode_questions
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TextError
from mnemic.data.text_tasks.files import find_file
from mnemic.data.text_tasks.retrieval_batches import RetrievalDataset, RetrievalMix
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS, WORDPIECE, make_window_options, split_off_validation
from mnemic.data.text_tasks.squad import read_articles
from mnemic.recipe import ConfigError, build
from mnemic.text import Tokenizer, WindowOptions
from mnemic.text.sentence_spans import count_sentence_tokens
from mnemic.text.windows import Truncation

Article = Sequence[QuestionExample]


@dataclass(frozen=True, kw_only=True)
class ArticleFiles:
    """SQuAD articles, to learn retrieval of texts and reading of answers together.

    Without ``held`` the share ``validation`` of whole articles is held out. The share ``wrong`` of
    the questions is read with a wrong text; of these texts the share ``elsewhere`` is of another
    article, the rest of the same one. To learn retrieval, a batch has ``passages`` texts of each of
    ``articles`` articles, with ``asked_each`` questions each. An evaluation dataset has every
    question twice, with its text and with another text of its article; texts are retrieved among
    those of the training articles, too.
    """

    folder: str
    train_file: str = "train"
    validation_file: str = ""
    test_file: str = "dev"
    validation: float = 0.03
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 384
    overlap: int = 128
    truncation: Truncation = "windows"
    negatives: float = 0.28
    other_articles: float = 0.25
    articles: int = 8
    passages: int = 24
    questions_per_passage: int = 2

    def __post_init__(self) -> None:
        for name in ("negatives", "other_articles", "validation"):
            if not 0 <= getattr(self, name) < 1:
                value = getattr(self, name)
                raise ConfigError(f"data.{name} is a share from 0 to below 1, not {value}")
        for name in ("articles", "passages", "questions_per_passage"):
            if getattr(self, name) < 1:
                raise ConfigError(f"data.{name} is at least 1, not {getattr(self, name)}")

    @property
    def batch_mix(self) -> RetrievalMix:
        """What a training batch is composed of."""
        options = (self.negatives, self.other_articles, self.articles, self.passages, self.questions_per_passage)
        return RetrievalMix(self.length, *options)

    def load(self) -> "ArticleData":
        """Read the training articles, train the tokenizer, encode the training dataset."""
        make_window_options(self)
        articles = self.read_split("train")
        texts = list_question_texts([example for article in articles for example in article])
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=list(texts))
        return ArticleData(self, tokenizer, make_retrieval_dataset(articles, tokenizer, self.batch_mix))

    def read_split(self, split: Split) -> list[list[QuestionExample]]:
        """Read the articles of one split from the only file it needs."""
        if split == "test":
            return read_articles(find_file(self.folder, self.test_file)) if self.test_file else []
        if self.validation_file and split == "validation":
            return read_articles(find_file(self.folder, self.validation_file))
        articles = [article for article in read_articles(find_file(self.folder, self.train_file)) if article]
        if self.validation_file:
            return articles
        return split_off_validation(articles, self.validation)[split == "validation"]

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TextDataset:
        """Return each question with its text and with a wrong one, and the retrieval test."""
        articles = self.read_split(split)
        distractor_articles = self.read_split("train") + (self.read_split("validation") if split == "test" else [])
        return make_evaluation_dataset(articles, tokenizer, make_window_options(self), distractor_articles)


@dataclass(frozen=True)
class ArticleData:
    """Loaded data of articles; validation and test are read on demand."""

    files: ArticleFiles
    tokenizer: Tokenizer
    train: RetrievalDataset
    generated_tasks: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        return {"vocab": len(self.tokenizer), "max_length": self.files.length}

    @cached_property
    def validation(self) -> TextDataset:
        return self.files.dataset("validation", self.tokenizer)

    @cached_property
    def test(self) -> TextDataset:
        return self.files.dataset("test", self.tokenizer)


def make_retrieval_dataset(articles: Sequence[Article], tokenizer: Tokenizer, mix: RetrievalMix) -> RetrievalDataset:
    """Encode the training articles, each question and each text once."""
    articles_by_text = [group_by_text(article) for article in articles]
    texts = [text for article in articles_by_text for text in article]
    questions = [example for article in articles_by_text for group in article.values() for example in group]
    questions_per_text = [len(group) for article in articles_by_text for group in article.values()]
    encodings = [tokenizer.encode(text, special=False) for text in texts]
    question_ids = tokenizer.encode_batch([example.question for example in questions])
    special_tokens = shared_special_tokens(tokenizer)
    max_tokens = mix.max_tokens - sum(map(len, special_tokens))
    if too_long := [example for example, ids in zip(questions, question_ids) if 2 * len(ids) > max_tokens]:
        raise TextError(
            f"the question {too_long[0].question_id} takes more than half of a window of "
            f"{mix.max_tokens} tokens; set a larger data.length, or shorten it"
        )
    text_of_question = torch.arange(len(texts)).repeat_interleave(torch.tensor(questions_per_text))
    answer_tokens = [
        find_answer_tokens(encodings[text].offsets, example)
        for text, example in zip(text_of_question.tolist(), questions)
    ]
    sentence_lengths = [count_sentence_tokens(text, encoding.offsets) for text, encoding in zip(texts, encodings)]
    text_ids = [encoding.ids for encoding in encodings]
    pool = [*question_ids, *text_ids, *special_tokens]
    pool_spans = compute_sequence_spans(pool)
    texts_per_article = torch.tensor([len(article) for article in articles_by_text])
    return RetrievalDataset(
        mix=mix,
        num_special=(len(special_tokens[0]), len(special_tokens[1]), len(special_tokens[2])),
        token_pool=torch.tensor([token_id for ids in pool for token_id in ids]),
        question_spans=pool_spans[: len(question_ids)],
        text_spans=pool_spans[len(question_ids) : len(question_ids) + len(texts)],
        sentence_lengths=torch.tensor([length for lengths in sentence_lengths for length in lengths]),
        sentence_ranges=compute_sequence_spans(sentence_lengths),
        text_of_question=text_of_question,
        answer_tokens=torch.tensor(answer_tokens),
        question_ranges=compute_spans(torch.tensor(questions_per_text)),
        article_ranges=compute_spans(texts_per_article).repeat_interleave(texts_per_article, 0),
    )


def group_by_text(article: Article) -> dict[str, list[QuestionExample]]:
    """Group the questions of an article by their text."""
    groups: dict[str, list[QuestionExample]] = {}
    for example in article:
        groups.setdefault(example.text, []).append(example)
    return groups


def shared_special_tokens(tokenizer: Tokenizer) -> tuple[list[int], list[int], list[int]]:
    """Return the special tokens before, between and after the texts of a pair.

    A single text must have the same ones before and after it.
    """
    single, pair = tokenizer.special_tokens(), tokenizer.special_tokens(pair=True)
    if (single.before, single.after) != (pair.before, pair.after):
        raise ConfigError("this tokenizer frames single texts and pairs differently; use another")
    return pair.before, pair.between, pair.after


def find_answer_tokens(offsets: Sequence[tuple[int, int]], example: QuestionExample) -> tuple[int, int]:
    """Find the first and last token of the answer; -1, -1 if there is none."""
    if example.start < 0:
        return -1, -1
    end = example.start + len(example.answers[0])
    tokens = [i for i, (a, b) in enumerate(offsets) if a < end and b > example.start]
    return (tokens[0], tokens[-1]) if tokens else (-1, -1)


def compute_sequence_spans(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Return the start and length of each sequence in their concatenation: m 2."""
    return compute_spans(torch.tensor([len(sequence) for sequence in sequences]))


def compute_spans(counts: Tensor) -> Tensor:
    """Return the start and length of consecutive ranges of these lengths: m → m 2."""
    return torch.stack([counts.cumsum(0) - counts, counts], 1)


def make_evaluation_dataset(
    articles: Sequence[Article], tokenizer: Tokenizer, options: WindowOptions, distractor_articles: Iterable[Article]
) -> TextDataset:
    """Encode each question with its text and with a wrong one, and the retrieval test."""
    positives = [example for article in articles for example in article]
    negatives = [example for seed, article in enumerate(articles) for example in pair_with_wrong_texts(article, seed)]
    texts = dict.fromkeys(example.text for example in positives)
    texts |= dict.fromkeys(example.text for article in distractor_articles for example in article)
    text_index = {text: index for index, text in enumerate(texts)}

    def encode_alone(strings: Iterable[str]) -> TextDataset:
        return encode_labeled([LabeledExample(text, None, "") for text in strings], tokenizer, options, labels=())

    retrieval = RetrievalTest(
        encode_alone(example.question for example in positives),
        encode_alone(texts),
        tuple(text_index[example.text] for example in positives),
    )
    return replace(
        encode_questions([*positives, *negatives], tokenizer, options), kind="retrieval", retrieval=retrieval
    )


def pair_with_wrong_texts(article: Article, seed: int) -> list[QuestionExample]:
    """Pair each question of an article with another of its texts, drawn with a seed."""
    texts, generator = list(dict.fromkeys(example.text for example in article)), Random(seed)
    text_index = {text: index for index, text in enumerate(texts)}
    if len(texts) < 2:
        return []
    draws = [(generator.randrange(len(texts) - 1), example) for example in article]
    pairs = [(index + (index >= text_index[example.text]), example) for index, example in draws]
    ordered = sorted(pairs, key=lambda pair: pair[0])  # questions about one text are neighbors
    return [QuestionExample(example.question, texts[index], (), -1, example.question_id) for index, example in ordered]
