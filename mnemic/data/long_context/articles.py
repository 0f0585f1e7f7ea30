"""Articles that are read before anyone asks: SQuAD's, sentence by sentence, then its questions.

Nothing is hidden among background: the article itself is the long text, and which of its sentences
holds an answer is known only to who asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mnemic.data.contract import PARTS, Part
from mnemic.data.long_context.background import number
from mnemic.data.long_context.batches import Asked, LongSet
from mnemic.data.long_context.dataset import SMALL, LongData
from mnemic.data.long_context.hide import check_length
from mnemic.data.text_tasks.examples import Asked as Question
from mnemic.data.text_tasks.files import find
from mnemic.data.text_tasks.retrieval import by_text
from mnemic.data.text_tasks.splits import VOCABULARIES, parted
from mnemic.data.text_tasks.squad import read_articles
from mnemic.recipe import ConfigError, build
from mnemic.text import Subwords, Tokenizer
from mnemic.text.rules import ends_of

NONE = np.zeros(0, dtype=np.int32)


class Told(NamedTuple):
    """A question about an article, and what a reader of the article has to find."""

    question: Question  # with its paragraph and its answers
    facts: frozenset[int]  # the sentences of the article that hold the answer


class Article(NamedTuple):
    """An article in sentences, one paragraph after another, and all its questions."""

    sentences: tuple[str, ...]
    paragraphs: tuple[int, ...]  # of each sentence
    told: tuple[Told, ...]


@dataclass(frozen=True, kw_only=True)
class LongArticles:
    """Questions about articles, in SQuAD's form, whose text is read before they are known.

    While training an article is a stretch of it around the answer, of 1 to ``segments`` segments of
    ``length`` tokens; otherwise of as many as there are, up to ``segments``. A share of whole
    articles is held back (``validation``). With ``paragraphs`` each begins a segment unless there
    is room for all of it, in training and, at empty lines, in any text that is read later.
    """

    folder: str = ""
    learnt: str = "train"
    tested: str = "dev"
    validation: float = 0.03
    length: int = 128
    segments: int = 8
    paragraphs: bool = False
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL)
    seed: int = 0

    @property
    def tasks(self) -> Sequence[int]:
        return (0,)

    @property
    def names(self) -> Mapping[int, str]:
        return {0: "sentence"}

    def articles(self, part: Part) -> list[Article]:
        """The articles of a part; only the file that it needs is read."""
        if not self.folder:
            raise ConfigError("data.folder is missing: a folder with SQuAD's train and dev files")
        if part == "test":
            return [article_of(own) for own in read_articles(find(self.folder, self.tested))]
        whole = [own for own in read_articles(find(self.folder, self.learnt)) if own]
        return [article_of(own) for own in parted(whole, self.validation)[part == "validation"]]

    def data(self) -> LongData:
        check_length(self.length, self.segments)
        learnt = self.articles("train")
        texts = [text for own in learnt for text in own.sentences]
        texts += [told.question.question for own in learnt for told in own.told]
        words = build(VOCABULARIES, self.tokenizer, texts=texts)
        if not isinstance(words, Subwords):
            raise ConfigError("articles need subwords: data.tokenizer.kind is wordpiece or stored")
        train, held, test = (self.asked(part, words) for part in PARTS)
        return LongData(words, {"vocab": len(words), "longest": self.length}, train, held, test)

    def asked(self, part: Part, words: Tokenizer, tasks: Sequence[int] | None = None) -> LongSet:
        """The questions of a part, in words that are already known."""
        assert isinstance(words, Subwords)
        examples = [
            one
            for own in self.articles(part)
            for one in numbered(own, words, paragraphs=self.paragraphs)
        ]
        return LongSet(
            examples=examples,
            background=number([], words),
            tokenizer=words,
            length=self.length,
            segments=self.segments,
            asks="sentence",
            seed=self.seed,
        )


def article_of(asked: Sequence[Question]) -> Article:
    """An article's paragraphs cut into sentences; an answer may reach over several of them."""
    sentences: list[str] = []
    paragraphs: list[int] = []
    told: list[Told] = []
    for place, (text, questions) in enumerate(by_text(asked).items()):
        cuts = [0, *ends_of(text), len(text)]
        spans = [(a, b) for a, b in pairwise(cuts) if text[a:b].strip()]
        for question in questions:
            told.append(Told(question, facts_of(question, spans, len(sentences))))
        sentences += [text[a:b].strip() for a, b in spans]
        paragraphs += [place] * len(spans)
    return Article(tuple(sentences), tuple(paragraphs), tuple(told))


def facts_of(asked: Question, spans: Sequence[tuple[int, int]], first: int) -> frozenset[int]:
    """The numbers of the sentences that hold a piece of the answer, counted from ``first``."""
    if asked.start < 0:
        return frozenset()
    end = asked.start + len(asked.answers[0])
    held = (place for place, (a, b) in enumerate(spans, start=first) if a < end and b > asked.start)
    return frozenset(held)


def numbered(article: Article, words: Subwords, *, paragraphs: bool = False) -> list[Asked]:
    """Its questions in tokens; all share one story. A question without an answer is left out.

    Sentences that no question is about are background: what a reader need not keep.
    """
    ids = words.encode_all(list(article.sentences))
    story = tuple(np.array(own, dtype=np.int32) for own in ids)
    told = [own for own in article.told if own.facts]
    asked = words.encode_all([own.question.question for own in told])
    wanted = frozenset[int]().union(*(own.facts for own in told))
    opens = opens_of(article.paragraphs, [len(own) for own in ids]) if paragraphs else ()
    return [
        Asked(
            story=story,
            question=np.array(question, dtype=np.int32),
            answer=NONE,
            facts=tuple(sorted(own.facts)),
            task=0,
            wanted=wanted,
            opens=opens,
        )
        for own, question in zip(told, asked)
    ]


def opens_of(paragraphs: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Of each sentence the tokens of the paragraph that begins with it; 0 where none does."""
    whole: dict[int, int] = {}
    for paragraph, size in zip(paragraphs, sizes):
        whole[paragraph] = whole.get(paragraph, 0) + size
    firsts = [place == 0 or paragraphs[place - 1] != own for place, own in enumerate(paragraphs)]
    return tuple(whole[own] if first else 0 for own, first in zip(paragraphs, firsts))
