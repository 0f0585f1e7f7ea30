"""Answer questions for a time: quote the time of an event, and resolve relative ones.

"Yesterday" in a message of 8 May 2023 is 7 May 2023. The answer stays what is written; beside it
stands the date, and the sentence with the day that it is counted from.
"""

import re
from collections.abc import Sequence
from datetime import date

from mnemic.store.answer.anchor import AnchorDay, find_anchor
from mnemic.store.answer.confidence import SpanFeatures
from mnemic.store.answer.rank import SlotSpan, compute_word_overlap, make_evidence
from mnemic.store.answers import Quotation, ResolvedDate
from mnemic.store.contract import MemorySlot
from mnemic.store.relational import Store
from mnemic.store.retrieve.filters import Filters
from mnemic.store.retrieve.hybrid import Hop
from mnemic.text.dates.absolute import find_dates
from mnemic.text.dates.period import Period
from mnemic.text.dates.relative import TimeSpan, find_times, guess_tense, resolve_time
from mnemic.text.dates.rule import Clock, Tense
from mnemic.text.dates.stamps import find_stamps
from mnemic.text.sentences import Span

_ASKS_TIME = re.compile(
    r"(?i)\A\W*(?:and |so |but |then )?when\b|\b(?:since|until|till|from|know|remember|me|by) when\b|\bwhen\W*\Z"
    r"|\bhow (?:long|recently|many \w+) ago\b"
    r"|\b(?:what|which)(?: \w+){0,2}? (?:days?|dates?|months?|years?|weeks?|weekends?|weekdays?|seasons?)\b"
    r"|\Awhat was the (?:day|date)\b|\A\w+(?: \w+)* date\W*\Z|什么时[候间]|何时|哪一?[天年月日]|几[月号]"
)
_LINE = re.compile(r"[^\n]*\S[^\n]*")


def asks_time(question: str) -> bool:
    """Check whether a question asks for a time.

    >>> asks_time("When did Anna move?"), asks_time("What did Anna say when she moved?")
    (True, False)
    """
    return bool(_ASKS_TIME.search(question))


def focus_on_times(
    question: str, candidates: list[tuple[SlotSpan, SpanFeatures]] | None
) -> list[tuple[SlotSpan, SpanFeatures]] | None:
    """Replace spans that take the date of a message for that of an event in it.

    Of "8 May 2023] Anna: I moved yesterday" only "yesterday" says when Anna moved, and where a
    reader points at the date alone, it is the time in the message, if what is asked has one there.
    """
    if candidates is None or not asks_time(question):
        return candidates
    return [(focus_on_time(question, span), features) for span, features in candidates]


def focus_on_time(question: str, span: SlotSpan) -> SlotSpan:
    """Return the time that a span means; the span itself, unless it has the date of a message."""
    text = span.slot.passage.text
    dates = find_dates(text)
    stamps = find_stamps(text, dates)
    stamp = next((stamp for stamp in stamps if stamp.start < span.end and span.start < stamp.end), None)
    if stamp is None:
        return span
    times = [
        time
        for time in find_times(text, dates)
        if not any(stamp.start < time.end and time.start < stamp.end for stamp in stamps)
    ]
    inside = [time for time in times if span.start <= time.start and time.end <= span.end]
    if not inside:
        entry_end = min((other.start for other in stamps if other.start > stamp.start), default=len(text))
        line = find_best_line(question, text, Span(stamp.end, entry_end), times)
        inside = [time for time in times if line.start <= time.start and time.end <= line.end]
    return span._replace(start=inside[0].start, end=inside[0].end) if inside else span


def find_best_line(question: str, text: str, entry: Span, times: Sequence[TimeSpan]) -> Span:
    """Find the sentence of a message that has most words of a question; of equal ones that with a time."""
    passage_lines = [Span(*line.span()) for line in _LINE.finditer(text, entry.start, entry.end)]
    lines = [
        Span(line.start + start, line.start + end)
        for line in passage_lines
        for start, end in split_clauses(text[line.start : line.end])
    ]
    overlaps = compute_word_overlap(question, [text[line.start : line.end] for line in lines])
    has_time = [any(line.start <= time.start < line.end for time in times) for line in lines]
    best = max(zip(overlaps, has_time, lines), key=lambda row: row[:2], default=(0.0, False, Span(0, 0)))
    return best[2] if best[0] > 0 else Span(0, 0)


