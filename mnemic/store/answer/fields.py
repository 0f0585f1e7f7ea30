"""Answer from named values: "Key: value" lines, fields of rows, constants in code.

Such lines are no sentences, and a reader is unsure of them. If a question has the words of a key,
and its other words are in the rest of the row, the value is an answer: "In which box are the ice
skates?" is answered by "box: 3; place: cellar; content: ice skates". Words that only the rest of
the passage or the document's name has count less, and those that are nowhere most against it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from mnemic.store.answer.keywords import is_keywords
from mnemic.store.answer.rank import MAX_ANSWERS, SlotSpan, normalize_answer
from mnemic.store.contract import MemorySlot
from mnemic.store.retrieve.query_words import extract_words
from mnemic.text.sentences import Span, trim_span

MAX_KEY_WORDS = 6  # a longer key is a sentence with a colon
MAX_VALUE_WORDS = 12  # a longer value is a sentence, which is for a reader
KEY_PROBABILITY = 0.9  # that a value is right if its key and its row have all words of the question
CONTEXT_WEIGHT = 0.8  # of a word that is in the passage or in the document's name only
COVERAGE_POWER = 3  # words of the question that are nowhere count much
SURE_PROBABILITY = 0.5  # from here on, other answers of the same passage are less probable

# A key may answer these; of why and of yes-or-no questions it says nothing.
_ASKS_VALUE = re.compile(
    r"(?i)\s*(?:(?:\w+ ){0,2}(?:what|which|whose|whom)|who|when"
    r"|how (?:much|many|long|high|tall|old|wide|deep|heavy|large|big|fast|far|often)|name|give|tell)\b"
)
_HEAD = re.compile(
    r"(?:\A|;\s+|\n[ \t]*)[^\w\n]*(?P<key>\w[^\n:=;]{0,80}?)[ \t*\"]*"
    r"(?:(?:: ?[\w<>\[\], ]{1,30})? ?=|(?P<colon>:))[ \t]+[*\"'(\[]*(?=[\w+€$£-])"
)
_AMOUNT = re.compile(r"(?i)\bhow (?:much|many|long|often)\b")
_DECLARATION = re.compile(r"(?:[a-z]\w*\s+)+(?=\w+\Z)")  # such as "public static final"
_CODE_COMMENT = re.compile(r"\s+(?:#|//|--|/\*).*", re.DOTALL)
_IDENTIFIER_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_MEASURES = frozenset(
    re.findall(r"\w+", "mm cm m km m2 m3 g kg t ml l s h min kwh kw v ah eur usd gbp euro dollar percent")
)
_DATE = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|\b(?:19|20)\d\d\b"
    r"|(?i:\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\b)"
)
_NUMBER = re.compile(r"\d")
# Words for a kind of value: a value of this kind has the word, as it were.
_NUMBER_WORDS = ("number", "amount", "value", "sum", "price", "cost", "fee", "reading", "code")
_KINDS = dict.fromkeys(("date", "day", "year", "month"), _DATE) | dict.fromkeys(_NUMBER_WORDS, _NUMBER)
# How a question asks for what a key names.
_NAMES = {
    "wide": "width",
    "tall": "height",
    "high": "height",
    "deep": "depth",
    "heavy": "weight",
    "old": "age",
    "far": "distance",
    "fast": "speed",
    "telephone": "phone",
    "mobile": "cell",
    "born": "birthday",
}


class NamedValue(NamedTuple):
    """A value with the words of its key, in the text of its unit."""

    key_words: frozenset[str]
    span: Span  # of the value, in the passage
    unit: Span


def find_values(question: str, slots: Iterable[MemorySlot], names: Mapping[int, str]) -> list[SlotSpan]:
    """Find values whose keys have words of a question, the most probable first.

    ``names`` has the names of the slots' documents.
    """
    if not is_keywords(question) and not _ASKS_VALUE.match(question):
        return []
    question_words = list_words(_AMOUNT.sub("", question))
    values: list[SlotSpan] = []
    for slot in slots:
        text = slot.passage.text
        slot_values = list(list_values(slot))
        for value in slot_values:
            if question_words & value.key_words:
                rows = [rival.unit for rival in slot_values if rival.key_words == value.key_words]
                context = list_words(f"{names.get(slot.document, '')}\n{cut_spans(text, rows)}")
                probability = rate_value(question_words, question_words & context, value, text)
                values += [SlotSpan(slot, *value.span, probability)] if probability else []
    return sorted(values, key=lambda value: -value.score)


def cut_spans(text: str, spans: Iterable[Span]) -> str:
    """Return a text without the given spans."""
    parts, position = [], 0
    for span in sorted(spans):
        parts.append(text[position : max(span.start, position)])
        position = max(position, span.end)
    return "\n".join([*parts, text[position:]])


def list_words(text: str) -> frozenset[str]:
    """Return the words of a text without plural endings, as keys name them."""
    words = map(strip_plural, extract_words(_IDENTIFIER_PARTS.sub(" ", text)))
    return frozenset(_NAMES.get(word, word) for word in words)


def strip_plural(word: str) -> str:
    """Return a word without the ending of its plural."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def get_base_name(name: str) -> str:
    """Return the file's name, or those of a file and of the document inside it."""
    return " ".join(PurePath(path).name for path in name.split("!/"))


