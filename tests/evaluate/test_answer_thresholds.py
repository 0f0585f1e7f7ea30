"""Thresholds of "no answer": by hand, and against trying them all."""

import random

import pytest

from mnemic.evaluate.answer_thresholds import (
    SpanPrediction,
    apply_threshold,
    find_best_threshold,
    summarize_reading,
    summarize_spans,
    tabulate_thresholds,
)

CASES = [
    SpanPrediction(has_answer=True, probability=0.9, exact=1.0, f1=1.0),
    SpanPrediction(has_answer=True, probability=0.7, exact=0.0, f1=0.4),
    SpanPrediction(has_answer=False, probability=0.6, exact=0.0, f1=0.0),
    SpanPrediction(has_answer=False, probability=0.2, exact=0.0, f1=0.0),
    SpanPrediction(has_answer=True, probability=0.1, exact=1.0, f1=1.0),
]


def test_a_threshold_by_hand() -> None:
    row = apply_threshold(CASES, 0.5)
    assert row.answered == pytest.approx(2 / 3)
    assert row.false_answers == 0.5
    assert row.precision == pytest.approx(1 / 3)  # of three answers one has an F1 of a half or more
    assert row.exact == pytest.approx(2 / 5)  # the first, and the silence of the fourth
    assert row.f1 == pytest.approx(2.4 / 5)
    assert apply_threshold(CASES, 1.0).precision == 1.0


def test_the_best_threshold_is_found() -> None:
    generator = random.Random(0)
    for _ in range(200):
        cases = []
        for _ in range(generator.randrange(1, 12)):
            has_answer, f1 = generator.random() < 0.6, generator.random()
            cases.append(SpanPrediction(has_answer, generator.randrange(1, 9) / 8, 0.0, f1 if has_answer else 0.0))
        best = apply_threshold(cases, find_best_threshold(cases)).f1
        assert best == pytest.approx(max(apply_threshold(cases, number / 16).f1 for number in range(17)))


def test_the_table_has_the_best_row() -> None:
    rows = tabulate_thresholds(CASES)
    assert len(rows) == 10
    assert [row.threshold for row in rows] == sorted(row.threshold for row in rows)
    assert max(row.f1 for row in rows) == pytest.approx((1 + 0.4 + 2) / 5)  # between 0.6 and 0.7


def test_summaries_by_hand() -> None:
    spans = summarize_spans(CASES)
    assert spans["f1"] == pytest.approx(2.4 / 5)
    assert spans["no answer"] == pytest.approx(3 / 5)
    # Pairs of an unanswerable and an answerable question: 6, of which 4 are in the right order.
    assert spans["no answer AUROC"] == pytest.approx(4 / 6)
    answered = [case for case in CASES if case.has_answer]
    assert summarize_spans(answered) == {"f1": pytest.approx(0.8), "exact": pytest.approx(2 / 3)}
    assert summarize_reading(CASES)["f1"] == pytest.approx(0.8)  # of the questions with an answer
