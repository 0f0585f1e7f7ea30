"""Find dates that stand in a text: 8 May 2023, May 8th, 08/05/23, 2023.

In 05/08/2023 the day may come first or second. ``decide_order`` looks at the other dates of the
document; if they do not decide it, the date has two readings.

Neither ``dateparser`` nor ``python-dateutil`` does this work: both take a whole string for a date
and always return an instant, so that "last week" becomes a day and 05/08/2023 one of its readings
without a word, and the first would add four packages.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from mnemic.text.dates.period import MONTHS, Period, make_day, make_month, make_year

Order: TypeAlias = Literal["dmy", "mdy"]
ORDERS: tuple[Order, ...] = ("dmy", "mdy")
FIRST_YEAR, LAST_YEAR = 1000, 2999
MIN_YEAR_ALONE = 1500  # below, and without a month, a number is hardly a year
CENTURY_BREAK = 69  # 69 is 1969, 68 is 2068, as in POSIX
MONTH_PATTERN = "|".join(rf"{name[:3]}(?:{name[3:]}|\.)?" for name in MONTHS).replace("Sep(?:", "Sep(?:t\\.?|")
_MONTH = rf"(?P<month>(?i:{MONTH_PATTERN}))(?![a-z])"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4}|['’]\d\d)"
_GAP = r"(?:,? |[-./]|, ?)"
_END = r"(?![\w%]|[.,/-]\d)"
_PATTERNS = tuple(
    re.compile(rf"(?<![\w/.-])(?:{pattern})")
    for pattern in (
        rf"(?P<year>\d{{4}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})(?=T\d|{_END})",
        rf"(?P<day>\d{{1,2}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}|\d\d){_END}",
        rf"(?:the )?{_DAY}(?: of |[-./]| )?{_MONTH}(?:{_GAP}(?:of )?{_YEAR})?{_END}",
        rf"{_MONTH}[ -]?(?:the )?{_DAY}(?:{_GAP}{_YEAR})?{_END}",
        rf"{_MONTH}(?:,? |-|/)(?:of )?(?P<year>\d{{4}}){_END}",
        r"(?P<year>\d{4})年(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号])?)?",
        r"(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]",
        rf"(?P<year>(?:1[5-9]|20|21)\d\d){_END}",
    )
)
_NUMERIC = 1  # the pattern whose order of day and month is open
_MONTH_NUMBERS = {name[:3].lower(): number for number, name in enumerate(MONTHS, start=1)}


class DateMention(NamedTuple):
    """A date in a text; its year, month or day may be missing."""

    start: int
    end: int
    year: int | None
    month: int | None
    day: int | None
    order: Order | Literal["fixed"] | None = "fixed"  # of digits: as they are read; None: that is open

    def read(self, order: Order | None = None, year: int | None = None) -> tuple[Period, ...]:
        """Return the possible periods: one, two if the order is open, none without a year.

        ``order`` is that of the document; ``year`` is used where the date has none.
        """
        year = self.year or year
        pairs = [(self.month, self.day), (self.day, self.month)]  # if the day comes first, and if not
        if self.order or order:
            pairs = pairs[:1] if self.order or order == "dmy" else pairs[1:]
        periods = (make_period(year, month, day) for month, day in pairs)
        return tuple(dict.fromkeys(period for period in periods if period is not None))


def make_period(year: int | None, month: int | None, day: int | None) -> Period | None:
    """Make a year, month or day; None if there is no such day."""
    if year is None:
        return None
    try:
        if month is None:
            return make_year(year)
        return make_month(year, month) if day is None else make_day(date(year, month, day))
    except ValueError:
        return None


def find_dates(text: str) -> list[DateMention]:
    """Find the dates of a text, in order, without overlaps.

    >>> [(date.day, date.month, date.year) for date in find_dates("8 May 2023 or 05/09/23")]
    [(8, 5, 2023), (5, 9, 2023)]
    """
    mentions: list[DateMention] = []
    for number, pattern in enumerate(_PATTERNS):
        for match in pattern.finditer(text):
            mention = parse_match(match, is_numeric=number == _NUMERIC)
            if mention and not any(
                previous.start < mention.end and mention.start < previous.end for previous in mentions
            ):
                mentions.append(mention)
    return sorted(mentions)


def parse_match(match: re.Match[str], *, is_numeric: bool) -> DateMention | None:
    """Make the mention of a match; None if the numbers are no date."""
    fields = match.groupdict()
    year, month, day = parse_year(fields.get("year")), parse_month(fields.get("month")), fields.get("day")
    if day is None:
        if month is None and (year is None or year < MIN_YEAR_ALONE):
            return None
        return DateMention(*match.span(), year, month, None) if make_period(year or 2000, month, None) else None
    first, second = int(day), month
    assert second is not None, "no pattern has a day without a month"
    if not is_numeric:
        return DateMention(*match.span(), year, second, first) if make_period(year or 2000, second, first) else None
    order: Order | Literal["fixed"] | None = "dmy" if first > 12 else None
    if fields["mark"] == "." or first == second:
        order = "fixed"
    elif second > 12:
        first, second, order = second, first, "mdy"
    mention = DateMention(*match.span(), year, second, first, order)
    return mention if make_period(year, second, first) else None


def parse_year(text: str | None) -> int | None:
    """Return a year of two or four digits; None for no year."""
    if not text:
        return None
    year = int(text.strip("'’"))
    if len(text.strip("'’")) == 2:
        return year + (1900 if year >= CENTURY_BREAK else 2000)
    return year if FIRST_YEAR <= year <= LAST_YEAR else None


def parse_month(text: str | None) -> int | None:
    """Return the number of a month's name or digits."""
    if not text:
        return None
    return int(text) if text.isdigit() else _MONTH_NUMBERS[text[:3].lower()]


def decide_order(mentions: Iterable[DateMention], stamps: Sequence[DateMention] = ()) -> Order | None:
    """Decide from a document's dates whether its days come before its months.

    A number above 12 is a day. Where there is none, ``stamps``, which ascend in a conversation,
    decide if they do so in one order only. None: nothing decides it.
    """
    orders = {mention.order for mention in mentions} - {None, "fixed"}
    if orders:
        return "mdy" if orders == {"mdy"} else "dmy" if orders == {"dmy"} else None
    ascending: list[Order] = [order for order in ORDERS if is_ascending(stamps, order)]
    return ascending[0] if len(ascending) == 1 else None


def is_ascending(stamps: Sequence[DateMention], order: Order) -> bool:
    """Check whether dates never go back if they are read in an order."""
    days = [period.first for stamp in stamps for period in stamp.read(order)[:1]]
    return len(set(days)) > 1 and all(day <= after for day, after in pairwise(days))
