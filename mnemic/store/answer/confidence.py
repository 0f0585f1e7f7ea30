"""The confidence of answers: the probability that a reader's span is right.

Each passage that was read has a candidate span. Which one is right, or none, is one choice: p(i) =
exp(u_i) / (1 + Σ exp(u_j)), where u_i is a weighted sum of the fraction of the question's words,
names and numbers in the passage, its score below the best passage, the reader's probabilities, and
the cosine of question and passage. The weights were fitted on questions half of which the memory
could not answer, so that of the answers with a confidence of 0.8 four in five are right: their F1
with a right answer is at least 0.5. A passage and lines of it that are read alone are candidates
alike.
"""

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple, Protocol

TYPICAL_COSINE = 0.56  # of right answers, by the shipped embedder; others have other cosines
MAX_LOG = 15.0  # bound of logs and log-odds: a reader's probability may be exactly 0 or 1


class AnswerSpan(NamedTuple):
    """A span of a passage that answers a question, with the reader's probabilities."""

    start: int
    end: int
    probability: float  # of this span
    no_answer: float  # probability that the passage has no answer
    # How well the passage answers, as log-odds or a logit of a head; None: by ``no_answer``.
    relevance: float | None = None

    @property
    def log_odds(self) -> float:
        """The log-odds that the passage has an answer, within ± ``MAX_LOG``."""
        return clip_log(safe_log(1 - self.no_answer) - safe_log(self.no_answer))

    @property
    def passage_relevance(self) -> float:
        """How well the passage answers, by ``relevance`` or else by ``log_odds``."""
        return self.log_odds if self.relevance is None else self.relevance


class Reader(Protocol):
    """Protocol of a reader (R of the frame): a question and passages → spans."""

    def answer(self, question: str, passages: Sequence[str]) -> list[AnswerSpan]:
        """Return the best span of each passage."""


class SpanFeatures(NamedTuple):
    """The features of a candidate span; none of them grows with the memory."""

    word_overlap: float  # fraction of the question's words in the passage
    name_overlap: float  # the same for its names and numbers
    score_gap: float  # fused score of the passage minus that of the best one
    span_log_prob: float  # log probability of the span
    answer_log_odds: float  # log-odds that the passage has an answer
    question_cosine: float = TYPICAL_COSINE  # of the question and the passage's nearest sentence


class ConfidenceModel(NamedTuple):
    """The weights of a softmax over candidate spans and "no answer"."""

    word_overlap: float
    name_overlap: float
    score_gap: float
    span_log_prob: float
    answer_log_odds: float
    question_cosine: float
    bias: float

    def predict_probabilities(self, features: Sequence[SpanFeatures]) -> list[float]:
        """Return the probability of each span; the rest up to 1 is "no answer"."""
        sums = [sum(weight * value for weight, value in zip(self, row)) for row in features]
        exponentials = [exp(min(self.bias + total, 2 * MAX_LOG)) for total in sums]
        return [value / (1 + sum(exponentials)) for value in exponentials]


# Fitted to held-out questions of seven domains, each asked of a memory with the text that answers
# it and of one without (benchmarks/domain_confidence.py --fix word_overlap=2 name_overlap=1
# score_gap=0.6 span_log_prob=0.16: these were set by hand).
FITTED = ConfidenceModel(
    word_overlap=2.0,
    name_overlap=1.0,
    score_gap=0.6,
    span_log_prob=0.16,
    answer_log_odds=0.766,
    question_cosine=4.26,
    bias=-4.39,
)
# Answers of lower confidence are withheld: about 1 in 10 questions without an answer gets one.
MIN_CONFIDENCE = 0.3


def compute_features(
    scores: Sequence[float],
    overlaps: Sequence[tuple[float, float]],
    spans: Sequence[AnswerSpan],
    cosines: Sequence[float],
) -> list[SpanFeatures]:
    """Compute the features of spans from scores, overlaps of words and names, a reader, cosines."""
    top, features = max(scores, default=0.0), []
    for score, shares, span, cosine in zip(scores, overlaps, spans, cosines):
        log_prob = clip_log(safe_log(span.probability))
        features.append(SpanFeatures(*shares, score - top, log_prob, span.log_odds, cosine))
    return features


def safe_log(probability: float) -> float:
    """Return log(probability), or the lower bound for 0."""
    return log(probability) if probability > 0 else -MAX_LOG


def clip_log(value: float) -> float:
    """Clip a log or log-odds to ± ``MAX_LOG``."""
    return max(-MAX_LOG, min(MAX_LOG, value))
