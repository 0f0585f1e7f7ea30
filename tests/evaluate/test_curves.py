"""Curves, intervals and rankings: against scikit-learn, by hand, and their invariants."""

import random
from itertools import permutations
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score, roc_curve

from mnemic.evaluate.curves import Curve, CurvePoint, average_precision, compute_curve, roc_auc
from mnemic.evaluate.intervals import bound_best, hoeffding_radius, wilson_interval
from mnemic.evaluate.ranking_metrics import ndcg_at, recall_at, reciprocal_rank, summarize_ranks

NUM_CASES = 300


def draw_cases(seed: int) -> list[tuple[list[float], list[bool]]]:
    """Draw scores with many ties, and labels of both classes."""
    generator = random.Random(seed)
    cases = []
    for _ in range(NUM_CASES):
        size, levels = generator.randrange(2, 30), generator.choice([2, 5, 1000])
        labels = [True, False] + [generator.random() < 0.3 for _ in range(size)]
        cases.append(([generator.randrange(levels) / levels for _ in labels], labels))
    return cases


def test_areas_are_those_of_scikit_learn() -> None:
    for scores, labels in draw_cases(seed=0):
        assert roc_auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
        assert average_precision(scores, labels) == pytest.approx(average_precision_score(labels, scores), abs=1e-12)


def test_the_curve_is_that_of_scikit_learn() -> None:
    for scores, labels in draw_cases(seed=1)[:50]:
        false_rates, true_rates, _ = roc_curve(labels, scores, drop_intermediate=False)
        curve = compute_curve(scores, labels)
        assert [0.0, *curve.false_positive_rates] == pytest.approx(false_rates.tolist())
        assert [0.0, *curve.true_positive_rates] == pytest.approx(true_rates.tolist())


def test_auc_is_the_chance_that_a_positive_is_ahead() -> None:
    for scores, labels in draw_cases(seed=2)[:50]:
        positives = [score for score, label in zip(scores, labels) if label]
        negatives = [score for score, label in zip(scores, labels) if not label]
        wins = [(p > n) + 0.5 * (p == n) for p in positives for n in negatives]
        assert roc_auc(scores, labels) == pytest.approx(sum(wins) / len(wins))


def test_more_negatives_leave_roc_and_change_precision() -> None:
    scores, labels = [0.9, 0.8, 0.7, 0.1], [True, False, True, False]
    more_scores, more_labels = scores + 9 * [0.8, 0.1], labels + 9 * [False, False]
    assert roc_auc(more_scores, more_labels) == pytest.approx(roc_auc(scores, labels))
    assert average_precision(more_scores, more_labels) < average_precision(scores, labels)


def test_a_missing_class_is_survived() -> None:
    assert (roc_auc([0.3], [True]), roc_auc([], []), average_precision([0.2, 0.1], [False, False])) == (0.5, 0.5, 0.0)
    with pytest.raises(ValueError, match="one score per example"):
        roc_auc([0.3, 0.4], [True])


