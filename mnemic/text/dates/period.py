"""Make periods of the calendar, such as a day, a week or a month."""

from calendar import monthrange
from datetime import date, timedelta
from typing import NamedTuple

MONTHS = tuple(
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)


class Period(NamedTuple):
    """A range of days, both ends included.

    >>> Period(date(2023, 5, 7), date(2023, 5, 7)).text
    '7 May 2023'
    >>> Period(date(2023, 5, 1), date(2023, 5, 7)).iso
    '2023-05-01/2023-05-07'
    >>> make_month(2023, 4).iso
    '2023-04'
    """

    first: date
    last: date

    @property
    def is_day(self) -> bool:
        """Whether this is a single day."""
        return self.first == self.last

    @property
    def has_months(self) -> bool:
        """Whether this is one or more whole months."""
        return self.first.day == 1 and (self.last + timedelta(1)).day == 1 if self.last < date.max else False

    @property
    def is_year(self) -> bool:
        """Whether this is a whole year."""
        return self.has_months and (self.first.month, self.last.month, self.first.year) == (1, 12, self.last.year)

    @property
    def iso(self) -> str:
        """The period as in ISO 8601: 2023-05-07, 2023-05, 2023, or a range first/last."""
        size = 4 if self.is_year else 7 if self.has_months else 10
        ends = [day.isoformat()[:size] for day in self]
        return ends[0] if ends[0] == ends[1] else "/".join(ends)

    @property
    def text(self) -> str:
        """The period in words: 7 May 2023, 1 to 7 May 2023, May 2023, 2023."""
        if self.is_year:
            return str(self.first.year)
        sizes = (MONTHS[self.first.month - 1], str(self.first.year))
        first = sizes if self.has_months else (str(self.first.day), *sizes)
        sizes = (MONTHS[self.last.month - 1], str(self.last.year))
        last = sizes if self.has_months else (str(self.last.day), *sizes)
        if first == last:
            return " ".join(last)
        num_equal = 0  # words at the ends that need not be said twice
        while first[-1 - num_equal :] == last[-1 - num_equal :]:
            num_equal += 1
        return f"{' '.join(first[: len(first) - num_equal])} to {' '.join(last)}"

    def contains(self, period: "Period") -> bool:
        """Check whether another period lies within this one."""
        return self.first <= period.first and period.last <= self.last


def make_day(day: date) -> Period:
    """Make the period of a single day."""
    return Period(day, day)


def make_week(day: date) -> Period:
    """Make the week, Monday to Sunday, that has a day."""
    monday = day - timedelta(day.weekday())
    return Period(monday, monday + timedelta(6))


def make_month(year: int, month: int) -> Period:
    """Make a month; months below 1 and above 12 are in other years."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return Period(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def make_year(year: int) -> Period:
    """Make a year."""
    return Period(date(year, 1, 1), date(year, 12, 31))


def make_months(year: int, month: int, count: int) -> Period:
    """Make ``count`` months from a month on."""
    return Period(make_month(year, month).first, make_month(year, month + count - 1).last)


def shift_months(day: date, months: int) -> Period:
    """Return the month that is some months after that of a day."""
    return make_month(day.year, day.month + months)


def find_weekday(day: date, weekday: int, *, after: bool) -> Period:
    """Return the next such weekday after a day, or the last before it."""
    distance = (weekday - day.weekday()) % 7 or 7 if after else -((day.weekday() - weekday) % 7 or 7)
    return make_day(day + timedelta(distance))
