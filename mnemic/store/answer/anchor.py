"""Find the day on which a passage of a document was said or written.

It is the nearest date above that stands as one of a message, session, heading, row or mail
(``stamps``); else a date in the document's name or title; else the time when a note was remembered;
and only if there is nothing else, the modification time of the file. The search upwards is bounded.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import islice
from typing import NamedTuple

from mnemic.store.answers import DaySource
from mnemic.store.contract import Document, MemorySlot
from mnemic.store.ingest.notes import NOTE_KIND
from mnemic.store.relational import Store
from mnemic.text.dates.absolute import DateMention, Order, decide_order, find_dates
from mnemic.text.dates.stamps import find_stamps, is_quotation_head
from mnemic.text.sentences import Span

BATCH = 32  # passages that are read at once
MAX_PASSAGES = 512  # above a quotation, in which its day is looked for
MAX_DECIDING_PASSAGES = 256  # of a document, from its beginning, whose dates decide what 05/08 is
SINGLE_MAILS = ("mbox",)  # kinds whose pages have nothing to do with each other
_QUOTED = re.compile(r"[ \t]*>")


class AnchorDay(NamedTuple):
    """The day on which something was said: two readings if 05/08/2023 may be either."""

    readings: tuple[date, ...]
    source: DaySource
    slot: MemorySlot | None = None  # of the passage that has the date; None: no passage has it
    span: Span | None = None  # of the date in the passage


def find_anchor(store: Store, document: Document, slot: MemorySlot, position: int) -> AnchorDay | None:
    """Find the day on which the passage was said that has a position; None: unknown."""
    for stamp_slot, stamp in islice(iterate_stamps(store, document, slot, position), 1):
        year = stamp.year or find_year(store, document, slot, position)
        readings = stamp.read(year=year)
        if len(readings) > 1:
            readings = stamp.read(find_order(store, document), year)
        if readings:
            return AnchorDay(
                tuple(period.first for period in readings), "text", stamp_slot, Span(stamp.start, stamp.end)
            )
    return find_document_day(store, document)


def iterate_stamps(
    store: Store, document: Document, slot: MemorySlot, position: int
) -> Iterator[tuple[MemorySlot, DateMention]]:
    """Yield the stamps that date a position, with their passages, the nearest first."""
    text = slot.passage.text
    is_quoted = bool(_QUOTED.match(text, text.rfind("\n", 0, position) + 1))
    unit_end = next((unit.end for unit in slot.passage.sentences if unit.start <= position < unit.end), position)
    after_key = [stamp for stamp in find_stamps(text) if position < stamp.start < unit_end and is_in_row(text, stamp)]
    above = [stamp for stamp in find_stamps(text) if stamp.start <= position]
    for stamp in [*after_key, *reversed(above)]:
        if dates_position(text, stamp, is_quoted=is_quoted):
            yield slot, stamp
    for higher_slot in iterate_slots_above(store, document, slot):
        for stamp in reversed(find_stamps(higher_slot.passage.text)):
            if dates_position(higher_slot.passage.text, stamp, is_quoted=is_quoted):
                yield higher_slot, stamp


def is_in_row(text: str, stamp: DateMention) -> bool:
    """Check whether a date is the value of a key: "…; date: 2023-05-08"."""
    return bool(re.search(r"\w[ \t]*[:=]\W*\Z", text[max(stamp.start - 20, 0) : stamp.start]))


def dates_position(text: str, stamp: DateMention, *, is_quoted: bool) -> bool:
    """Check that "… Anna wrote:" dates only the lines that are quoted below it."""
    end = text.find("\n", stamp.end)
    line_end = len(text) if end < 0 else end
    return is_quoted or not (
        is_quotation_head(text[stamp.end : line_end]) and _QUOTED.match(text[line_end + 1 : line_end + 4])
    )


def iterate_slots_above(store: Store, document: Document, slot: MemorySlot) -> Iterator[MemorySlot]:
    """Yield the passages of a document above one, the nearest first, at most ``MAX_PASSAGES``."""
    where = f"WHERE document = ? AND number < ? ORDER BY number DESC LIMIT {BATCH}"
    number = slot.number
    for _ in range(MAX_PASSAGES // BATCH):
        slots = sorted(store.read_slots(where, document.id, number), key=lambda higher_slot: -higher_slot.number)
        for higher_slot in slots:
            if document.kind in SINGLE_MAILS and higher_slot.passage.page != slot.passage.page:
                return
            yield higher_slot
        if len(slots) < BATCH:
            return
        number = slots[-1].number


def find_year(store: Store, document: Document, slot: MemorySlot, position: int) -> int | None:
    """Find the year of a stamp without one, in the nearest stamp above."""
    for _, stamp in iterate_stamps(store, document, slot, position):
        if stamp.year is not None:
            return stamp.year
    day = find_document_day(store, document)
    return day.readings[0].year if day else None


def find_order(store: Store, document: Document) -> Order | None:
    """Decide from a document's dates whether its days come before its months."""
    texts = [slot.passage.text for slot in islice(store.list_slots(document.id), MAX_DECIDING_PASSAGES)]
    mentions = [find_dates(text) for text in texts]
    stamps = [stamp for text, dates in zip(texts, mentions) for stamp in find_stamps(text, dates)]
    return decide_order([mention for dates in mentions for mention in dates], stamps)


def find_document_day(store: Store, document: Document) -> AnchorDay | None:
    """Find the day of a document by its name, or its time."""
    is_note = document.kind == NOTE_KIND  # its title is the beginning of its text
    for name in () if is_note else (document.name, document.title):
        if days := find_name_days(name):
            return AnchorDay(days, "name")
    if is_note:
        return AnchorDay((datetime.fromisoformat(document.remembered).astimezone().date(),), "remembered")
    records = [record for path in document.places if (record := store.get_file_record(path.split("!/")[0]))]
    records = records or [record for path in document.places if (record := store.get_file_record(path))]
    if not records:
        return None
    modified = datetime.fromtimestamp(records[0].modified_ns / 1e9, UTC).astimezone()
    return AnchorDay((modified.date(),), "file")


def find_name_days(name: str) -> tuple[date, ...]:
    """Find the day in a name or a title, such as "2023-05-08 standup"."""
    base = re.split(r"[/\\]", name)[-1]
    base = re.sub(r"(?<!\d)((?:19|20)\d\d)[_.]?(0[1-9]|1[0-2])[_.]?([0-3]\d)(?!\d)", r" \1-\2-\3 ", base)
    days = [mention.read() for mention in find_dates(base.replace("_", " ")) if mention.day and mention.year]
    return tuple(period.first for period in days[-1]) if days else ()
