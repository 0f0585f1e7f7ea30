"""Long documents as batches, made when they are drawn: nothing is stored but the stories.

Shapes: b documents, s segments, n tokens of a segment, q tokens of a question, w words of an
answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemic.data.long_context.background import Background
from mnemic.data.long_context.hide import Piece, Where, cut, excerpt, hide, near_misses
from mnemic.models.inputs import IGNORE, OTHER, OUTSIDE, Counted, Segments
from mnemic.text import Subwords

FULL = 0.93  # how full segments are on average, since sentences stay whole
CPU = torch.device("cpu")
WORDS = ("masked", "next")  # what is asked of documents themselves
Asks = Literal["question", "sentence", "masked", "next"]


class Batch(NamedTuple):
    """What a network reads, what it should say, and what the losses of its memory need."""

    inputs: Segments
    answers: Tensor  # b w, ids; IGNORE behind the end
    facts: Tensor  # b s n, which sentence of the proof a token is in; OTHER, OUTSIDE = none
    marked: Tensor  # b, whether such sentences are known
    proven: bool  # whether they are for all
    chain: int  # how many there are at most
    follows: Tensor  # b, 1 = the question is how the document goes on; IGNORE = it is none
    starts: Tensor  # b s n, True = a word begins
    keys: Tensor  # b, what the dice of masking depend on
    hidden: Tensor  # the id that hides a token
    ordinary: Tensor  # ids that may stand in for one

    @property
    def needed(self) -> Tensor:
        """b s n, True = a token of a sentence that proves the answer."""
        return self.facts >= 0


class Asked(NamedTuple):
    """A story in tokens, with its question and answer."""

    story: tuple[np.ndarray, ...]
    question: np.ndarray
    answer: np.ndarray
    facts: tuple[int, ...]  # sentences of the story that prove the answer, in their own order
    task: int
    wanted: frozenset[int] = frozenset()  # what any question is about, where all are known
    opens: tuple[int, ...] = ()  # of each sentence, the tokens of the paragraph it begins; or 0


class Document(NamedTuple):
    """One sample: a stream of segments, and what is asked at its end."""

    segments: Iterator[list[Piece]]
    asked: Asked
    follows: int = IGNORE


@dataclass(frozen=True, kw_only=True)
class LongSet:
    """Documents of about ``segments`` segments each; while training, of up to so many.

    ``rolls`` of a batch are dice: with them an example has other background each time it is drawn.
    """

    examples: Sequence[Asked]
    background: Background
    tokenizer: Subwords
    length: int  # tokens of a segment, special ones too
    segments: int
    asks: Asks = "question"
    where: Where = "anywhere"  # the story stands, in the document
    misses: float = 0.0  # for each sentence of background, such that almost belong to the story
    seed: int = 0
    place: torch.device = CPU

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def device(self) -> torch.device:
        """Where rows are looked up; batches are sent to ``place``."""
        return CPU

    @property
    def task(self) -> Tensor:
        return torch.tensor([own.task for own in self.examples])

    @property
    def lengths(self) -> Tensor:
        """How many tokens each story has, without background."""
        return torch.tensor([sum(map(len, own.story)) for own in self.examples])

    @property
    def rolls(self) -> int:
        """One for each example: by it background is drawn anew."""
        return 1

    @property
    def unknown(self) -> int:
        return 0

    @property
    def room(self) -> int:
        """How many tokens of a text a segment has room for, between its special ones."""
        return self.length - 2

    def to(self, device: torch.device | str) -> "LongSet":
        return replace(self, place=torch.device(device))

    def upto(self, segments: int) -> "LongSet":
        """The same examples in longer or shorter documents."""
        return replace(self, segments=segments)

    def document(self, row: int, roll: float | None = None) -> Document:
        """One sample; ``roll`` draws it anew, with any length; a story may stand by itself."""
        dice = Random(f"{self.seed}/{row}/{roll}")
        asked = self.examples[row]
        least = int(self.asks != "question")
        count = self.segments if roll is None else dice.randint(least, self.segments)
        if self.asks in WORDS:
            return self.stretch(count, dice)
        length = int(count * self.room * FULL)
        if self.asks == "sentence":
            told = excerpt(asked.story, asked.facts, length, dice)
            return Document(cut((known(one, asked) for one in told), self.room), asked)
        others = self.background.read(dice)
        if self.misses:
            others = near_misses(asked.story, others, self.misses, dice)
        pieces = hide(asked.story, others, length, dice, where=self.where)
        return Document(cut(pieces, self.room), asked)

    def stretch(self, count: int, dice: Random) -> Document:
        """A stretch of one text, and behind it how it goes on, or how another one does."""
        cuts = {True: self.some(count + 1, dice), False: self.some(1, dice)}
        *kept, after = cuts[True] if len(cuts[True]) > 1 else [*cuts[True], []]
        follows = dice.random() < 0.5
        ids = [piece.ids for piece in (after if follows else cuts[False][0])]
        words = np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32)
        none = np.zeros(0, dtype=np.int32)
        asked = Asked((), words[: self.room], none, (), 0)
        return Document(iter(kept), asked, int(follows) if ids else IGNORE)

    def some(self, count: int, dice: Random) -> list[list[Piece]]:
        """Up to ``count`` segments of one text, from a place that leaves room for them if any."""
        novel = dice.randrange(len(self.background))
        first, end = self.background.novels[novel : novel + 2]
        tokens = self.background.begins[end] - self.background.begins[first]
        spare = max(1 - count * self.room / max(int(tokens), 1), 0)
        start = int(dice.random() * spare * self.background.size(novel))
        pieces = (Piece(own) for own in self.background.novel(novel, start))
        return list(islice(cut(pieces, self.room), count))

    def batch(
        self,
        rows: Tensor,
        rolls: Tensor | None = None,
        *,
        compact: bool = True,
        most: int | None = None,
    ) -> Batch:
        """The documents in ``rows`` (b), whole, each as long as it is."""
        numbers = rows.tolist()
        dice = [None] * len(numbers) if rolls is None else rolls.flatten().tolist()
        documents = [self.document(*one) for one in zip(numbers, dice)]
        whole = [list(own.segments) for own in documents]
        keys = [hash_of(self.seed, *one) for one in zip(numbers, dice)]
        return self.assembled(documents, whole, keys)

    def stream(self, rows: Sequence[int], at_once: int) -> Iterator[Batch]:
        """The same documents ``at_once`` segments at a time; what ended is padding from then on."""
        documents = [self.document(row) for row in rows]
        keys = [hash_of(self.seed, row, None) for row in rows]
        while True:
            part = [list(islice(own.segments, at_once)) for own in documents]
            if not any(part):
                return
            yield self.assembled(documents, part, keys)

    def assembled(
        self, documents: Sequence[Document], whole: Sequence[list[list[Piece]]], keys: list[int]
    ) -> Batch:
        """Segments as tensors, with what is asked of their documents."""
        parts = filled(documents, whole, self.tokenizer, self.length)
        words = len(max((own.asked.answer for own in documents), key=len)) + 1
        ended = [np.append(own.asked.answer, self.tokenizer.sep) for own in documents]
        answers = padded(ended, words)
        framed = [framed_by(own.asked.question, self.tokenizer) for own in documents]
        question = padded(framed, max(len(own) for own in framed))
        tokens, sentences, facts, answer, asked = map(torch.from_numpy, (*parts, answers, question))
        rows = (parts[0][..., 0] == self.tokenizer.cls).reshape(-1).nonzero()[0]
        size = 2 * len(rows) + int((parts[1] >= 0).sum())
        inside = sentences >= 0
        edge = (tokens == self.tokenizer.cls) | (tokens == self.tokenizer.sep)
        inputs = Segments(
            tokens, inside | edge, inside, asked.clamp(min=0), asked >= 0, answer.clamp(min=0),
            sentences=sentences,
            counted=Counted(torch.from_numpy(rows), int(parts[1].max()) + 1, size),
        )  # fmt: skip
        said = torch.tensor([len(own.asked.answer) > 0 for own in documents])
        batch = Batch(
            inputs=inputs,
            answers=torch.where((answer >= 0) & said.unsqueeze(1), answer, IGNORE),
            facts=facts,
            marked=torch.tensor([bool(own.asked.facts) for own in documents]),
            proven=all(own.asked.facts for own in documents),
            chain=max(len(own.asked.facts) for own in documents),
            follows=torch.tensor([own.follows for own in documents]),
            starts=word_starts(self.tokenizer)[tokens],
            keys=torch.tensor(keys),
            hidden=torch.tensor(self.tokenizer.mask),
            ordinary=ordinary(self.tokenizer),
        )
        return sent(batch, self.place)


def known(piece: Piece, asked: Asked) -> Piece:
    """A sentence of an article: background if no question is about it; with its paragraph."""
    fact = piece.fact if piece.fact in asked.wanted else -1
    return Piece(piece.ids, fact, asked.opens[piece.fact] if asked.opens else 0)


def sent(batch: Batch, place: torch.device) -> Batch:
    """The batch on a device; a GPU goes on with what it does meanwhile."""
    if place.type == "cpu":
        return batch

    def move(part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part
        return part.pin_memory().to(place, non_blocking=True)

    return tree_map(move, batch)


def filled(
    documents: Sequence[Document],
    whole: Sequence[list[list[Piece]]],
    words: Subwords,
    length: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens, sentence numbers (-1: none) and which fact each is of, b s n each."""
    shape = (len(whole), max(max(len(own) for own in whole), 1), length)
    tokens = np.full(shape, words.pad, dtype=np.int64)
    sentences = np.full(shape, -1, dtype=np.int64)
    facts = np.full(shape, OUTSIDE, dtype=np.int64)
    cls, sep = [words.cls], [words.sep]
    for row, (document, segments) in enumerate(zip(documents, whole)):
        order = {fact: place for place, fact in enumerate(document.asked.facts)}
        for column, pieces in enumerate(segments):
            sizes = [len(piece.ids) for piece in pieces]
            inside = (row, column, slice(0, 2 + sum(sizes)))
            tokens[inside] = np.concatenate([cls, *(piece.ids for piece in pieces), sep])
            inside = (row, column, slice(1, 1 + sum(sizes)))
            sentences[inside] = np.repeat(np.arange(len(pieces)), sizes)
            if any(piece.fact >= 0 for piece in pieces):
                own = [order.get(one.fact, OTHER if one.fact >= 0 else OUTSIDE) for one in pieces]
                facts[inside] = np.repeat(own, sizes)
    return tokens, sentences, facts


def padded(rows: Sequence[np.ndarray], width: int) -> np.ndarray:
    """Rows of ids as one table, -1 behind the short ones."""
    table = np.full((len(rows), width), -1, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def framed_by(ids: np.ndarray, words: Subwords) -> np.ndarray:
    return np.concatenate([[words.cls], ids, [words.sep]])


@lru_cache(maxsize=4)
def word_starts(words: Subwords) -> Tensor:
    """Which ids begin a word: all but those that go on within one."""
    return torch.tensor([not piece.startswith("##") for piece in words.pieces])


@lru_cache(maxsize=4)
def ordinary(words: Subwords) -> Tensor:
    """All ids that stand for text."""
    return torch.tensor([n for n in range(len(words)) if n not in words.specials])


def hash_of(*purpose: object) -> int:
    """A number of 62 bits for an example and its dice."""
    return Random("/".join(str(part) for part in purpose)).getrandbits(62)
