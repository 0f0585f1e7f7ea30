"""Curves of a binary decision: ROC, precision against recall, and the areas below them.

A score says how likely an example is positive. Equal scores are one threshold, since no threshold
can tell them apart.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class CurvePoint(NamedTuple):
    """The counts of a threshold: examples with at least this score count as positive."""

    threshold: float
    num_true: int  # positives with at least this score
    num_false: int  # negatives with at least this score


class Curve(NamedTuple):
    """The points of all thresholds, the highest first, and the numbers of examples."""

    points: tuple[CurvePoint, ...]
    num_positives: int
    num_negatives: int

    @property
    def true_positive_rates(self) -> list[float]:
        """The share of positives that are found, per threshold: the recall."""
        return [point.num_true / max(self.num_positives, 1) for point in self.points]

    @property
    def false_positive_rates(self) -> list[float]:
        """The share of negatives that are taken for positives, per threshold."""
        return [point.num_false / max(self.num_negatives, 1) for point in self.points]

    @property
    def precisions(self) -> list[float]:
        """The share of positives among those with at least a threshold's score."""
        return [point.num_true / (point.num_true + point.num_false) for point in self.points]


def compute_curve(scores: Sequence[float], is_positive: Sequence[bool]) -> Curve:
    """Count positives and negatives above each distinct score.

    >>> compute_curve([0.9, 0.4, 0.4], [True, False, True]).points[0]
    CurvePoint(threshold=0.9, num_true=1, num_false=0)
    """
    if len(scores) != len(is_positive):
        raise ValueError(f"one score per example, not {len(scores)} scores and {len(is_positive)} examples")
    pairs = sorted(zip(scores, is_positive), key=lambda pair: -pair[0])
    points, num_true, num_false = [], 0, 0
    for threshold, group in groupby(pairs, key=lambda pair: pair[0]):
        labels = [label for _, label in group]
        num_true, num_false = num_true + sum(labels), num_false + len(labels) - sum(labels)
        points.append(CurvePoint(threshold, num_true, num_false))
    return Curve(tuple(points), num_true, num_false)


def roc_auc(scores: Sequence[float], is_positive: Sequence[bool]) -> float:
    """Compute the area under the ROC curve; 0.5 if a class is missing.

    It is the probability that a positive has a higher score than a negative; ties count half.

    >>> roc_auc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    0.75
    """
    curve = compute_curve(scores, is_positive)
    if not curve.num_positives or not curve.num_negatives:
        return 0.5
    area, last_true, last_false = 0.0, 0, 0
    for _, num_true, num_false in curve.points:
        area += (num_false - last_false) * (num_true + last_true) / 2
        last_true, last_false = num_true, num_false
    return area / (curve.num_positives * curve.num_negatives)


def average_precision(scores: Sequence[float], is_positive: Sequence[bool]) -> float:
    """Compute the mean precision over the recall; 0 without positives.

    The sum over thresholds of the precision times the gain in recall, without interpolation.

    >>> round(average_precision([0.1, 0.4, 0.35, 0.8], [False, False, True, True]), 4)
    0.8333
    """
    curve = compute_curve(scores, is_positive)
    area, last_recall = 0.0, 0.0
    for precision, recall in zip(curve.precisions, curve.true_positive_rates):
        area += precision * (recall - last_recall)
        last_recall = recall
    return area
