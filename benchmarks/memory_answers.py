"""Measure the answers of a persistent memory: from a question to a span, or none.

    python benchmarks/memory_answers.py SQUAD --memory squad.db [--questions 1000] [--part dev]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The memory, a file, contains every
paragraph of both; it is made once and reused, as is a copy without the articles of dev. Questions
are sampled from dev with a fixed seed, and asked

- of the whole memory, as in ``mnemic ask``, and with BM25 alone, both with the shipped reader: how
  often the first passage, or one of five, or the one that the best answer is quoted from, is part
  of the question's paragraph, and how often that answer is right (exact match and F1 as in SQuAD's
  script), whatever its confidence;
- of the copy, where every answer is wrong.

The curve has, for each minimum confidence: the share of answerable questions that get an answer,
the share of those answers that are right (F1 of at least one half), and the share of forgotten
questions that get an answer. ``calibration`` is the share of right answers by confidence, for both
kinds of questions together. txtai's pipeline is not measured here: it is not installed with mnemic.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import squad_memory
from squad_memory import SPLITS, normalize_spaces

from mnemic import Memory
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.evaluate.metrics import answer_f1, exact_match
from mnemic.store.answer.confidence import MIN_CONFIDENCE

MIN_RIGHT_F1 = 0.5  # of an answer that counts as right
CURVE_CONFIDENCES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class JudgedAnswer(NamedTuple):
    """The best answer to a question, with its scores."""

    confidence: float
    exact: float
    f1: float
    rank: int  # of the first passage from the question's paragraph; 5: none
    is_from_paragraph: bool  # whether the answer is quoted from the question's paragraph
    seconds: float

    @property
    def is_right(self) -> bool:
        """Report whether the answer counts as right."""
        return self.f1 >= MIN_RIGHT_F1


def judge_answer(memory: Memory, question: QuestionExample, **options: Any) -> JudgedAnswer:
    """Ask a question and compare the best answer with the right ones."""
    started = time.perf_counter()
    answer = memory.ask(question.question, **options)
    seconds = time.perf_counter() - started
    weights = {evidence.passage: evidence.weights[0] for evidence in answer.evidence}
    passages = sorted(weights, key=lambda text: -weights[text])
    is_in_paragraph = [normalize_spaces(text) in normalize_spaces(question.text) for text in passages]
    rank = is_in_paragraph.index(True) if any(is_in_paragraph) else 5
    if not answer.ranked:
        return JudgedAnswer(0.0, 0.0, 0.0, rank, False, seconds)
    best = answer.ranked[0]
    scores = (exact_match(best.text, question.answers), answer_f1(best.text, question.answers))
    return JudgedAnswer(
        best.score, *scores, rank, normalize_spaces(best.evidence.passage) in normalize_spaces(question.text), seconds
    )


def summarize_answers(answers: list[JudgedAnswer]) -> dict[str, float]:
    """Compute recall, exact match, F1 and latency of answers."""
    times = sorted(answer.seconds for answer in answers)
    metrics = {
        "recall@1": 100 * mean(answer.rank < 1 for answer in answers),
        "recall@5": 100 * mean(answer.rank < 5 for answer in answers),
        "quoted": 100 * mean(answer.is_from_paragraph for answer in answers),
        "exact": 100 * mean(answer.exact for answer in answers),
        "f1": 100 * mean(answer.f1 for answer in answers),
        "p50 ms": 1000 * times[len(times) // 2],
        "p95 ms": 1000 * times[int(len(times) * 0.95)],
    }
    return {name: round(value, 1) for name, value in metrics.items()}


def compute_curve(answerable: list[JudgedAnswer], forgotten: list[JudgedAnswer]) -> list[dict[str, float]]:
    """Compute coverage and accuracy for several minimum confidences."""
    rows = []
    for min_confidence in sorted({*CURVE_CONFIDENCES, MIN_CONFIDENCE}):
        answered = [answer for answer in answerable if answer.confidence >= min_confidence]
        row = {
            "answered": mean(answer.confidence >= min_confidence for answer in answerable),
            "of these right": mean([answer.is_right for answer in answered] or [0]),
            "exact": mean([answer.exact for answer in answered] or [0]),
            "forgotten, answered": mean(answer.confidence >= min_confidence for answer in forgotten),
        }
        rows.append({"confidence": min_confidence} | {name: round(100 * row[name], 1) for name in row})
    return rows


def compute_calibration(
    answerable: list[JudgedAnswer], forgotten: list[JudgedAnswer], num_bins: int = 10
) -> list[dict[str, Any]]:
    """Compute the share of right answers per bin of confidence."""
    pairs = [(answer.confidence, answer.is_right) for answer in answerable] + [
        (answer.confidence, False) for answer in forgotten
    ]
    rows = []
    for bin_number in range(num_bins):
        bin_pairs = [pair for pair in pairs if min(int(pair[0] * num_bins), num_bins - 1) == bin_number]
        if bin_pairs:
            confidence, right = (round(mean(values), 3) for values in zip(*bin_pairs))
            rows.append({"said": confidence, "right": right, "answers": len(bin_pairs)})
    return rows


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--part", choices=list(SPLITS), default="dev")
    args = parser.parse_args()
    squad = squad_memory.read_squad(args.squad)
    questions = squad.sample(args.part, args.questions)
    with Memory(args.memory, embedder=args.embedder) as memory:
        squad_memory.fill_memory(memory, squad)
        print(json.dumps({"passages": memory.stats().passages, "questions": len(questions)}))
        answerable = [judge_answer(memory, question) for question in questions]
        print(json.dumps({"memory": summarize_answers(answerable)}), flush=True)
        bm25_answers = [judge_answer(memory, question, lexical=1.0) for question in questions]
        print(json.dumps({"bm25": summarize_answers(bm25_answers)}), flush=True)
    with squad_memory.copy_without_split(args.memory, args.part) as memory:
        forgotten = [judge_answer(memory, question) for question in questions]
    for name, rows in (
        ("curve", compute_curve(answerable, forgotten)),
        ("calibration", compute_calibration(answerable, forgotten)),
    ):
        print(name)
        for row in rows:
            print(f"  {json.dumps(row)}")


if __name__ == "__main__":
    main()
