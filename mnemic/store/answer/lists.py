"""Find the items of an answer, if a question asks for several things.

An item stands beside what a reader has quoted: in the same coordination ("Anna, Ben and Chloe"), as
a further item of a list with bullets, numbers or short lines, as the value of the same key, or as
the same column of the rows that have as many words of the question. If there is nothing of that
kind, the sentences of the passage are read alone. Each item is a span of a passage of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mnemic.store.answer.asks_several import asks_several
from mnemic.store.answer.confidence import Reader
from mnemic.store.answer.coordination import split_coordination
from mnemic.store.answer.fields import NamedValue, list_values, list_words
from mnemic.store.answer.focus import stem_words
from mnemic.store.answer.rank import SlotSpan, normalize_answer
from mnemic.store.contract import MemorySlot
from mnemic.text.documents import Passage, Sentence
from mnemic.text.sentences import Span, trim_span

MIN_COVERAGE = 0.6  # of the question's words by the heading of a list that a reader did not point at
MAX_LINE_WORDS = 12  # of an item of a list without marks
MAX_SENTENCES = 16  # that are read alone
MIN_PROBABILITY = 0.3  # of a span that is an item, by a reader that reads its sentence alone
LIST_PROBABILITY = 0.9  # that a list is meant whose heading has all words of the question
_MARK = re.compile(
    r"(?:>[ \t]?)*[ \t]*(?:(?P<bullet>[-*+–—•◦▪‣·☐☑✓✗])|(?P<number>\(?(?:\d{1,3}|[a-zA-Z])[.)、]))\s+(?=\S)"
)
_TAIL = " \t\n,;."


class ListBlock(NamedTuple):
    """The items of a list, with the line above them."""

    slot: MemorySlot
    lead: str
    items: tuple[Span, ...]

    def covers(self, span: SlotSpan) -> bool:
        """Check whether a span is within the list."""
        return span.slot.id == self.slot.id and self.items[0].start - 4 <= span.start <= self.items[-1].end


def find_items(
    question: str, answers: Sequence[SlotSpan], slots: Sequence[MemorySlot], names: Mapping[int, str], reader: Reader | None
) -> list[SlotSpan]:
    """Find the items that a question asks for; none if it asks for one thing, or has one answer.

    ``names`` has the names of the slots' documents. The score of items is the confidence that they
    are meant: that of the best answer, or higher if a heading says so.
    """
    if not answers or not asks_several(question):
        return []
    best = answers[0]
    for items in (
        list_block_items(question, best, slots, names),
        list_value_items(question, best),
        list_coordinated_items(best),
    ):
        if len(items) > 1:
            return items
    items = list_scattered_items(question, best, reader) if reader is not None else []
    return items if len(items) > 1 else []


def list_block_items(
    question: str, best: SlotSpan, slots: Sequence[MemorySlot], names: Mapping[int, str]
) -> list[SlotSpan]:
    """List the items of the list that has the answer, or whose heading has the question's words."""
    stems = stem_words(question)
    blocks = [block for slot in slots for block in find_blocks(slot)]
    rows = [(len(stems & stem_words(block.lead)) / max(len(stems), 1), block) for block in blocks]
    rows += [(coverage, block) for coverage, block in rows if block.covers(best)]
    around = next(((coverage, block) for coverage, block in rows if block.covers(best)), None)
    coverage, block = max(rows, key=lambda row: row[0], default=(0.0, None))
    current = len(stems & stem_words(find_sentence_text(best))) / max(len(stems), 1)
    if around and around[0] >= coverage:
        coverage, block = around
    elif coverage < MIN_COVERAGE or coverage <= current:
        coverage, block = around or (0.0, None)
    if block is None:
        return []
    score = max(best.score, LIST_PROBABILITY * coverage**3)
    return [SlotSpan(block.slot, *item, score) for item in block.items]


def find_sentence_text(span: SlotSpan) -> str:
    """Return the sentence that has a span."""
    sentence = find_sentence(span.slot.passage, span.start)
    return span.slot.passage.text[sentence.start : sentence.end]


def find_sentence(passage: Passage, position: int) -> Sentence:
    """Return the sentence of a passage that has a position."""
    return next(sentence for sentence in passage.sentences if sentence.end > position)


