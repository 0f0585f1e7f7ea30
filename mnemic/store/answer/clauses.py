"""Choose a clause as the answer by words alone, for languages no reader knows.

Each clause of the best passages is a candidate, without the words of the question at its ends; of a
clause with a date or a number that the question asks for, only these. Which one is right, or none,
is one choice, as in ``confidence``: p(i) = exp(u_i) / (1 + Σ exp(u_j)). The confidence of an answer
is the sum over the clauses of its sentence, the probability that the sentence has the answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import NamedTuple

from mnemic.store.answer.rank import MAX_ANSWERS, SlotSpan
from mnemic.store.retrieve.query_words import extract_words, find_words
from mnemic.text.sentences import Span, trim_span

MIN_LENGTH = 2  # characters of an answer that is no date or number
_BREAK = re.compile(r"(?:[，。；：！？;!?（）()\n]|(?<!\d)[,:]|[,:](?!\d))+")
_OPENING, _CLOSING = "《「『“‘〈", "》」』”’〉%％"
# Words at the ends of a clause that are no part of an answer.
PARTICLES = frozenset("的了是在于由为以被有和与即则也都就而因其该并从到至叫做称这那它他她")
_DIGITS = "[0-9０-９〇零一二两三四五六七八九十百千万亿]"
_DATE = re.compile(
    rf"(?:公元前?)?(?:{_DIGITS}{{2,4}}年(?:{_DIGITS}{{1,3}}月(?:{_DIGITS}{{1,3}}[日号])?)?"
    rf"|{_DIGITS}{{1,3}}月(?:{_DIGITS}{{1,3}}[日号])?|{_DIGITS}+世纪(?:{_DIGITS}+年代)?|{_DIGITS}+年代)"
)
_NUMBER = re.compile(rf"{_DIGITS}(?:{_DIGITS}|[,.．/%％:：-])*")
# What a question asks for, and how such an answer looks.
ANSWER_TYPES = (
    (re.compile("什么时[候间]|何时|哪一?[年月天日]|哪个?(?:月|时[候期])|几[年月日]"), _DATE),
    (re.compile("多少|几[^乎]|多[大高长远久重深宽]"), _NUMBER),
)


class ClauseFeatures(NamedTuple):
    """The features of a clause; overlaps are shares of the question's words, by length."""

    passage_overlap: float
    sentence_overlap: float
    clause_overlap: float
    score_gap: float  # score of the passage minus that of the best one
    has_type: float  # 1 if it has a date or number that the question asks for


class ClauseModel(NamedTuple):
    """The weights of a softmax over clauses and "no answer"."""

    passage_overlap: float
    sentence_overlap: float
    clause_overlap: float
    score_gap: float
    has_type: float
    bias: float

    def predict_probabilities(self, features: Sequence[ClauseFeatures]) -> list[float]:
        """Return the probability of each clause; the rest up to 1 is "no answer"."""
        sums = [self.bias + sum(weight * value for weight, value in zip(self, row)) for row in features]
        return [exp(value) / (1 + sum(map(exp, sums))) for value in sums]


# By python benchmarks/fit_clauses.py ZH
FITTED_CLAUSES = ClauseModel(
    passage_overlap=5.2, sentence_overlap=4.77, clause_overlap=2.01, score_gap=0.16, has_type=1.17, bias=-8.84
)


class Clause(NamedTuple):
    """A candidate answer: a clause, or a part of it, with its sentence."""

    span: Span  # in the passage
    sentence: SlotSpan
    features: ClauseFeatures


def rank_clauses(question: str, sentences: Sequence[SlotSpan], scores: Mapping[int, float]) -> list[SlotSpan]:
    """Return the best clause of each sentence with its confidence, the best first.

    ``scores`` are those of the slots.
    """
    clauses = list(list_clauses(question, sentences, scores))
    probabilities = FITTED_CLAUSES.predict_probabilities([clause.features for clause in clauses])
    totals: dict[SlotSpan, float] = {}
    best: dict[SlotSpan, tuple[float, Span]] = {}
    for clause, probability in zip(clauses, probabilities):
        totals[clause.sentence] = totals.get(clause.sentence, 0.0) + probability
        best[clause.sentence] = max(best.get(clause.sentence, (0.0, clause.span)), (probability, clause.span))
    order = sorted(best, key=lambda sentence: -best[sentence][0])[:MAX_ANSWERS]
    return [SlotSpan(sentence.slot, *best[sentence][1], totals[sentence]) for sentence in order]


def list_clauses(question: str, sentences: Sequence[SlotSpan], scores: Mapping[int, float]) -> Iterator[Clause]:
    """Yield the candidates of sentences, each with its features."""
    words = extract_words(question)
    question_words = {question[span.start : span.end].lower() for span in find_words(question)} | set(words)
    pattern = next((pattern for trigger, pattern in ANSWER_TYPES if trigger.search(question)), None)
    top = max((scores[sentence.slot.id] for sentence in sentences), default=0.0)
    for sentence in sentences:
        text = sentence.slot.passage.text
        for clause in split_clauses(text, Span(sentence.start, sentence.end)):
            typed = find_longest(pattern, text, clause) if pattern else None
            span = typed or strip_question(text, clause, question_words)
            if typed or span.end - span.start >= MIN_LENGTH:
                features = ClauseFeatures(
                    compute_overlap(words, text),
                    compute_overlap(words, sentence.text),
                    compute_overlap(words, text[clause.start : clause.end]),
                    scores[sentence.slot.id] - top,
                    float(typed is not None),
                )
                yield Clause(span, sentence, features)


def compute_overlap(words: Sequence[str], text: str) -> float:
    """Return the share of words, by their length, that a text contains."""
    lower = text.lower()
    return sum(len(word) for word in words if word in lower) / max(sum(map(len, words)), 1)


def split_clauses(text: str, span: Span) -> Iterator[Span]:
    """Yield the clauses of a sentence: what stands between commas, stops and brackets."""
    start = span.start
    for match in _BREAK.finditer(text, span.start, span.end):
        if match.start() > start:
            yield trim_span(text, Span(start, match.start()))
        start = match.end()
    if span.end > start:
        yield trim_span(text, Span(start, span.end))


def find_longest(pattern: re.Pattern[str], text: str, clause: Span) -> Span | None:
    """Find the longest match in a clause; a number takes its unit, the next word."""
    matches = [Span(*match.span()) for match in pattern.finditer(text, clause.start, clause.end)]
    if not matches:
        return None
    start, end = max(matches, key=lambda match: match.end - match.start)
    if pattern is _NUMBER:
        rest = text[end : clause.end]
        unit = next(find_words(rest), Span(1, 1))
        end += unit.end if unit.start == 0 else 0
    return Span(start, end)


def strip_question(text: str, clause: Span, question_words: set[str]) -> Span:
    """Remove words of the question and particles from both ends; quotes stay in pairs."""
    words = [
        Span(clause.start + word.start, clause.start + word.end) for word in find_words(text[clause.start : clause.end])
    ]
    is_new = [text[word.start : word.end].lower() not in question_words | PARTICLES for word in words]
    if True not in is_new:
        return Span(clause.start, clause.start)
    start = words[is_new.index(True)].start
    end = words[len(words) - 1 - is_new[::-1].index(True)].end
    while start > clause.start and text[start - 1] in _OPENING:
        start -= 1
    while end < clause.end and text[end] in _CLOSING:
        end += 1
    return Span(start, end)
