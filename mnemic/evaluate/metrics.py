"""How good answers are, as each task's own community counts it: shares from 0 to 1.

Classes are whole numbers. Entities are counted as seqeval does by default, answers in a text as
SQuAD's official script.
"""

import re
import string
from collections import Counter
from collections.abc import Hashable, Sequence
from math import sqrt
from typing import NamedTuple

from mnemic.text.bio import entities
from mnemic.text.chinese import HAN

Number = float | int
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_HAN = re.compile(f"([{HAN}])")
_PUNCTUATION = set(string.punctuation)


class Counted(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def accuracy(said: Sequence[Hashable], true: Sequence[Hashable]) -> float:
    """The share that is right."""
    return sum(a == b for a, b in zip(said, true)) / max(len(true), 1)


def counted(right: int, said: int, true: int) -> Counted:
    """From how many were right, said and true; 0 where nothing was said or nothing is true."""
    precision, recall = right / said if said else 0.0, right / true if true else 0.0
    both = precision + recall
    return Counted(precision, recall, 2 * precision * recall / both if both else 0.0)


def f1(said: Sequence[int], true: Sequence[int], positive: int = 1) -> float:
    """F1 of one class."""
    right = sum(a == b == positive for a, b in zip(said, true))
    return counted(right, list(said).count(positive), list(true).count(positive)).f1


def macro_f1(said: Sequence[int], true: Sequence[int]) -> float:
    """The unweighted mean of the F1 of all classes that are said or true."""
    classes = sorted({*said, *true})
    return sum(f1(said, true, own) for own in classes) / max(len(classes), 1)


def matthews(said: Sequence[int], true: Sequence[int]) -> float:
    """Matthews' correlation, for two classes or more (Gorodkin 2004); 0 where one is constant."""
    total, right = len(true), sum(a == b for a, b in zip(said, true))
    by_said, by_true = Counter(said), Counter(true)
    cross = sum(by_said[own] * by_true[own] for own in by_true)
    spread = [total**2 - sum(n**2 for n in counts.values()) for counts in (by_said, by_true)]
    return (right * total - cross) / sqrt(spread[0] * spread[1]) if all(spread) else 0.0


def balanced(said: Sequence[bool], true: Sequence[bool]) -> float:
    """The mean of the accuracies where it is true and where it is not; of one alone, that one."""
    parts = [[a == b for a, b in zip(said, true) if b == kind] for kind in (True, False)]
    shares = [sum(part) / len(part) for part in parts if part]
    return sum(shares) / max(len(shares), 1)


def calibration_error(chances: Sequence[float], true: Sequence[bool], bins: int = 10) -> float:
    """How far probabilities are from frequencies, on average over ``bins`` of equal width.

    Both classes count alike, however many examples they have (Guo et al. 2017, equation 3).
    """
    count = Counter(true)
    weights = [1 / (len(count) * count[own]) for own in true]
    total = [0.0] * bins
    for chance, own, weight in zip(chances, true, weights):
        total[min(int(chance * bins), bins - 1)] += weight * (chance - own)
    return sum(map(abs, total))


def pearson(said: Sequence[Number], true: Sequence[Number]) -> float:
    """The linear correlation; 0 where one side is constant."""
    centred = [[value - sum(own) / len(own) for value in own] for own in (said, true) if own]
    if len(centred) < 2:
        return 0.0
    size = sqrt(sum(a * a for a in centred[0]) * sum(b * b for b in centred[1]))
    return sum(a * b for a, b in zip(*centred)) / size if size else 0.0


def spearman(said: Sequence[Number], true: Sequence[Number]) -> float:
    """The correlation of ranks; equal numbers share their mean rank."""
    return pearson(ranks(said), ranks(true))


def ranks(values: Sequence[Number]) -> list[float]:
    order = sorted(range(len(values)), key=lambda place: values[place])
    found, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            found[place] = (start + end - 1) / 2
        start = end
    return found


def normalised(answer: str) -> list[str]:
    """An answer's words without case, punctuation and articles, as SQuAD's script has them.

    Chinese has no blanks between words: each of its characters is one.
    """
    plain = "".join(letter for letter in answer.lower() if letter not in _PUNCTUATION)
    return _HAN.sub(r" \1 ", _ARTICLES.sub(" ", plain)).split()


def exact(said: str, answers: Sequence[str]) -> float:
    """1 if the answer is one of the right ones; without a right one, if nothing is said."""
    return float(any(normalised(said) == normalised(own) for own in answers or [""]))


def overlap_f1(said: str, answers: Sequence[str]) -> float:
    """F1 of the words that are shared with the right answer that fits best."""
    return max(words_f1(normalised(said), normalised(own)) for own in answers or [""])


def words_f1(said: Sequence[str], true: Sequence[str]) -> float:
    if not said or not true:
        return float(said == true)
    return counted((Counter(said) & Counter(true)).total(), len(said), len(true)).f1


def entity_f1(said: Sequence[Sequence[str]], true: Sequence[Sequence[str]]) -> Counted:
    """Of all entities of all texts; one counts if kind and both ends are right."""
    both = [(set(entities(a)), set(entities(b))) for a, b in zip(said, true)]
    right = sum(len(a & b) for a, b in both)
    return counted(right, sum(len(a) for a, _ in both), sum(len(b) for _, b in both))
