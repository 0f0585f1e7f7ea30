"""Relative times as people say them, and the days they mean."""

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from mnemic.text.dates.period import MONTHS

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}


class SpokenTime(NamedTuple):
    """A relative time, and the ISO 8601 date or interval that it means."""

    phrase: str
    date: str


def format_interval(first: date, last: date) -> str:
    """Format the days from ``first`` to ``last``, both included."""
    return f"{first.isoformat()}/{last.isoformat()}"


def shift_month(day: date, months: int) -> tuple[int, int]:
    """Return year and month, so many months later."""
    number = day.year * 12 + day.month - 1 + months
    return number // 12, number % 12 + 1


def list_past_times(day: date) -> list[SpokenTime]:
    """List relative times before a day, or on it."""
    monday = day - timedelta(day.weekday())
    week = format_interval(monday - timedelta(7), monday - timedelta(1))
    weekend = format_interval(monday - timedelta(2), monday - timedelta(1))
    year, month = shift_month(day, -1)
    times = [
        SpokenTime("yesterday", (day - timedelta(1)).isoformat()),
        SpokenTime("this morning", day.isoformat()),
        SpokenTime("today", day.isoformat()),
        SpokenTime("the day before yesterday", (day - timedelta(2)).isoformat()),
        SpokenTime("a week ago", (day - timedelta(7)).isoformat()),
        SpokenTime("last week", week),
        SpokenTime("last weekend", weekend),
        SpokenTime("last month", f"{year}-{month:02}"),
        SpokenTime("last year", str(day.year - 1)),
    ]
    times += [SpokenTime(f"{NUMBERS[n]} days ago", (day - timedelta(n)).isoformat()) for n in NUMBERS]
    times += [SpokenTime(f"{NUMBERS[n]} weeks ago", (day - timedelta(7 * n)).isoformat()) for n in (2, 3)]
    # "Last Friday" is the one of last week. Said on a Saturday it could also be yesterday, and is
    # left out.
    before = [monday - timedelta(7 - number) for number in range(day.weekday(), 7)]
    return times + [SpokenTime(f"last {WEEKDAYS[past.weekday()]}", past.isoformat()) for past in before]


def list_future_times(day: date) -> list[SpokenTime]:
    """List relative times after a day."""
    next_monday = day - timedelta(day.weekday()) + timedelta(7)
    year, month = shift_month(day, 1)
    times = [
        SpokenTime("tomorrow", (day + timedelta(1)).isoformat()),
        SpokenTime("the day after tomorrow", (day + timedelta(2)).isoformat()),
        SpokenTime("in a week", (day + timedelta(7)).isoformat()),
        SpokenTime("next week", format_interval(next_monday, next_monday + timedelta(6))),
        SpokenTime("next month", f"{year}-{month:02}"),
        SpokenTime("next year", str(day.year + 1)),
    ]
    times += [SpokenTime(f"in {NUMBERS[n]} days", (day + timedelta(n)).isoformat()) for n in NUMBERS]
    # "Next Friday" is the one of next week. Said on a Monday it could also be that of this week,
    # and is left out.
    after = [next_monday + timedelta(number) for number in range(day.weekday() + 1)]
    times += [SpokenTime(f"next {WEEKDAYS[later.weekday()]}", later.isoformat()) for later in after]
    this_week = [day + timedelta(number) for number in range(1, 7 - day.weekday())]
    return times + [SpokenTime(f"this {WEEKDAYS[later.weekday()]}", later.isoformat()) for later in this_week]


def draw_day(generator: Random, first_year: int = 2015, last_year: int = 2025) -> date:
    """Draw a day of these years."""
    year, month = generator.randint(first_year, last_year), generator.randint(1, 12)
    return date(year, month, generator.randint(1, monthrange(year, month)[1]))


def name_day(day: date) -> str:
    """Write "8 May 2023"."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def name_american_day(day: date) -> str:
    """Write "May 8, 2023"."""
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


DAY_FORMATS: tuple[Callable[[date], str], ...] = (name_day, name_american_day, date.isoformat)
