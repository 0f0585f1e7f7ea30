"""Metrics of classification, regression, tagging and question answering, from 0 to 1.

``text_metrics`` chooses those that are reported for a dataset. Classes are integers. Entities are
counted like seqeval's default, answers like SQuAD's official script.
"""

import re
import string
from collections import Counter
from collections.abc import Hashable, Sequence
from math import sqrt
from typing import NamedTuple

from mnemic.text.bio import decode_bio_tags
from mnemic.text.chinese import HAN

Number = float | int
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_HAN = re.compile(f"([{HAN}])")
_PUNCTUATION = set(string.punctuation)


class PrecisionRecallF1(NamedTuple):
    """Precision, recall and their harmonic mean, F1."""

    precision: float
    recall: float
    f1: float


def accuracy(predictions: Sequence[Hashable], targets: Sequence[Hashable]) -> float:
    """Compute the fraction of predictions that equal their targets."""
    return sum(prediction == target for prediction, target in zip(predictions, targets)) / max(len(targets), 1)


def precision_recall_f1(num_correct: int, num_predicted: int, num_targets: int) -> PrecisionRecallF1:
    """Compute precision, recall and F1 from counts; 0 where a count is 0."""
    precision = num_correct / num_predicted if num_predicted else 0.0
    recall = num_correct / num_targets if num_targets else 0.0
    total = precision + recall
    return PrecisionRecallF1(precision, recall, 2 * precision * recall / total if total else 0.0)


def f1(predictions: Sequence[int], targets: Sequence[int], positive: int = 1) -> float:
    """Compute the F1 of one class."""
    num_correct = sum(prediction == target == positive for prediction, target in zip(predictions, targets))
    return precision_recall_f1(num_correct, list(predictions).count(positive), list(targets).count(positive)).f1


def macro_f1(predictions: Sequence[int], targets: Sequence[int]) -> float:
    """Compute the unweighted mean F1 of all classes among predictions and targets."""
    classes = sorted({*predictions, *targets})
    return sum(f1(predictions, targets, label) for label in classes) / max(len(classes), 1)


def matthews_correlation(predictions: Sequence[int], targets: Sequence[int]) -> float:
    """Compute Matthews' correlation of two or more classes (Gorodkin 2004); 0 if constant."""
    total, num_correct = (len(targets), sum(prediction == target for prediction, target in zip(predictions, targets)))
    prediction_counts, target_counts = Counter(predictions), Counter(targets)
    cross = sum(prediction_counts[label] * target_counts[label] for label in target_counts)
    variances = [total**2 - sum(count**2 for count in counts.values()) for counts in (prediction_counts, target_counts)]
    return (num_correct * total - cross) / sqrt(variances[0] * variances[1]) if all(variances) else 0.0


def balanced_accuracy(predictions: Sequence[bool], targets: Sequence[bool]) -> float:
    """Compute the mean of the accuracies on true and on false targets.

    If all targets are equal, it is the accuracy.
    """
    hits_by_label = [
        [prediction == target for prediction, target in zip(predictions, targets) if target == label]
        for label in (True, False)
    ]
    accuracies = [sum(hits) / len(hits) for hits in hits_by_label if hits]
    return sum(accuracies) / max(len(accuracies), 1)


def expected_calibration_error(probabilities: Sequence[float], targets: Sequence[bool], num_bins: int = 10) -> float:
    """Compute the expected calibration error over ``num_bins`` bins of equal width.

    Guo et al. 2017, equation 3, but both classes have the same total weight, however many examples
    they have.
    """
    label_counts = Counter(targets)
    weights = [1 / (len(label_counts) * label_counts[target]) for target in targets]
    gaps = [0.0] * num_bins
    for probability, target, weight in zip(probabilities, targets, weights):
        gaps[min(int(probability * num_bins), num_bins - 1)] += weight * (probability - target)
    return sum(map(abs, gaps))


def area_under_roc(scores: Sequence[float], targets: Sequence[bool]) -> float:
    """Compute the area under the ROC curve: how often a positive has a higher score.

    Of all pairs of a positive and a negative; equal scores count half. A class that is missing
    gives 0.5.

    >>> area_under_roc([0.9, 0.4, 0.4], [True, True, False])
    0.75
    """
    num_positive = sum(targets)
    num_pairs = num_positive * (len(targets) - num_positive)
    if not num_pairs:
        return 0.5
    ranks = sum(rank for rank, target in zip(rank_values(scores), targets) if target)
    return (ranks - num_positive * (num_positive - 1) / 2) / num_pairs


def pearson_correlation(predictions: Sequence[Number], targets: Sequence[Number]) -> float:
    """Compute Pearson's linear correlation; 0 if one side is constant."""
    centered = [[value - sum(values) / len(values) for value in values] for values in (predictions, targets) if values]
    if len(centered) < 2:
        return 0.0
    norm = sqrt(
        sum(deviation * deviation for deviation in centered[0])
        * sum(deviation * deviation for deviation in centered[1])
    )
    return sum(first * second for first, second in zip(*centered)) / norm if norm else 0.0


def spearman_correlation(predictions: Sequence[Number], targets: Sequence[Number]) -> float:
    """Compute Spearman's rank correlation; equal numbers share their mean rank."""
    return pearson_correlation(rank_values(predictions), rank_values(targets))


def rank_values(values: Sequence[Number]) -> list[float]:
    """Return the rank of each value, from 0; equal values share their mean rank."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            ranks[index] = (start + end - 1) / 2
        start = end
    return ranks


def normalize_answer(answer: str) -> list[str]:
    """Split an answer into words without case, punctuation and articles, like SQuAD's script.

    Chinese has no spaces between words: each Chinese character is a word.
    """
    plain = "".join(letter for letter in answer.lower() if letter not in _PUNCTUATION)
    return _HAN.sub(r" \1 ", _ARTICLES.sub(" ", plain)).split()


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """Return 1 if a prediction equals one of the answers, else 0, like SQuAD.

    Without answers an empty prediction is correct.
    """
    return float(any(normalize_answer(prediction) == normalize_answer(answer) for answer in answers or [""]))


def answer_f1(prediction: str, answers: Sequence[str]) -> float:
    """Compute the token F1 with the answer that fits best, like SQuAD."""
    return max(token_f1(normalize_answer(prediction), normalize_answer(answer)) for answer in answers or [""])


def token_f1(predicted: Sequence[str], target: Sequence[str]) -> float:
    """Compute the F1 of the words that two answers share."""
    if not predicted or not target:
        return float(predicted == target)
    return precision_recall_f1((Counter(predicted) & Counter(target)).total(), len(predicted), len(target)).f1


def entity_f1(predictions: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> PrecisionRecallF1:
    """Compute precision, recall and F1 of entities; kind and both ends must match."""
    entity_pairs = [
        (set(decode_bio_tags(predicted_tags)), set(decode_bio_tags(target_tags)))
        for predicted_tags, target_tags in zip(predictions, targets)
    ]
    num_correct = sum(len(predicted & expected) for predicted, expected in entity_pairs)
    num_predicted, num_expected = (sum(len(pair[side]) for pair in entity_pairs) for side in (0, 1))
    return precision_recall_f1(num_correct, num_predicted, num_expected)
