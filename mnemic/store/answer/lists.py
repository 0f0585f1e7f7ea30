"""Find the items of an answer, if a question asks for several things.

An item stands beside what a reader has quoted: in the same coordination ("Anna, Ben and Chloe"), as
a further item of a list with bullets, numbers or short lines, as the value of the same key, or as
the same column of the rows that have as many words of the question. If there is nothing of that
kind, the sentences of the passage are read alone. Each item is a span of a passage of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mnemic.store.answer.asks_several import NUMBERS, asks_several
from mnemic.store.answer.confidence import Reader
from mnemic.store.answer.coordination import split_coordination
from mnemic.store.answer.fields import CONTEXT_WEIGHT, COVERAGE_POWER, NamedValue, list_values, list_words
from mnemic.store.answer.focus import stem_words
from mnemic.store.answer.rank import MAX_ANSWERS, SlotSpan, compute_name_overlap, normalize_answer
from mnemic.store.contract import MemorySlot
from mnemic.text.documents import Passage, Sentence
from mnemic.text.sentences import Span, trim_span

MIN_COVERAGE = 0.6  # of the question's words by the heading of a list that a reader did not point at
MAX_LINE_WORDS = 12  # of an item of a list without marks
MAX_SENTENCES = 16  # that are read alone
MIN_PROBABILITY = 0.5  # that a sentence has an item, by a reader that reads it alone
COUNT_WORDS = frozenset(NUMBERS)  # of a question, which no list repeats
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


def find_items(
    question: str,
    answers: Sequence[SlotSpan],
    slots: Sequence[MemorySlot],
    names: Mapping[int, str],
    reader: Reader | None,
) -> list[SlotSpan]:
    """Find the items that a question asks for; none if there is only one.

    ``names`` has the names of the slots' documents. The score of items is the confidence that they
    are meant: that of the best answer, or higher if a heading says so.
    """
    if not slots or not asks_several(question):
        return []
    best, query = answers[0] if answers else SlotSpan(slots[0], 0, 0, 0.0), ListQuery(question, names)
    groups = [
        *(query.rate_block(best, block) for slot in slots for block in find_blocks(slot)),
        *(group for slot in slots for group in query.list_columns(best, slot)),
        query.rate_items(best, list_coordinated_items(best)),
    ]
    groups = [group for group in groups if len(group.items) > 1]
    group = max(groups, key=lambda group: group.score, default=None)
    if group is not None and (group.has_answer or group.score > best.score):
        return [item._replace(score=group.score if not group.has_answer else best.score) for item in group.items]
    is_about = compute_name_overlap(question, [query.get_context(best.slot)])[0] == 1
    items = list_scattered_items(question, best, reader) if reader is not None and is_about else []
    return items if len(items) > 1 else []


def promote_items(items: Sequence[SlotSpan], answers: list[SlotSpan]) -> list[SlotSpan]:
    """Put the first item before the answers, unless the best is an item."""
    has_answer = any(
        item.slot == answer.slot and covers(item, Span(*answer[1:3])) for answer in answers[:1] for item in items
    )
    return answers if has_answer or not items else [items[0], *answers][:MAX_ANSWERS]


class ItemGroup(NamedTuple):
    """Items that may be meant together, and the probability that they are."""

    items: Sequence[SlotSpan]
    score: float
    has_answer: bool  # whether a reader's answer is among them


class ListQuery:
    """A question for several things, which rates groups of items.

    A reader is believed as far as the passage or the document's name has the question's names. Of
    headings and keys, the share of the question's words counts, too.
    """

    def __init__(self, question: str, names: Mapping[int, str]) -> None:
        self.question, self.names = question, names
        self.words = list_words(question) - COUNT_WORDS
        self.stems = stem_words(question) - COUNT_WORDS

    def get_context(self, slot: MemorySlot) -> str:
        """Return what is known around a passage: the document's name, and the passage."""
        return f"{self.names.get(slot.document, '')}\n{slot.passage.text}"

    def rate_items(self, best: SlotSpan, items: Sequence[SlotSpan], coverage: float = 0.0) -> ItemGroup:
        """Rate items of a passage; ``coverage`` is the share of words that their heading has."""
        has_answer = any(item.slot.id == best.slot.id and covers(best, Span(item.start, item.end)) for item in items)
        slot = items[0].slot if items else best.slot
        (name_overlap,) = compute_name_overlap(self.question, [self.get_context(slot)])
        score = LIST_PROBABILITY * ((coverage + name_overlap) / 2) ** COVERAGE_POWER if coverage else 0.0
        return ItemGroup(items, max(score, best.score * name_overlap**2 if has_answer else 0.0), has_answer)

    def rate_block(self, best: SlotSpan, block: ListBlock) -> ItemGroup:
        """Rate a list by the words of the line above it."""
        coverage = len(self.stems & stem_words(block.lead)) / max(len(self.stems), 1)
        items = [SlotSpan(block.slot, *item, best.score) for item in block.items]
        return self.rate_items(best, items, coverage if coverage >= MIN_COVERAGE else 0.0)

    def list_columns(self, best: SlotSpan, slot: MemorySlot) -> Iterator[ItemGroup]:
        """Yield the values of each key that is asked for, or that the answer has."""
        values = list(list_values(slot))
        around = [value for value in values if slot.id == best.slot.id and covers(best, value.span)]
        asked_keys = {value.key_words for value in values if value.key_words & self.words}
        for key_words in dict.fromkeys(value.key_words for value in values):
            if key_words not in asked_keys and not any(value.key_words == key_words for value in around):
                continue
            spans, overlap = choose_rows(self.words, slot, [value for value in values if value.key_words == key_words])
            if all(list_words(slot.passage.text[slice(*span)]) & self.words for span in spans):
                continue  # the column by which rows are chosen
            context = self.words & list_words(self.get_context(slot))
            covered = len(overlap) + CONTEXT_WEIGHT * len(context - overlap)
            items = [SlotSpan(slot, *span, best.score) for span in spans]
            yield self.rate_items(best, items, covered / max(len(self.words), 1) if key_words in asked_keys else 0.0)


