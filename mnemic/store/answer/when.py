"""Resolve relative times in answers against the day on which they were said.

"Yesterday" in a message of 8 May 2023 is 7 May 2023. The answer stays what is written; beside it
stands the date, and the sentence with the day that it is counted from.
"""

from collections.abc import Sequence
from datetime import date

from mnemic.store.answer.anchor import AnchorDay, find_anchor
from mnemic.store.answer.focus import asks_time
from mnemic.store.answer.rank import SlotSpan, make_evidence
from mnemic.store.answers import Quotation, ResolvedDate
from mnemic.store.contract import MemorySlot
from mnemic.store.relational import Store
from mnemic.store.retrieve.filters import Filters
from mnemic.store.retrieve.hybrid import Hop
from mnemic.text.dates.period import Period
from mnemic.text.dates.relative import TimeSpan, find_times, guess_tense, resolve_time
from mnemic.text.dates.rule import Clock, Tense
from mnemic.text.dates.stamps import find_stamps
from mnemic.text.sentences import Span

FILE_NOTE = "the document has no date above the answer: its time was counted from the day of the file's last change"
AMBIGUOUS_NOTE = "day and month cannot be told apart in this document: {text}"


def resolve_date(
    store: Store, question: str, answer: SlotSpan | None, hops: Sequence[Hop], filters: Filters
) -> ResolvedDate | None:
    """Resolve the relative time of an answer; None: none, or too vague."""
    document = store.get_document(answer.slot.document) if answer is not None else None
    if answer is None or document is None or not asks_time(question):
        return None
    slot, text = answer.slot, answer.slot.passage.text
    stamps = find_stamps(text)
    times = [time for time in find_times(text) if not any(time.start == stamp.start for stamp in stamps)]
    time = next(
        (time for time in times if time.is_relative and time.start < answer.end and answer.start < time.end), None
    )
    if time is None:
        return None
    sentence = next(unit for unit in slot.passage.sentences if unit.end > time.start)
    tense = guess_tense(question, text[sentence.start : sentence.end])
    anchor = find_anchor(store, document, slot, time.start)
    if time.is_anaphoric:
        anchor = find_narrated_day(times, time, anchor, slot, tense)
    if anchor is None or (time.mention and anchor.source in ("remembered", "file")):
        return None  # "30 June" in a lease says nothing of the year in which the file was changed
    periods = [resolve_time(time, Clock(day, tense)) for day in anchor.readings]
    if None in periods:
        return None
    return make_resolved(
        text, time, [period for period in periods if period], anchor, cite_anchor(store, anchor, hops, filters)
    )


def describe_date(date: ResolvedDate | None) -> list[str]:
    """Return notes on a date that need not be right."""
    if date is None:
        return []
    notes = [FILE_NOTE] if date.source == "file" else []
    return [*notes, AMBIGUOUS_NOTE.format(text=date.text)] if not date.iso else notes


def find_narrated_day(
    times: Sequence[TimeSpan], time: TimeSpan, anchor: AnchorDay | None, slot: MemorySlot, tense: Tense
) -> AnchorDay | None:
    """Find the day that "the next day" is counted from.

    It is the time that was named before. Without one, "the week before" is counted from the day on
    which it was said, and "the next day" from none.
    """
    day = anchor.readings[0] if anchor else None
    opening = anchor.span.end if anchor and anchor.span and anchor.slot and anchor.slot.id == slot.id else 0
    for previous in reversed(times):
        if opening <= previous.start and previous.end <= time.start and not previous.is_anaphoric:
            base = resolve_time(previous, Clock(day or date.max, tense)) if day or not previous.is_relative else None
            if base is None:
                return None  # it is counted from a time that nobody knows
            later = resolve_time(time, Clock(base.last, tense))
            is_later = later is not None and later.last >= base.last
            readings = (base.last if is_later else base.first,)
            return AnchorDay(readings, "text", slot, Span(previous.start, previous.end))
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
    """Make the date of a relative time, without ISO date if two are possible."""
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