def find_blocks(slot: MemorySlot) -> Iterator[ListBlock]:
    """Yield the lists of a passage: units with marks of a kind, or short lines one below another."""
    text = slot.passage.text
    lead, items, kind = "", list[Span](), ""
    last_end = 0
    for sentence in (*slot.passage.sentences, None):
        content = text[sentence.start : sentence.end] if sentence else ""
        new_kind = find_kind(content) if sentence else ""
        gap = text[last_end : sentence.start].count("\n") if sentence else 2
        if items and (new_kind != kind or (kind == "line" and gap > 1)):
            if len(items) > 1:
                yield ListBlock(slot, lead, tuple(items))
            lead = text[items[-1].start : items[-1].end] if len(items) == 1 else ""
            items = []
        if sentence is None:
            return
        if new_kind and (new_kind != "line" or gap):
            kind = new_kind
            items.append(strip_mark(text, Span(sentence.start, sentence.end)))
        else:
            lead = content
        last_end = sentence.end


def find_kind(content: str) -> str:
    """Return what kind of item a unit is; empty: none, as a sentence or a line that ends with a colon."""
    if mark := _MARK.match(content):
        return mark["bullet"] or "number"
    is_line = content[-1] not in ".!?:。！？：" and len(content.split()) <= MAX_LINE_WORDS and ": " not in content
    return "line" if is_line else ""


def strip_mark(text: str, item: Span) -> Span:
    """Cut the bullet or the number of an item, and the comma behind it."""
    mark = _MARK.match(text, item.start, item.end)
    end = item.end
    while end > item.start and text[end - 1] in _TAIL:
        end -= 1
    return trim_span(text, Span(mark.end() if mark else item.start, end))


def list_value_items(question: str, best: SlotSpan) -> list[SlotSpan]:
    """List the values of the answer's key, in the rows that have most words of the question."""
    text, values = best.slot.passage.text, list(list_values(best.slot))
    question_words = list_words(question)
    asked = [value for value in values if value.key_words & question_words]
    around = [value for value in values if value.span.start < best.end and best.start < value.span.end]
    in_row = [value for value in asked if any(value.unit == other.unit for other in around)]
    current: NamedValue | None = next(iter(in_row or around or asked[:1]), None)
    if current is None:
        return []
    column = [value for value in values if value.key_words == current.key_words]
    overlaps = [len(question_words & list_words(text[value.unit.start : value.unit.end])) for value in column]
    spans = [value.span for value, overlap in zip(column, overlaps) if overlap == max(overlaps)]
    if len(spans) == 1:  # a single line "Members: Anna, Ben"
        spans = split_coordination(text, spans[0], spans[0])
    return [SlotSpan(best.slot, *span, best.score) for span in spans]


def list_coordinated_items(best: SlotSpan) -> list[SlotSpan]:
    """List the items of the coordination that has the answer."""
    passage = best.slot.passage
    sentence = find_sentence(passage, best.start)
    items = split_coordination(passage.text, Span(best.start, best.end), Span(sentence.start, sentence.end))
    return [SlotSpan(best.slot, *item, best.score) for item in items]


def list_scattered_items(question: str, best: SlotSpan, reader: Reader) -> list[SlotSpan]:
    """List what a reader finds in the sentences of the passage, read alone."""
    passage, stems = best.slot.passage, stem_words(question)
    minimum = len(stems & stem_words(find_sentence_text(best)))
    sentences = [
        sentence
        for sentence in passage.sentences
        if len(stems & stem_words(passage.text[sentence.start : sentence.end])) >= minimum
    ][:MAX_SENTENCES]
    if len(sentences) < 2:
        return []
    items: dict[str, SlotSpan] = {}
    spans = reader.answer(question, [passage.text[sentence.start : sentence.end] for sentence in sentences])
    for sentence, span in zip(sentences, spans):
        item = SlotSpan(best.slot, sentence.start + span.start, sentence.start + span.end, best.score)
        if sentence.start <= best.start < sentence.end:
            item = best
        elif span.probability * (1 - span.no_answer) < MIN_PROBABILITY:
            continue
        for piece in list_coordinated_items(item):
            items.setdefault(normalize_answer(piece.text), piece)
    return list(items.values())
