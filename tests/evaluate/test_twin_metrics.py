"""Curves and rankings equal those of scikit-learn and ranx, on 10,000 random cases each.

The quick version has a hundred; ranx, which needs a compiler of its own, is compared where it is
installed: pip install ranx.
"""

import random
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from mnemic.evaluate.curves import average_precision, compute_curve, roc_auc
from mnemic.evaluate.ranking_metrics import ndcg_at, recall_at, reciprocal_rank

NUM_CASES = pytest.mark.parametrize("num_cases", [100, pytest.param(10_000, marks=pytest.mark.slow)])
ALL_CASES = pytest.mark.parametrize("num_cases", [pytest.param(10_000, marks=pytest.mark.slow)])
ITEMS_PER_CASE = 25
TOP_KS = (1, 3, 10)


def draw_decisions(num_cases: int) -> list[tuple[list[float], list[bool]]]:
    """Draw scores, with few and with many ties, and labels of both classes."""
    generator, cases = random.Random(num_cases), []
    for _ in range(num_cases):
        levels, share = generator.choice([1, 2, 5, 1000]), generator.choice([0.05, 0.3, 0.9])
        labels = [True, False] + [generator.random() < share for _ in range(generator.randrange(40))]
        cases.append(([generator.randrange(levels) / levels for _ in labels], labels))
    return cases


@NUM_CASES
def test_curves_are_those_of_scikit_learn(num_cases: int) -> None:
    for scores, labels in draw_decisions(num_cases):
        curve, arrays = compute_curve(scores, labels), (np.array(labels), np.array(scores))
        false_rates, true_rates, thresholds = metrics.roc_curve(*arrays, drop_intermediate=False)
        np.testing.assert_allclose([0.0, *curve.false_positive_rates], false_rates, atol=1e-12)
        np.testing.assert_allclose([0.0, *curve.true_positive_rates], true_rates, atol=1e-12)
        np.testing.assert_array_equal([point.threshold for point in curve.points], thresholds[1:])
        precisions, recalls, _ = metrics.precision_recall_curve(*arrays)
        np.testing.assert_allclose(curve.precisions, precisions[-2::-1], atol=1e-12)
        np.testing.assert_allclose(curve.true_positive_rates, recalls[-2::-1], atol=1e-12)
        assert roc_auc(scores, labels) == pytest.approx(metrics.roc_auc_score(*arrays), abs=1e-12)
        expected = metrics.average_precision_score(*arrays)
        assert average_precision(scores, labels) == pytest.approx(expected, abs=1e-12)


def draw_rankings(num_cases: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw grades of items, with many ties, and the places at which they are ranked."""
    generator = np.random.default_rng(num_cases)
    shares = generator.choice([0.05, 0.3, 0.8], size=(num_cases, 1))
    grades = generator.integers(1, 5, (num_cases, ITEMS_PER_CASE)) * (
        generator.random((num_cases, ITEMS_PER_CASE)) < shares
    )
    grades[:, 0] = np.maximum(grades[:, 0], 1)  # ranx takes no question without a relevant item
    return grades, generator.permuted(np.tile(np.arange(ITEMS_PER_CASE), (num_cases, 1)), axis=1)


@NUM_CASES
def test_gains_are_those_of_scikit_learn(num_cases: int) -> None:
    grades, places = draw_rankings(num_cases)
    for row, order in zip(grades, places):
        relevance, scores = row[order].tolist(), np.empty(ITEMS_PER_CASE)
        scores[order] = np.arange(ITEMS_PER_CASE, 0, -1)
        for top_k in TOP_KS:
            expected = metrics.ndcg_score([row], [scores], k=top_k)
            assert ndcg_at(relevance, top_k) == pytest.approx(expected, abs=1e-12)


@ALL_CASES
@pytest.mark.filterwarnings("ignore")  # of the compiler that ranx uses
def test_rankings_are_those_of_ranx(num_cases: int) -> None:
    """Of each ranking only the first items may have been found; the ideal is of all of them."""
    ranx = pytest.importorskip("ranx")
    grades, places = draw_rankings(num_cases)
    lengths = np.random.default_rng(0).integers(1, ITEMS_PER_CASE + 1, num_cases)
    found = [(row, row[order][:length].tolist(), order[:length]) for row, order, length in zip(grades, places, lengths)]
    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for number, (row, _, order) in enumerate(found):
        judged[f"q{number:05}"] = {f"d{item}": int(grade) for item, grade in enumerate(row) if grade}
        ranked[f"q{number:05}"] = {f"d{item}": float(ITEMS_PER_CASE - rank) for rank, item in enumerate(order)}
    names = ["mrr", *(f"{name}@{top_k}" for name in ("ndcg", "recall") for top_k in TOP_KS)]
    run = ranx.Run(ranked)
    ranx.evaluate(ranx.Qrels(judged), run, names)
    ours: dict[str, list[Any]] = {name: [] for name in names}
    for row, relevance, _ in found:
        ours["mrr"].append(reciprocal_rank(relevance))
        for top_k in TOP_KS:
            ours[f"ndcg@{top_k}"].append(ndcg_at(relevance, top_k, ideal=row.tolist()))
            ours[f"recall@{top_k}"].append(recall_at(relevance, top_k, num_relevant=int((row > 0).sum())))
    for name, values in ours.items():
        expected = [run.scores[name][question] for question in judged]
        np.testing.assert_allclose(values, expected, atol=1e-9, err_msg=name)
