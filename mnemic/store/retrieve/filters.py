"""Filters of questions and searches: documents inside a folder, of a kind, of some days.

The date of a document is the modification time of its file; that of a note is the time when it was
remembered. A document that several files hold is found if one of them fits all filters.
"""

import os
import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from mnemic.recipe.errors import did_you_mean
from mnemic.store.contract import Document, StoreError
from mnemic.text.documents import SUFFIXES

Day: TypeAlias = date | str  # a day, or 2024, 2024-03, 2024-03-31
FIRST_YEAR, LAST_YEAR = 1970, 9998
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


class Filters(NamedTuple):
    """Conditions that a document must meet to be read; None is no condition."""

    inside: str | None = None  # absolute path of a file or folder
    kind: str | None = None  # as in ``Document.kind``
    since: datetime | None = None  # the first moment
    until: datetime | None = None  # the first moment after the last

    def choose_name(self, document: Document) -> str:
        """Return the name of a document: of its files, the first that is inside."""
        if self.inside is None:
            return document.name
        folder = self.inside.rstrip(os.sep) + os.sep
        return next((path for path in document.places if path == self.inside or path.startswith(folder)), document.name)

    def build_query(self) -> tuple[str, list[Any]]:
        """Build the query for the ids of documents that fit, and its values."""
        conditions, values = ["retired IS NULL"], list[Any]()
        if self.kind is not None:
            conditions, values = [*conditions, "kind = ?"], [self.kind]
        place_conditions, place_values = self.build_place_conditions()
        if place_conditions:
            fits = f"id IN (SELECT document FROM places WHERE {' AND '.join(place_conditions)})"
            values += place_values
            if self.inside is None:
                times = {"remembered >= ?": self.since, "remembered < ?": self.until}
                bounds = {condition: moment for condition, moment in times.items() if moment is not None}
                no_file = "NOT EXISTS (SELECT 1 FROM places WHERE document = documents.id)"
                fits = f"({fits} OR {' AND '.join([no_file, *bounds])})"
                values += [moment.astimezone(UTC).isoformat(timespec="seconds") for moment in bounds.values()]
            conditions.append(fits)
        return f"SELECT id FROM documents WHERE {' AND '.join(conditions)} ORDER BY id", values

    def build_place_conditions(self) -> tuple[list[str], list[Any]]:
        """Build the conditions of a file, and their values."""
        conditions, values = [], list[Any]()
        if self.inside is not None:
            # A range of texts is all that begin alike, and is found by the index: "0" follows "/".
            folder, archive = os.path.join(self.inside, ""), f"{self.inside}!/"
            conditions.append("(path = ? OR (path >= ? AND path < ?) OR (path >= ? AND path < ?))")
            values += [self.inside, folder, f"{folder[:-1]}0", archive, f"{archive[:-1]}0"]
        for condition, moment in {"modified >= ?": self.since, "modified < ?": self.until}.items():
            if moment is not None:
                conditions.append(condition)
                values.append(int(moment.timestamp()) * 10**9)
        return conditions, values

    def __str__(self) -> str:
        """Describe the filters for a message, such as ``kind pdf, since 2024-03-01``."""
        last_day = self.until - timedelta(microseconds=1) if self.until else None
        fields = {"inside": self.inside, "kind": self.kind, "since": self.since, "until": last_day}
        return ", ".join(
            f"{name} {value.date() if isinstance(value, datetime) else value}"
            for name, value in fields.items()
            if value
        )


NO_FILTERS = Filters()


def make_filters(
    inside: str | Path | None = None, kind: str | None = None, since: Day | None = None, until: Day | None = None
) -> Filters:
    """Make filters of what a user gives: a relative path, a suffix, days.

    >>> make_filters("/home/ann/letters", kind="md").kind
    'markdown'
    >>> str(make_filters(since="2024-02", until="2024-02"))
    'since 2024-02-01, until 2024-02-29'
    """
    if inside is not None and not str(inside):
        raise StoreError("the path to look inside is empty; give a file or a folder")
    path = None if inside is None else os.path.abspath(os.path.expanduser(inside))
    first = None if since is None else start_of_day(parse_days(since)[0])
    after = None if until is None else start_of_day(parse_days(until)[1] + timedelta(days=1))
    if first and after and first >= after:
        raise StoreError(f"no day is both since {since} and until {until}; exchange the two")
    return Filters(path, None if kind is None else normalize_kind(kind), first, after)


def normalize_kind(kind: str) -> str:
    """Return the kind for a name (``pdf``) or a suffix (``.md``)."""
    name = kind.strip().lower().removeprefix(".")
    return SUFFIXES.get(f".{name}", name)


def check_kind(kind: str, stored_kinds: set[str]) -> None:
    """Raise ``StoreError`` for a kind that no document can have."""
    known = {*SUFFIXES.values(), "note", *stored_kinds}
    if kind not in known:
        raise StoreError(f"no kind {kind!r}{did_you_mean(kind, known)}; kinds are {', '.join(sorted(known))}")


def parse_days(day: Day) -> tuple[date, date]:
    """Return the first and the last day of a year, a month or a day."""
    if isinstance(day, date):
        day = (day.date() if isinstance(day, datetime) else day).isoformat()
    match = _DAY.fullmatch(day.strip())
    try:
        year, month, number = match.groups() if match else ("0", None, None)
        first = date(int(year), int(month or 1), int(number or 1))
        last_month = int(month or 12)
        last = date(int(year), last_month, int(number or monthrange(int(year), last_month)[1]))
        if not FIRST_YEAR <= first.year <= LAST_YEAR:
            raise ValueError
        return first, last
    except ValueError:  # a calendar.IllegalMonthError is one
        raise StoreError(f"a date is written 2024-03-31, 2024-03 or 2024, from {FIRST_YEAR} on, not {day!r}") from None


def start_of_day(day: date) -> datetime:
    """Return the first moment of a day, in the local time zone."""
    return datetime.combine(day, time.min).astimezone()
