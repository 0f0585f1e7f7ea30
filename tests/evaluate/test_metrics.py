"""Figures as each task's own community counts them: by hand, and against what is known."""

from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.evaluate.metrics import (
    accuracy,
    answer_f1,
    area_under_roc,
    decode_bio_tags,
    entity_f1,
    exact_match,
    f1,
    macro_f1,
    matthews_correlation,
    normalize_answer,
    pearson_correlation,
    spearman_correlation,
)

classes = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30)


def test_classes_by_hand() -> None:
    predictions, targets = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]
    assert accuracy(predictions, targets) == 0.6
    assert f1(predictions, targets) == pytest.approx(2 / 3)
    assert f1(predictions, targets, positive=0) == pytest.approx(0.5)
    assert macro_f1(predictions, targets) == pytest.approx((2 / 3 + 0.5) / 2)
    assert f1([0, 0], [1, 1]) == 0.0
    assert accuracy([], []) == 0.0


@given(classes)
def test_matthews_is_the_correlation_of_two_classes(both: list[tuple[int, int]]) -> None:
    """For two classes Matthews' coefficient is Pearson's of 0 and 1."""
    predictions, targets = [a for a, _ in both], [b for _, b in both]
    assert matthews_correlation(predictions, targets) == pytest.approx(
        pearson_correlation(predictions, targets), abs=1e-9
    )


def test_matthews_of_three_classes() -> None:
    """The value scikit-learn's documentation of matthews_corrcoef gives for -1 and 1, and R_3."""
    assert matthews_correlation([1, -1, 1, 1], [1, 1, 1, -1]) == pytest.approx(-1 / 3)
    predictions, targets = [0, 1, 2, 2], [0, 1, 2, 1]
    assert matthews_correlation(predictions, targets) == pytest.approx((3 * 4 - 5) / sqrt((16 - 6) * (16 - 6)))


def test_correlations() -> None:
    assert pearson_correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert pearson_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert pearson_correlation([1, 1], [1, 2]) == 0.0
    assert pearson_correlation([], []) == 0.0
    assert spearman_correlation([1, 10, 100], [1, 2, 3]) == pytest.approx(1)
    # With ties: ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3.
    assert spearman_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / sqrt(4.5 * 5))


def test_answers_are_compared_as_in_squads_script() -> None:
    assert normalize_answer("The  U.S.'s “Army”, an Army!") == ["uss", "“army”", "army"]
    assert exact_match("the Eiffel Tower.", ["Eiffel tower"]) == 1
    assert exact_match("Eiffel", ["Eiffel tower", "a tower"]) == 0
    assert answer_f1("big Eiffel", ["Eiffel tower", "x"]) == pytest.approx(0.5)
    assert answer_f1("a b b", ["b b c"]) == pytest.approx(2 * (2 / 2) * (2 / 3) / (2 / 2 + 2 / 3))
    assert (exact_match("", []), answer_f1("", [])) == (1, 1)
    assert (exact_match("x", []), answer_f1("x", [])) == (0, 0)
    assert (exact_match("", ["x"]), answer_f1("", ["x"])) == (0, 0)
    assert answer_f1("the", ["the"]) == 1  # both are nothing once normalised
    assert answer_f1("北京市", ["北京"]) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-x I-x O B-y", [("x", 0, 1), ("y", 3, 3)]),
        ("B-x B-x", [("x", 0, 0), ("x", 1, 1)]),
        ("I-x I-x O I-y", [("x", 0, 1), ("y", 3, 3)]),  # I- without B- begins one
        ("B-x I-y I-y", [("x", 0, 0), ("y", 1, 2)]),  # another kind begins another
        ("I-x B-x I-x", [("x", 0, 0), ("x", 1, 2)]),
        ("B-PER.NAM I-PER.NAM O", [("PER.NAM", 0, 1)]),
        ("O O", []),
        ("", []),
    ],
)
def test_entities_are_those_of_seqeval(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert decode_bio_tags(tags.split()) == expected


def test_entity_f1() -> None:
    """The example of seqeval's README: one of two entities is right."""
    targets = [["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    predictions = [["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"], ["B-PER", "I-PER", "O"]]
    assert entity_f1(predictions, targets) == (0.5, 0.5, 0.5)
    assert entity_f1([["O"]], [["O"]]).f1 == 0.0
    assert entity_f1([["B-a", "O"]], [["B-a", "B-a"]]) == pytest.approx((1, 0.5, 2 / 3))


def test_area_under_roc_is_the_share_of_ordered_pairs() -> None:
    generator = Random(0)
    scores = [generator.randrange(6) / 5 for _ in range(40)]
    targets = [generator.random() < 0.4 for _ in range(40)]
    pairs = [(a, b) for a, x in zip(scores, targets) if x for b, y in zip(scores, targets) if not y]
    expected = sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)
    assert area_under_roc(scores, targets) == pytest.approx(expected)
    assert area_under_roc([0.1, 0.2], [True, True]) == 0.5