def find_sentence_text(span: SlotSpan) -> str:
    """Return the sentence that has a span."""
    sentence = find_sentence(span.slot.passage, span.start)
    return span.slot.passage.text[sentence.start : sentence.end]


def find_sentence(passage: Passage, position: int) -> Sentence:
    """Return the sentence of a passage that has a position."""
    return next(sentence for sentence in passage.sentences if sentence.end > position)


def find_blocks(slot: MemorySlot) -> Iterator[ListBlock]:
    """Yield the lists of a passage: units with marks, or short lines one below another."""
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
    """Return the kind of item that a unit is; empty: it is none."""
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


def choose_rows(
    question_words: frozenset[str], slot: MemorySlot, column: Sequence[NamedValue]
) -> tuple[list[Span], frozenset[str]]:
    """Choose the values in rows with most words of a question; return these words, too."""
    text = slot.passage.text
    overlaps = [question_words & (list_words(text[slice(*value.unit)]) | value.key_words) for value in column]
    best_overlap = max(overlaps, key=len)
    spans = [value.span for value, overlap in zip(column, overlaps) if len(overlap) == len(best_overlap)]
    if len(spans) == 1:  # a single line "Members: Anna, Ben"
        spans = split_coordination(text, spans[0], spans[0])
    return spans, best_overlap


def covers(span: SlotSpan, second: Span) -> bool:
    """Check whether two spans of a passage overlap."""
    return second.start < span.end and span.start < second.end


def list_coordinated_items(best: SlotSpan) -> list[SlotSpan]:
    """List the items of the coordination that has the answer."""
    passage = best.slot.passage
    if best.end <= best.start:
        return []
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
        if sentence.start <= best.start < best.end <= sentence.end:
            item = best
        elif 1 - span.no_answer < MIN_PROBABILITY or span.end <= span.start:
            continue
        for piece in list_coordinated_items(item):
            items.setdefault(normalize_answer(piece.text), piece)
    return list(items.values())