def list_values(slot: MemorySlot) -> Iterator[NamedValue]:
    """Yield the named values of units; a comment belongs to the constant below."""
    text, comment_start = slot.passage.text, -1
    for sentence in slot.passage.sentences:
        heads = list(_HEAD.finditer(text[sentence.start : sentence.end]))
        unit_start = comment_start if comment_start >= 0 else sentence.start
        for head, after in zip(heads, [*heads[1:], None]):
            end = sentence.start + after.start() if after else sentence.end
            value = text[sentence.start + head.end() : end]
            is_code = head["colon"] is None
            value = (_CODE_COMMENT.sub("", value) if is_code else value).rstrip(" \t\r\n;,*\"')]")
            key = _DECLARATION.sub("", head["key"]) if is_code else head["key"]
            key_words = list_words(key) - _MEASURES or list_words(key)
            if 0 < len(value.split()) <= MAX_VALUE_WORDS and 0 < len(key_words) <= MAX_KEY_WORDS:
                start = sentence.start + head.end()
                line_end = text.find("\n", start)
                unit = Span(unit_start, line_end if is_code and line_end >= 0 else sentence.end)
                yield NamedValue(key_words, trim_span(text, Span(start, start + len(value))), unit)
            if is_code:
                unit_start = sentence.start + (after.start() if after else 0)
        comment_start = -1 if heads else sentence.start


def rate_value(question_words: frozenset[str], context: frozenset[str], value: NamedValue, text: str) -> float:
    """Return the probability that a value answers a question; 0 if it cannot.

    ``context`` are the words of the question that the document's name has, or the passage outside
    of the rows that have the same key.
    """
    hits = question_words & value.key_words
    content = text[value.span.start : value.span.end]
    if not hits or list_words(content) <= question_words:
        return 0.0
    in_unit = question_words & list_words(text[value.unit.start : value.unit.end])
    in_unit |= {word for word in question_words if word in _KINDS and _KINDS[word].search(content)}
    covered = len(hits | in_unit) + CONTEXT_WEIGHT * len(context - in_unit - hits)
    precision = len(hits) / len(value.key_words)
    return float(KEY_PROBABILITY * precision * (covered / len(question_words)) ** COVERAGE_POWER)


def merge_values(answers: Sequence[SlotSpan], values: Sequence[SlotSpan]) -> list[SlotSpan]:
    """Merge values of keys into a reader's answers; of equal ones the surer stays.

    Values that are equally probable share their probability: which of them was meant is not known.
    A sure value leaves little to other answers from its passage.
    """
    best = values[0].score if values else 0.0
    num_equal = len({normalize_answer(value.text) for value in values if value.score > 0.99 * best})
    rivals = [value._replace(score=value.score / num_equal) for value in values]
    sure_slot = values[0].slot.id if values and rivals[0].score >= SURE_PROBABILITY else None
    merged: dict[str, SlotSpan] = {}
    for answer in (*rivals, *answers):
        text = normalize_answer(answer.text)
        if answer.slot.id == sure_slot and text != normalize_answer(values[0].text):
            answer = answer._replace(score=answer.score * (1 - rivals[0].score))
        if text not in merged or merged[text].score < answer.score:
            merged[text] = answer
    return sorted(merged.values(), key=lambda answer: -answer.score)[:MAX_ANSWERS]
