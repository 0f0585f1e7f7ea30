"""SQuAD's articles as a data set for finding texts and for reading answers in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

import torch
from torch import Tensor

from mnemic.data.contract import Part
from mnemic.data.text_tasks.batches import Search, TextSet
from mnemic.data.text_tasks.dataset import asked_texts
from mnemic.data.text_tasks.encode_windows import asked_set, labelled_set
from mnemic.data.text_tasks.examples import Asked, Labelled, TextError
from mnemic.data.text_tasks.files import find
from mnemic.data.text_tasks.retrieval_batches import Mix, ReadingSet
from mnemic.data.text_tasks.splits import VOCABULARIES, WORDPIECE, parted, room_of
from mnemic.data.text_tasks.squad import read_articles
from mnemic.recipe import ConfigError, build
from mnemic.text import Room, Tokenizer
from mnemic.text.sentence_spans import key_lengths
from mnemic.text.windows import Truncation

Article = Sequence[Asked]


@dataclass(frozen=True, kw_only=True)
class ArticleFiles:
    """Questions with answers in the texts of articles, in SQuAD's form, for two jobs.

    Without ``held`` a share of whole articles is held back (``validation``). ``wrong`` questions
    are read with a text that is not theirs, of which a share is from ``elsewhere``, the rest from
    the same article. Texts are found among ``passages`` of each of ``articles`` a batch, with
    ``asked`` questions each. A judged set has every question twice, with its own text and with
    another of the same article; its own texts are searched for among those learnt, too.
    """

    folder: str
    learnt: str = "train"
    held: str = ""
    tested: str = "dev"
    validation: float = 0.03
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 384
    overlap: int = 128
    truncation: Truncation = "windows"
    wrong: float = 0.28
    elsewhere: float = 0.25
    articles: int = 8
    passages: int = 24
    asked_each: int = 2

    def __post_init__(self) -> None:
        for name in ("wrong", "elsewhere", "validation"):
            if not 0 <= getattr(self, name) < 1:
                came = getattr(self, name)
                raise ConfigError(f"data.{name} is a share from 0 to below 1, not {came}")
        for name in ("articles", "passages", "asked_each"):
            if getattr(self, name) < 1:
                raise ConfigError(f"data.{name} is at least 1, not {getattr(self, name)}")

    @property
    def mix(self) -> Mix:
        shares = (self.wrong, self.elsewhere, self.articles, self.passages, self.asked_each)
        return Mix(self.length, *shares)

    def data(self) -> "ArticleData":
        room_of(self)
        learnt = self.told("train")
        texts = asked_texts([own for article in learnt for own in article])
        words = build(VOCABULARIES, self.tokenizer, texts=list(texts))
        return ArticleData(self, words, reading_set(learnt, words, self.mix))

    def told(self, part: Part) -> list[list[Asked]]:
        """The articles of a part; only the file that it needs is read."""
        if part == "test":
            return read_articles(find(self.folder, self.tested)) if self.tested else []
        if self.held and part == "validation":
            return read_articles(find(self.folder, self.held))
        whole = [article for article in read_articles(find(self.folder, self.learnt)) if article]
        if self.held:
            return whole
        return parted(whole, self.validation)[part == "validation"]

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str] = ()) -> TextSet:
        """Every question with its own text and with a wrong one, and the texts to search in."""
        articles = self.told(part)
        more = self.told("train") + (self.told("validation") if part == "test" else [])
        return judged_set(articles, words, room_of(self), more)


@dataclass(frozen=True)
class ArticleData:
    """All that training needs to know of the articles; what is judged is read when it is."""

    files: ArticleFiles
    words: Tokenizer
    train: ReadingSet
    made: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        return {"vocab": len(self.words), "longest": self.files.length}

    @cached_property
    def validation(self) -> TextSet:
        return self.files.asked("validation", self.words)

    @cached_property
    def test(self) -> TextSet:
        return self.files.asked("test", self.words)


def reading_set(articles: Sequence[Article], words: Tokenizer, mix: Mix) -> ReadingSet:
    """Number the training articles: each question and each text once."""
    grouped = [by_text(article) for article in articles]
    texts = [text for article in grouped for text in article]
    questions = [own for article in grouped for group in article.values() for own in group]
    counts = [len(group) for article in grouped for group in article.values()]
    coded = [words.encode(text, special=False) for text in texts]
    asked = words.encode_all([own.question for own in questions])
    frame = frame_of(words)
    room = mix.length - sum(map(len, frame))
    if strange := [own for own, ids in zip(questions, asked) if 2 * len(ids) > room]:
        raise TextError(
            f"the question {strange[0].name} takes more than half of a window of {mix.length} "
            "tokens; set a larger data.length, or shorten it"
        )
    home = torch.arange(len(texts)).repeat_interleave(torch.tensor(counts))
    ends = [answer_tokens(coded[text].offsets, own) for text, own in zip(home.tolist(), questions)]
    keys = [key_lengths(text, own.offsets) for text, own in zip(texts, coded)]
    pool = [ids for own in (asked, [one.ids for one in coded], frame) for ids in own]
    places = placed(pool)
    sizes = torch.tensor([len(article) for article in grouped])
    return ReadingSet(
        mix=mix,
        frame=(len(frame[0]), len(frame[1]), len(frame[2])),
        pool=torch.tensor([number for ids in pool for number in ids]),
        questions=places[: len(asked)],
        texts=places[len(asked) : len(asked) + len(texts)],
        key_lengths=torch.tensor([length for own in keys for length in own]),
        keys=placed(keys),
        home=home,
        answers=torch.tensor(ends),
        asked=spread(torch.tensor(counts)),
        near=spread(sizes).repeat_interleave(sizes, 0),
    )


def by_text(article: Article) -> dict[str, list[Asked]]:
    """The questions of each different text."""
    found: dict[str, list[Asked]] = {}
    for own in article:
        found.setdefault(own.text, []).append(own)
    return found


def frame_of(words: Tokenizer) -> tuple[list[int], list[int], list[int]]:
    """The special tokens of a pair, which around a single text have to be the same."""
    alone, pair = words.frame(), words.frame(pair=True)
    if (alone.before, alone.after) != (pair.before, pair.after):
        raise ConfigError("this tokenizer frames single texts and pairs differently; use another")
    return pair.before, pair.between, pair.after


def answer_tokens(offsets: Sequence[tuple[int, int]], own: Asked) -> tuple[int, int]:
    """The first and last token that quote the answer; -1 without one."""
    if own.start < 0:
        return -1, -1
    end = own.start + len(own.answers[0])
    quoting = [i for i, (a, b) in enumerate(offsets) if a < end and b > own.start]
    return (quoting[0], quoting[-1]) if quoting else (-1, -1)


def placed(pieces: Sequence[Sequence[int]]) -> Tensor:
    """Where each piece begins in all of them, one after another, and how long it is: m 2."""
    return spread(torch.tensor([len(own) for own in pieces]))


def spread(counts: Tensor) -> Tensor:
    """Where each of neighbours begins, and how many it holds: m 2."""
    return torch.stack([counts.cumsum(0) - counts, counts], 1)


def judged_set(
    articles: Sequence[Article], words: Tokenizer, room: Room, more: Iterable[Article]
) -> TextSet:
    """Each question with its text and, ``without`` an answer, with another of its article."""
    right = [own for article in articles for own in article]
    wrong = [own for number, article in enumerate(articles) for own in misplaced(article, number)]
    texts = dict.fromkeys(own.text for own in right)
    texts |= dict.fromkeys(own.text for article in more for own in article)
    number = {text: place for place, text in enumerate(texts)}

    def alone(strings: Iterable[str]) -> TextSet:
        return labelled_set([Labelled(own, None, "") for own in strings], words, room, labels=())

    search = Search(
        alone(own.question for own in right), alone(texts), tuple(number[own.text] for own in right)
    )
    return replace(asked_set([*right, *wrong], words, room), kind="reading", search=search)


def misplaced(article: Article, number: int) -> list[Asked]:
    """Every question of an article with another of its texts, by dice that always fall alike."""
    texts, dice = list(dict.fromkeys(own.text for own in article)), Random(number)
    place = {text: at for at, text in enumerate(texts)}
    if len(texts) < 2:
        return []
    drawn = [(dice.randrange(len(texts) - 1), own) for own in article]
    moved = [(at + (at >= place[own.text]), own) for at, own in drawn]
    ordered = sorted(moved, key=lambda both: both[0])  # those of one text stand together
    return [Asked(own.question, texts[at], (), -1, own.name) for at, own in ordered]
