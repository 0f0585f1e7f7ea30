"""Articles read before anyone asks: what a memory of N sentences knows when the questions come.

    python benchmarks/long_articles.py runs/articles --slots 16 32 64 128 --device cuda
    python benchmarks/long_articles.py runs/articles --reader runs/reader --device cuda

Every article of the test file is read once, whole; then all its questions are asked of the memory.
``kept``: percent of questions whose answer's sentence is still there; ``found``: the slot that was
read most is that sentence; ``found in 5``: one of the five is. Beside what the network keeps stand
memories of equal size that keep sentences at random, and the first sentences of the paragraphs,
then their second ones. With ``--reader``, a run that answers with spans reads the ``--told``
sentences that were read most, in their order (F1 and exact match in percent), and beside it the
right paragraph.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch

from mnemic.checkpoint.folder import load
from mnemic.data import DATASETS
from mnemic.data.long_context.articles import Article, opens_of
from mnemic.data.long_context.batches import Asked, Document, LongSet
from mnemic.data.long_context.hide import Piece, cut
from mnemic.evaluate.text_metrics import answer_figures
from mnemic.models.segment_model import Encoded
from mnemic.predict.extract_answer import point_all
from mnemic.recipe import build

MEMORIES = ("network", "random", "first")
NONE = np.zeros(0, dtype=np.int64)


class Looked(NamedTuple):
    """What the questions of one article found in its memory."""

    kept: list[bool]
    best: list[list[int]]  # the sentences that were read most, best first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of keeps-articles")
    parser.add_argument("--slots", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--reader", type=Path, help="a run that answers with spans")
    parser.add_argument("--told", type=int, default=4, help="sentences that the reader is given")
    parser.add_argument("--folder", help="SQuAD's files, if not those of the recipe")
    parser.add_argument("--articles", type=int, default=0, help="only the first ones; 0: all")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    checkpoint = load(given.run)
    spec = dict(checkpoint.recipe["data"]) | ({"folder": given.folder} if given.folder else {})
    source: Any = build(DATASETS, spec)
    articles = source.articles("test")[: given.articles or None]
    network = checkpoint.network.to(given.device).eval()
    asked = replace(source.asked("test", checkpoint.tokenizer), place=torch.device(given.device))
    began = time.perf_counter()
    paragraphs = source.paragraphs
    read = [encoded(network, asked, article, paragraphs=paragraphs) for article in articles]
    print(f"{len(read)} articles in {time.perf_counter() - began:.1f} s", file=sys.stderr)
    judge = Judge(given, articles) if given.reader else None
    rows = [
        measure(network, articles, read, kind, slots, judge)
        for slots in given.slots
        for kind in MEMORIES
    ]
    found: dict[str, Any] = {"run": str(given.run), "articles": len(articles), "rows": rows}
    if judge is not None:
        found["right paragraph"] = judge([(own.question.text,) for a in articles for own in a.told])
    print(json.dumps(found, indent=1))


class ReadArticle(NamedTuple):
    """An article's sentences after I, and its questions; the memory is not written yet."""

    encoded: Encoded
    pieces: list[int]  # which sentence each unit is, in the order of writing
    inputs: Any  # Segments of the questions


@torch.no_grad()
def encoded(
    network: Any, asked: LongSet, article: Article, *, paragraphs: bool = False
) -> ReadArticle:
    """I of the whole article at once, and its questions in tokens."""
    words = asked.tokenizer
    ids = words.encode_all(list(article.sentences))
    opens = (
        opens_of(article.paragraphs, [len(own) for own in ids]) if paragraphs else [0] * len(ids)
    )
    told = [
        Piece(np.array(own, dtype=np.int32), place, opens[place]) for place, own in enumerate(ids)
    ]
    segments = list(cut(told, asked.room))
    whole = Document(iter(()), Asked((), NONE, NONE, (), 0))
    inputs = asked.assembled([whole], [segments], [0]).inputs
    questions = words.encode_all([own.question.question for own in article.told])
    each = [
        Document(iter(()), Asked((), np.array(own, dtype=np.int64), NONE, (), 0))
        for own in questions
    ]
    of_questions = asked.assembled(each, [[] for _ in each], [0] * len(each)).inputs
    pieces = [piece.fact for own in segments for piece in own]
    return ReadArticle(network.encoded(inputs), pieces, of_questions)