def split_clauses(text: str) -> list[tuple[int, int]]:
    """Split a line after stops; what is split too often does no harm here."""
    ends = [match.end() for match in re.finditer(r"[.!?;。！？；]+[\"'”’)]*(?=\s|\Z)|[。！？；]", text)]
    return list(zip([0, *ends], [*ends, len(text)]))


def resolve_date(
    store: Store, question: str, answer: SlotSpan | None, hops: Sequence[Hop], filters: Filters
) -> ResolvedDate | None:
    """Resolve the relative time of an answer; None if it has none, or if it is too vague."""
    document = store.get_document(answer.slot.document) if answer is not None else None
    if answer is None or document is None or not asks_time(question):
        return None
    slot, text = answer.slot, answer.slot.passage.text
    times = find_times(text)
    time = next(
        (time for time in times if time.is_relative and time.start < answer.end and answer.start < time.end), None
    )
    if time is None or any(stamp.start < time.end and time.start < stamp.end for stamp in find_stamps(text)):
        return None
    sentence = next(unit for unit in slot.passage.sentences if unit.end > time.start)
    tense = guess_tense(question, text[sentence.start : sentence.end])
    anchor = find_anchor(store, document, slot, time.start)
    if time.is_anaphoric:
        anchor = find_narrated_day(times, time, anchor, slot, tense)
    if anchor is None:
        return None
    periods = [resolve_time(time, Clock(day, tense)) for day in anchor.readings]
    if None in periods:
        return None
    return make_resolved(text, time, [period for period in periods if period], anchor, cite_anchor(store, anchor, hops, filters))


def find_narrated_day(
    times: Sequence[TimeSpan], time: TimeSpan, anchor: AnchorDay | None, slot: MemorySlot, tense: Tense
) -> AnchorDay | None:
    """Find the day that "the next day" is counted from: the time that was named before it.

    Without one, "the week before" is counted from the day on which it was said, and "the next day"
    from none.
    """
    day = anchor.readings[0] if anchor else None
    opening = anchor.span.end if anchor and anchor.span and anchor.slot and anchor.slot.id == slot.id else 0
    for other in reversed(times):
        if opening <= other.start and other.end <= time.start and not other.is_anaphoric:
            base = resolve_time(other, Clock(day or date.max, tense)) if day or not other.is_relative else None
            if base is None:
                return None  # it is counted from a time that nobody knows
            later = resolve_time(time, Clock(base.last, tense))
            is_later = later is not None and later.last >= base.last
            readings = (base.last if is_later else base.first,)
            return AnchorDay(readings, "text", slot, Span(other.start, other.end))
    period = resolve_time(time, Clock(day, tense)) if day else None
    return anchor if day and period and period.first < day else None


def cite_anchor(store: Store, anchor: AnchorDay, hops: Sequence[Hop], filters: Filters) -> Quotation | None:
    """Quote the date that a time is counted from, with its sentence as evidence."""
    if anchor.slot is None or anchor.span is None:
        return None
    start, end = anchor.span
    sentence = next(unit for unit in anchor.slot.passage.sentences if unit.end > start)
    (evidence,) = make_evidence(store, [SlotSpan(anchor.slot, sentence.start, sentence.end, 0.0)], hops, filters)
    return Quotation(start=start, end=end, evidence=evidence)


def make_resolved(
    text: str, time: TimeSpan, periods: Sequence[Period], anchor: AnchorDay, quotation: Quotation | None
) -> ResolvedDate:
    """Make the date of a relative time; without a single ISO date if its day has two readings."""
    readings = list(dict.fromkeys(periods))
    return ResolvedDate(
        words=text[time.start : time.end],
        start=time.start,
        end=time.end,
        iso=readings[0].iso if len(readings) == 1 else "",
        text=" or ".join(period.text for period in readings),
        source=anchor.source,
        anchor=quotation,
    )
