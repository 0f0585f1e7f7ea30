"""How well a lasting memory answers: the whole way from a question to a span, or to none.

    python benchmarks/memory_answers.py SQUAD --memory squad.db [--questions 1000] [--part dev]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The memory, a file, holds every
paragraph of both; it is made once and kept, and so is a copy that has forgotten all articles of
dev. Questions of dev are drawn by dice that always fall alike, and asked

- of the whole memory, as ``mnemic ask`` reads it, and beside it by words alone (BM25), both with
  the shipped reader: how often the first passage, or one of five, or the one that the best answer
  is quoted from, is part of the question's paragraph, and how often that answer is right (exact
  match and F1, as SQuAD's script counts), whatever its confidence;
- of the copy, where every answer is wrong.

The curve says, for a confidence from which on answers are given: how many of the questions that
have an answer get one, how many of those are right (F1 of at least one half), and how many of the
forgotten ones get one. ``calibration`` is that share of right answers by confidence, of both kinds
of questions together. txtai's pipeline is not measured here: it is not installed with mnemic.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import squad_memory
from squad_memory import PARTS, flat

from mnemic import Memory
from mnemic.data.text_tasks.examples import Asked
from mnemic.evaluate.metrics import exact, overlap_f1
from mnemic.store.answer.confidence import LEAST

HALF = 0.5  # of F1: from here on an answer counts as right
CURVE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Judged(NamedTuple):
    """The best answer to a question."""

    score: float  # its confidence
    exact: float
    f1: float
    rank: int  # of the first passage that is part of the question's paragraph; 5: none
    own: bool  # whether the answer is quoted from such a passage
    seconds: float

    @property
    def right(self) -> bool:
        return self.f1 >= HALF


def judged(memory: Memory, one: Asked, lexical: float | None = None) -> Judged:
    began = time.perf_counter()
    answer = memory.ask(one.question, lexical=lexical)
    spent = time.perf_counter() - began
    weights = {own.passage: own.weights[0] for own in answer.evidence}
    passages = sorted(weights, key=lambda text: -weights[text])
    inside = [flat(text) in flat(one.text) for text in passages]
    rank = inside.index(True) if any(inside) else 5
    if not answer.ranked:
        return Judged(0.0, 0.0, 0.0, rank, False, spent)
    best = answer.ranked[0]
    right = (exact(best.text, one.answers), overlap_f1(best.text, one.answers))
    return Judged(best.score, *right, rank, flat(best.evidence.passage) in flat(one.text), spent)


def told(found: list[Judged]) -> dict[str, float]:
    times = sorted(one.seconds for one in found)
    figures = {
        "recall@1": 100 * mean(one.rank < 1 for one in found),
        "recall@5": 100 * mean(one.rank < 5 for one in found),
        "quoted": 100 * mean(one.own for one in found),
        "exact": 100 * mean(one.exact for one in found),
        "f1": 100 * mean(one.f1 for one in found),
        "p50 ms": 1000 * times[len(times) // 2],
        "p95 ms": 1000 * times[int(len(times) * 0.95)],
    }
    return {name: round(value, 1) for name, value in figures.items()}


def curve(there: list[Judged], gone: list[Judged]) -> list[dict[str, float]]:
    """Coverage against accuracy, for several confidences."""
    rows = []
    for least in sorted({*CURVE, LEAST}):
        given = [one for one in there if one.score >= least]
        row = {
            "answered": mean(one.score >= least for one in there),
            "of these right": mean([one.right for one in given] or [0]),
            "exact": mean([one.exact for one in given] or [0]),
            "forgotten, answered": mean(one.score >= least for one in gone),
        }
        rows.append({"confidence": least} | {name: round(100 * row[name], 1) for name in row})
    return rows


def calibration(there: list[Judged], gone: list[Judged], bins: int = 10) -> list[dict[str, Any]]:
    """How many answers are right, by what was said of them."""
    every = [(one.score, one.right) for one in there] + [(one.score, False) for one in gone]
    rows = []
    for place in range(bins):
        own = [pair for pair in every if min(int(pair[0] * bins), bins - 1) == place]
        if own:
            said, right = (round(mean(values), 3) for values in zip(*own))
            rows.append({"said": said, "right": right, "answers": len(own)})
    return rows


def main() -> None:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--part", choices=list(PARTS), default="dev")
    given = parser.parse_args()
    squad = squad_memory.read(given.squad)
    questions = squad.sample(given.part, given.questions)
    with Memory(given.memory, embedder=given.embedder) as memory:
        squad_memory.fill(memory, squad)
        print(json.dumps({"passages": memory.stats().passages, "questions": len(questions)}))
        there = [judged(memory, one) for one in questions]
        print(json.dumps({"memory": told(there)}), flush=True)
        words = [judged(memory, one, lexical=1.0) for one in questions]
        print(json.dumps({"bm25": told(words)}), flush=True)
    with squad_memory.forgetful(given.memory, given.part) as memory:
        gone = [judged(memory, one) for one in questions]
    for name, rows in (
        ("curve", curve(there, gone)),
        ("calibration", calibration(there, gone)),
    ):
        print(name)
        for row in rows:
            print(f"  {json.dumps(row)}")


if __name__ == "__main__":
    main()