def test_wilson_by_hand() -> None:
    """Of 10, none: Wilson's upper bound is z² / (n + z²)."""
    z2 = 1.959963984540054**2
    assert wilson_interval(0.0, 10) == pytest.approx((0.0, z2 / (10 + z2)))
    assert wilson_interval(1.0, 10) == pytest.approx((10 / (10 + z2), 1.0))
    assert wilson_interval(0.5, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        wilson_interval(1.2, 5)


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_contains_the_share_and_shrinks(count: int, share: float) -> None:
    low, high = wilson_interval(share, count)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    low_of_more, high_of_more = wilson_interval(share, 10 * count)
    assert high_of_more - low_of_more < high - low


def test_wilson_covers_the_true_share() -> None:
    generator, truth = random.Random(0), 0.85
    hits = 0
    for _ in range(1000):
        share = sum(generator.random() < truth for _ in range(200)) / 200
        low, high = wilson_interval(share, 200)
        hits += low <= truth <= high
    assert 0.93 <= hits / 1000 <= 0.97


def test_hoeffding_bounds_the_best_of_several() -> None:
    """The best of ten fair coins is further off than one, and within the bound 19 times of 20."""
    assert hoeffding_radius(200) == pytest.approx(sqrt(log(2 / 0.05) / 400))
    generator = random.Random(0)
    best = [max(sum(generator.random() < 0.5 for _ in range(200)) / 200 for _ in range(10)) for _ in range(200)]
    assert sum(share - 0.5 > hoeffding_radius(200, 10) for share in best) <= 10
    with pytest.raises(ValueError, match="at least 1"):
        hoeffding_radius(0)


def test_rankings_are_those_of_scikit_learn() -> None:
    generator = random.Random(3)
    for _ in range(NUM_CASES):
        relevance = [generator.choice([0, 0, 1, 2, 3]) for _ in range(generator.randrange(2, 20))]
        top_k = generator.randrange(1, 25)
        ranks = [list(range(len(relevance), 0, -1))]  # scores in the order of the ranking
        assert ndcg_at(relevance, top_k) == pytest.approx(ndcg_score([relevance], ranks, k=top_k))


def test_ranks_by_hand() -> None:
    assert [reciprocal_rank(row) for row in ([1, 0], [0, 0, 1], [0, 0])] == [1, pytest.approx(1 / 3), 0]
    assert recall_at([1, 0, 1, 1], 2) == pytest.approx(1 / 3)
    assert recall_at([1, 0], 2, num_relevant=4) == 0.25
    assert recall_at([0], 1) == 0.0
    assert ndcg_at([1], 1, ideal=[1, 3]) == pytest.approx(1 / 3)


def test_ranks_of_one_relevant_item_are_rankings() -> None:
    ranks = [0, 1, 1, 4, 9, 10, 30]
    rankings = [[*[0] * rank, 1, *[0] * 3] for rank in ranks]
    values = summarize_ranks(ranks)
    assert values["MRR"] == pytest.approx(sum(map(reciprocal_rank, rankings)) / 7)
    assert values["nDCG@10"] == pytest.approx(sum(ndcg_at(ranking, 10) for ranking in rankings) / 7)
    assert summarize_ranks([]) == {"MRR": 0, "nDCG@10": 0}


def rank_by_brute_force(relevance: list[int], all_grades: list[int], top_k: int) -> tuple[float, float, float]:
    """Reciprocal rank, recall and nDCG by definition; the ideal is the best of all orders."""
    first = [position for position in range(len(relevance)) if relevance[position]]
    found = [grade for position, grade in enumerate(relevance) if position < top_k and grade]

    def gain(grades: tuple[int, ...] | list[int]) -> float:
        return sum(grades[position] * log(2) / log(position + 2) for position in range(min(top_k, len(grades))))

    ideal = max(map(gain, permutations(all_grades)))
    return (
        1 / (first[0] + 1) if first else 0.0,
        len(found) / sum(map(bool, all_grades)) if any(all_grades) else 0.0,
        gain(relevance) / ideal if ideal else 0.0,
    )


def test_rankings_are_those_of_brute_force() -> None:
    """On 1,000 random cases, some of whose items were not ranked."""
    generator = random.Random(4)
    for _ in range(1000):
        all_grades = [generator.choice([0, 0, 1, 2, 5]) for _ in range(generator.randrange(1, 6))]
        relevance = generator.sample(all_grades, generator.randrange(len(all_grades) + 1))
        top_k = generator.randrange(1, 7)
        num_relevant = sum(map(bool, all_grades))
        ours = (
            reciprocal_rank(relevance),
            recall_at(relevance, top_k, num_relevant=num_relevant),
            ndcg_at(relevance, top_k, ideal=all_grades),
        )
        assert ours == pytest.approx(rank_by_brute_force(relevance, all_grades, top_k), abs=1e-12)


def test_bounds_of_the_best_contain_wilsons_and_grow_with_the_number_compared() -> None:
    assert bound_best(0.5, 0, 3) == (0.0, 1.0)
    widths = []
    for num_models in (1, 10, 1000):
        low, high = bound_best(0.9, 500, num_models)
        wilson_low, wilson_high = wilson_interval(0.9, 500)
        assert low < wilson_low
        assert wilson_high < high
        widths.append(high - low)
    assert widths == sorted(widths)
    assert bound_best(0.9, 50, 1000)[1] == 1.0
    with pytest.raises(ValueError, match="from 0 to 1"):
        bound_best(1.1, 5, 1)


def test_precision_shows_what_roc_hides_where_positives_are_rare() -> None:
    """100 frauds among 2,000,000: each finds 90, one with 10 false alarms, one with 910."""
    rates, precisions = [], []
    for num_false in (10, 910):
        curve = Curve((CurvePoint(0.5, 90, num_false),), num_positives=100, num_negatives=1_999_900)
        assert curve.true_positive_rates == [0.9]
        rates.append(curve.false_positive_rates[0])
        precisions.append(curve.precisions[0])
    assert rates[1] - rates[0] == pytest.approx(0.00045, abs=1e-7)
    assert precisions == [0.9, 0.09]
    assert precisions[0] - precisions[1] == pytest.approx(0.81)


@given(st.data())
def test_a_curve_dominates_in_roc_space_where_it_does_in_precision_and_recall(data: st.DataObject) -> None:
    """Theorem 2 of Davis and Goadrich (2006), at each recall above 0 that both curves have."""
    num_positives, num_negatives = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 200))
    recalls = data.draw(st.sets(st.integers(1, num_positives), min_size=1).map(sorted))
    curves = []
    for _ in range(2):
        counts = data.draw(st.lists(st.integers(0, num_negatives), min_size=len(recalls), max_size=len(recalls)))
        points = [CurvePoint(-rank, *pair) for rank, pair in enumerate(zip(recalls, sorted(counts)))]
        curves.append(Curve(tuple(points), num_positives, num_negatives))
    first, second = curves
    assert first.true_positive_rates == second.true_positive_rates
    in_roc = all(a <= b for a, b in zip(first.false_positive_rates, second.false_positive_rates))
    in_precision = all(a >= b for a, b in zip(first.precisions, second.precisions))
    assert in_roc == in_precision
    assert first.precisions == pytest.approx([convert_to_precision(*rates) for rates in list_rates(first)])


def list_rates(curve: Curve) -> list[tuple[float, float, float]]:
    """List both rates of each point, with the number of negatives per positive."""
    skew = curve.num_negatives / curve.num_positives
    return [(*rates, skew) for rates in zip(curve.true_positive_rates, curve.false_positive_rates)]


def convert_to_precision(true_rate: float, false_rate: float, skew: float) -> float:
    """Convert a point of ROC space to its precision (theorem 1)."""
    return true_rate / (true_rate + skew * false_rate)
