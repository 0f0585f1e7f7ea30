"""How sure an answer is: what was read, what a reader says of it, and that there may be none.

Each passage that was read offers a span. Which of them is right, or none, is one choice among all:
p(i) = exp(u_i) / (1 + Σ exp(u_j)), where u_i weighs how many of the question's words the passage
has, how far it is behind the best passage, and what the reader says. The weights were fitted on
questions half of which the memory could not answer, so that of answers of a confidence of 0.8 four
in five are right: they share at least half of their words with a right one (F1).
"""

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple, Protocol

FAR = 15.0  # logs and log-odds end here: a reader may be as sure as floats are


class Span(NamedTuple):
    """A stretch of a passage that answers, and how sure the reader is."""

    start: int
    end: int
    score: float  # the probability of this span
    none: float  # the probability that the passage has no answer


class Reader(Protocol):
    """R of the frame: a question and passages → the best span of each."""

    def answer(self, question: str, passages: Sequence[str]) -> list[Span]: ...


class Features(NamedTuple):
    """What is known of a passage's span. None of it grows with the size of the memory."""

    words: float  # the share of the question's words that the passage has
    behind: float  # how far its mixed score is below that of the best passage
    span: float  # log of the span's probability
    margin: float  # log-odds that the passage has an answer


class Confidence(NamedTuple):
    """The weight of each feature, and of answering at all."""

    words: float
    behind: float
    span: float
    margin: float
    answer: float

    def of(self, found: Sequence[Features]) -> list[float]:
        """The probability of each span to be the answer; what is left is that of none."""
        sums = [sum(weight * own for weight, own in zip(self, one)) for one in found]
        grown = [exp(min(self.answer + own, 2 * FAR)) for own in sums]
        return [own / (1 + sum(grown)) for own in grown]


# By python benchmarks/memory_confidence.py SQUAD --memory squad.db --questions 600
USUAL = Confidence(words=1.049, behind=0.642, span=0.403, margin=0.790, answer=-2.140)
LEAST = 0.26  # from this confidence on, an answer is given: to 1 in 10 of what has none, at most


def features(
    scores: Sequence[float], words: Sequence[float], spans: Sequence[Span]
) -> list[Features]:
    """Of passages with these mixed scores and shares of words, and what a reader found in them."""
    top = max(scores, default=0.0)
    return [
        Features(own, score - top, near(log_of(span.score)), near(log_odds(1 - span.none)))
        for own, score, span in zip(words, scores, spans)
    ]


def log_of(chance: float) -> float:
    return log(chance) if chance > 0 else -FAR


def log_odds(chance: float) -> float:
    return log_of(chance) - log_of(1 - chance)


def near(value: float) -> float:
    return max(-FAR, min(FAR, value))
