"""Data source of SQuAD articles, for retrieving texts and reading answers in them."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import ClassVar

import torch
from torch import Tensor

from mnemic.data.contract import Data, LoadedData, Names, Split, check_minimum, check_share
from mnemic.data.text_tasks.batches import RetrievalTest, TextDataset
from mnemic.data.text_tasks.dataset import SquadFiles
from mnemic.data.text_tasks.encode_windows import encode_labeled, encode_questions, find_answer_tokens
from mnemic.data.text_tasks.examples import AnsweredPair, LabeledExample, QuestionExample, TextError
from mnemic.data.text_tasks.retrieval_batches import RetrievalDataset, RetrievalMix
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS
from mnemic.data.text_tasks.squad import read_articles
from mnemic.data.views.pairs import TextPair, read_negatives
from mnemic.recipe import ConfigError, build
from mnemic.text import Tokenizer, WindowOptions
from mnemic.text.sentence_spans import count_sentence_tokens

Article = Sequence[QuestionExample]


@dataclass(frozen=True, kw_only=True)
class ArticleFiles(SquadFiles):
    """SQuAD articles, to learn retrieval of texts and reading of answers together.

    Without ``validation_file`` the share ``validation`` of whole articles is held out. The share
    ``negatives`` of the questions is read with a wrong text; of these texts the share
    ``other_articles`` is of another article, the rest of the same one. To learn retrieval, a batch
    has ``passages`` texts of each of ``articles`` articles, with ``questions_per_passage``
    questions each, and ``hard_negatives`` more texts for each of these questions if there is a
    ``negatives_file`` (see ``mnemic data negatives``). An evaluation dataset has every question
    twice, with its text and with another text of its article; texts are retrieved among those of
    the training articles, too.
    """

    objectives: ClassVar[Names] = ("retrieve-and-read",)
    calibrates_no_answer: ClassVar[bool] = True
    validation: float = 0.03
    negatives: float = 0.28
    other_articles: float = 0.25
    articles: int = 8
    passages: int = 24
    questions_per_passage: int = 2
    negatives_file: str = ""
    hard_negatives: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("negatives", "other_articles", "validation"):
            check_share(name, getattr(self, name))
        for name in ("articles", "passages", "questions_per_passage", "hard_negatives"):
            check_minimum(name, getattr(self, name), 1)

    def read_file(self, path: Path) -> list[list[QuestionExample]]:
        """Read the articles of one file."""
        return read_articles(path)

    def load(self) -> Data:
        """Read the training and validation articles, and train the tokenizer."""
        articles = self.read_split("train")
        texts = self.list_texts([example for article in articles for example in article])
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=list(texts))
        options = (self.negatives, self.other_articles, self.articles, self.passages, self.questions_per_passage)
        hard_negatives = self.hard_negatives if self.negatives_file else 0
        train = make_retrieval_dataset(articles, tokenizer, RetrievalMix(self.length, *options, hard_negatives))
        if hard_negatives:
            negatives = read_negatives(Path(self.negatives_file).expanduser())
            train = add_hard_negatives(train, articles, negatives, self.negatives_file)
        sizes = {"vocab": len(tokenizer), "max_length": self.length}
        return LoadedData(tokenizer, sizes, train, self.dataset("validation", tokenizer))

    def list_answered_pairs(self) -> list[AnsweredPair]:
        """List the training questions with their texts and answers, to mine hard negatives."""
        examples = [example for article in self.read_split("train") for example in article]
        return [AnsweredPair(example.question, example.text, example.answers) for example in examples]

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TextDataset:
        """Return each question with its text and with a wrong one, and the retrieval test."""
        articles = self.read_split(split)
        distractor_articles = self.read_split("train") + (self.read_split("validation") if split == "test" else [])
        return make_evaluation_dataset(articles, tokenizer, self.window_options, distractor_articles)


def make_retrieval_dataset(articles: Sequence[Article], tokenizer: Tokenizer, mix: RetrievalMix) -> RetrievalDataset:
    """Encode the training articles, each question and each text once."""
    articles_by_text = [group_by_text(article) for article in articles]
    questions_by_text = [group for article in articles_by_text for group in article.values()]
    texts = [text for article in articles_by_text for text in article]
    questions = [example for group in questions_by_text for example in group]
    encodings = [tokenizer.encode(text, special=False) for text in texts]
    question_ids = tokenizer.encode_batch([example.question for example in questions])
    special_tokens = shared_special_tokens(tokenizer)
    max_tokens = mix.max_tokens - sum(map(len, special_tokens))
    if too_long := [example for example, ids in zip(questions, question_ids) if 2 * len(ids) > max_tokens]:
        raise TextError(
            f"the question {too_long[0].question_id} takes more than half of a window of "
            f"{mix.max_tokens} tokens; set a larger data.length, or shorten it"
        )
    question_ranges, article_ranges = compute_spans(questions_by_text), compute_spans(articles_by_text)
    text_of_question = torch.arange(len(texts)).repeat_interleave(question_ranges[:, 1])
    answer_tokens = [
        find_answer_tokens(encodings[text].offsets, example) or (-1, -1)
        for text, example in zip(text_of_question.tolist(), questions)
    ]
    is_extractive = torch.tensor([example.is_extractive for example in questions])
    sentence_lengths = [count_sentence_tokens(text, encoding.offsets) for text, encoding in zip(texts, encodings)]
    pool = [*question_ids, *(encoding.ids for encoding in encodings), *special_tokens]
    pool_spans = compute_spans(pool)
    return RetrievalDataset(
        mix=mix,
        num_special=(len(special_tokens[0]), len(special_tokens[1]), len(special_tokens[2])),
        token_pool=torch.tensor([token_id for ids in pool for token_id in ids]),
        question_spans=pool_spans[: len(question_ids)],
        text_spans=pool_spans[len(question_ids) : len(question_ids) + len(texts)],
        sentence_lengths=torch.tensor([length for lengths in sentence_lengths for length in lengths]),
        sentence_ranges=compute_spans(sentence_lengths),
        text_of_question=text_of_question,
        answer_tokens=torch.tensor(answer_tokens),
        question_ranges=question_ranges,
        article_ranges=article_ranges.repeat_interleave(article_ranges[:, 1], 0),
        is_extractive=None if is_extractive.all() else is_extractive,
    )


def add_hard_negatives(
    dataset: RetrievalDataset, articles: Sequence[Article], negatives: Mapping[TextPair, Sequence[str]], file: str
) -> RetrievalDataset:
    """Add mined texts that are wrong for a question; all are texts of the dataset."""
    articles_by_text = [group_by_text(article) for article in articles]
    texts = [text for article in articles_by_text for text in article]
    text_index = {text: index for index, text in enumerate(texts)}
    questions = [example for article in articles_by_text for group in article.values() for example in group]
    mined = [negatives.get(TextPair(example.question, example.text), ()) for example in questions]
    unknown = [text for row in mined for text in row if text not in text_index]
    if unknown or not any(mined):
        problem = f"the text {unknown[0][:40]!r}, not a training text" if unknown else "none for these questions"
        raise TextError(f"{file} has {problem}: mine negatives for these files with `mnemic data negatives`")
    return replace(
        dataset,
        mined_texts=torch.tensor([text_index[text] for row in mined for text in row], dtype=torch.long),
        mined_ranges=compute_spans(mined),
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


def compute_spans(sequences: Sequence[Sized]) -> Tensor:
    """Return the start and length of each sequence in their concatenation: m 2."""
    counts = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.long)
    return torch.stack([counts.cumsum(0) - counts, counts], 1)


def make_evaluation_dataset(
    articles: Sequence[Article],
    tokenizer: Tokenizer,
    options: WindowOptions,
    distractor_articles: Iterable[Article],
    standalone: Sequence[bool] = (),
) -> TextDataset:
    """Encode each question with its text and with a wrong one, and the retrieval test.

    Articles that are not ``standalone`` have only questions with their text (empty: all are).
    """
    is_standalone = standalone or [True] * len(articles)
    positives = [example for article in articles for example in article if example.is_extractive]
    searches = [example for article, alone in zip(articles, is_standalone) if alone for example in article]
    negatives = [
        example
        for seed, article in enumerate(articles)
        if is_standalone[seed]
        for example in pair_with_wrong_texts(article, seed)
    ]
    texts = dict.fromkeys(example.text for article in articles for example in article)
    texts |= dict.fromkeys(example.text for article in distractor_articles for example in article)
    text_index = {text: index for index, text in enumerate(texts)}

    def encode_alone(strings: Iterable[str]) -> TextDataset:
        return encode_labeled([LabeledExample(text, None, "") for text in strings], tokenizer, options, labels=())

    retrieval = RetrievalTest(
        encode_alone(example.question for example in searches),
        encode_alone(texts),
        tuple(text_index[example.text] for example in searches),
    )
    return replace(
        encode_questions([*positives, *negatives], tokenizer, options), metrics="retrieval", retrieval=retrieval
    )


def pair_with_wrong_texts(article: Article, seed: int) -> list[QuestionExample]:
    """Pair each question of an article with another of its texts, drawn with a seed.

    Questions without an answer are left out: they have none in their text either.
    """
    texts, generator = list(dict.fromkeys(example.text for example in article)), Random(seed)
    text_index = {text: index for index, text in enumerate(texts)}
    if len(texts) < 2:
        return []
    draws = [(generator.randrange(len(texts) - 1), example) for example in article if example.answers]
    pairs = [(index + (index >= text_index[example.text]), example) for index, example in draws]
    ordered = sorted(pairs, key=lambda pair: pair[0])  # questions about one text are neighbors
    return [QuestionExample(example.question, texts[index], (), -1, example.question_id) for index, example in ordered]