@torch.no_grad()
def looked(network: Any, read: ReadArticle, article: Article, kind: str, number: int) -> Looked:
    """Write the memory of one kind, and ask all questions of it."""
    own = read.encoded
    if kind != "network":
        chosen = set(chosen_by(kind, article, network.memory.slots, number))
        only = torch.zeros_like(own.seen)
        real = torch.tensor([piece in chosen for piece in read.pieces], device=only.device)
        only[own.seen] = real
        own = own._replace(only=only)
    state, _, _ = network.carry(network.empty(1, own.units[:, 0]), own)
    count = len(article.told)
    many = type(state)(*(part.expand(count, *part.shape[1:]) for part in state))
    _, reading, _ = network.asked(many, read.inputs)
    weights = reading.weights.mean((1, 2, 3))  # q s
    held = sentences_of(state, read.pieces)
    most = min(64, len(held))
    order = weights.topk(most, dim=1).indices.tolist()
    best = [list(dict.fromkeys(held[slot] for slot in slots if held[slot] >= 0)) for slots in order]
    there = set(held)
    return Looked([bool(own.facts & there) for own in article.told], best)


def sentences_of(state: Any, pieces: Sequence[int]) -> list[int]:
    """Which sentence each slot holds; -1 = none."""
    sources, _ = state.origins  # 1 s 1
    return [pieces[number] if number >= 0 else -1 for number in sources[0, :, 0].tolist()]


def chosen_by(kind: str, article: Article, slots: int, number: int) -> list[int]:
    """The sentences that a memory without a controller keeps."""
    every = range(len(article.sentences))
    if kind == "random":
        return Random(f"{number}/{slots}").sample(every, min(slots, len(every)))
    place = {own: article.paragraphs.index(article.paragraphs[own]) for own in every}
    return sorted(every, key=lambda own: (own - place[own], own))[:slots]


def measure(
    network: Any,
    articles: Sequence[Article],
    read: Sequence[ReadArticle],
    kind: str,
    slots: int,
    judge: "Judge | None",
) -> dict[str, Any]:
    """All figures of one kind of memory of one size."""
    network.memory.slots = slots
    found = [
        looked(network, own, article, kind, number)
        for number, (own, article) in enumerate(zip(read, articles))
    ]
    told = [own for article in articles for own in article.told]
    best = [own for one in found for own in one.best]
    row: dict[str, Any] = {"memory": kind, "slots": slots, "questions": len(told)}
    row["kept"] = percent([own for one in found for own in one.kept])
    row["found"] = percent([bool(own.facts & set(b[:1])) for own, b in zip(told, best)])
    row["found in 5"] = percent([bool(own.facts & set(b[:5])) for own, b in zip(told, best)])
    if judge is not None:
        sentences = [article.sentences for article in articles for _ in article.told]
        row |= judge(
            [
                tuple(own[place] for place in sorted(b[: judge.told]))
                for own, b in zip(sentences, best)
            ]
        )
    print(row, file=sys.stderr, flush=True)
    return row


class Judge:
    """F1 and exact match in percent of what a reader says to every question, given sentences each.

    Memories of one article have much in common: what was asked of a text is not asked again.
    """

    def __init__(self, given: argparse.Namespace, articles: Sequence[Article]) -> None:
        self.reader, self.told = load(given.reader), given.told
        self.reader.network.to(given.device)
        self.questions = [own.question for article in articles for own in article.told]
        self.known: dict[tuple[str, tuple[str, ...]], str] = {}

    def __call__(self, told: Sequence[tuple[str, ...]]) -> dict[str, float]:
        pairs = [(own.question, stretches) for own, stretches in zip(self.questions, told)]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        for pair, (words, _) in zip(new, point_all(self.reader, new)):
            self.known[pair] = words
        figures = answer_figures(
            [self.known[pair] for pair in pairs], [own.answers for own in self.questions]
        )
        return {name: round(100 * own, 2) for name, own in figures.items()}


def percent(flags: Sequence[bool]) -> float:
    return round(100 * sum(flags) / max(len(flags), 1), 2)


if __name__ == "__main__":
    main()
