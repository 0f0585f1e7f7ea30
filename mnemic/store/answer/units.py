"""Fit answers to the units of a passage: a span ends with its line."""

import re
from itertools import pairwise

from mnemic.store.answer.confidence import AnswerSpan
from mnemic.store.answer.rank import compute_word_overlap
from mnemic.text.documents import Passage, Sentence
from mnemic.text.sentences import Span, trim_span

_SIGN = re.compile(r"(?<!\S)[+\-−±~≈€$£¥#§]+\Z")  # before a span, and no blank between
MIN_LINES = 2  # of a passage; a single one is read anyway
MAX_LINES = 2  # that are read alone
_FIELD = re.compile(r"\w:\s+\S")  # a name, and a value
_FIELD_LINE = re.compile(r"(?m)^[^\n:;]{1,80}:[ \t]+\S")
_LINE = re.compile(r"\S[^\n]*")
MAX_WORD_LENGTH = 100  # characters
_WHOLE_WORD = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # an e-mail address
    r"|(?:~|\w+:/)?(?:/[\w.*~+-]*\w)+"  # a path, a web address
    r"|\d+(?:[.,:]\d+)+"
    r"|\w+(?:\.\w+)*"  # a word, a name with dots
)
_UNIT_OF_NUMBER = re.compile(r"(?<=\d)[%‰°€$£¥]+")


def fit_span(span: AnswerSpan, passage: Passage) -> AnswerSpan:
    """Cut a span where it leaves its line; complete words, addresses and numbers."""
    if span.end <= span.start:
        return span
    inner = complete_words(cut_to_unit(Span(span.start, span.end), passage), passage.text)
    sign = _SIGN.search(passage.text, 0, inner.start) if passage.text[inner.start].isdigit() else None
    unit = _UNIT_OF_NUMBER.match(passage.text, inner.end)
    start = sign.start() if sign else inner.start
    return span._replace(start=start, end=unit.end() if unit else inner.end)


def complete_words(span: Span, text: str) -> Span:
    """Move the ends of a span out of words, numbers, paths and addresses."""
    first, last = max(span.start - MAX_WORD_LENGTH, 0), span.end + MAX_WORD_LENGTH
    start, end = span
    for word in _WHOLE_WORD.finditer(text, first, last):
        start = word.start() if word.start() < span.start < word.end() else start
        end = word.end() if word.start() < span.end < word.end() else end
    return Span(start, end)


def cut_to_unit(span: Span, passage: Passage) -> Span:
    """Cut a span at the first line break between units."""
    for sentence, after in pairwise(passage.sentences):
        has_break = "\n" in passage.text[sentence.end : after.start]
        if has_break and span.start < sentence.end < span.end:
            return trim_span(passage.text, Span(span.start, sentence.end))
    return trim_span(passage.text, span)


def find_best_lines(passage: Passage, question: str) -> list[Span]:
    """Find the lines of lists that have most words of a question.

    Read alone, they are not mistaken for what stands around them. Where many lines fit alike,
    none does.
    """
    lines = [line for sentence in passage.sentences for line in list_lines(passage.text, sentence)]
    if len(lines) < MIN_LINES:
        return []
    overlaps = compute_word_overlap(question, [passage.text[line.start : line.end] for line in lines])
    best = max(overlaps)
    best_lines = [line for line, overlap in zip(lines, overlaps) if overlap == best > 0]
    return best_lines if len(best_lines) <= MAX_LINES else []


def list_lines(text: str, sentence: Sentence) -> list[Span]:
    """List the lines of a unit that is no sentence, as of a card."""
    content = text[sentence.start : sentence.end]
    if len(_FIELD_LINE.findall(content)) > 1:
        return [Span(sentence.start + line.start(), sentence.start + line.end()) for line in _LINE.finditer(content)]
    is_line = _FIELD.search(content) or content[-1] not in ".!?"
    return [Span(sentence.start, sentence.end)] if is_line else []
