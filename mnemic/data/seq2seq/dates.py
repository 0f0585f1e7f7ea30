"""Dates in words and in digits: ``the third of march nineteen eighty four`` → ``1984-03-03``.

A generated task for sequence-to-sequence networks. A tenth of all days, chosen by a hash, is kept
for the test and a twentieth for validation, so that no such date was ever seen, in whatever words.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from hashlib import sha256
from itertools import islice
from random import Random

from mnemic.data.contract import Part

FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ORDINALS = [
    "_",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
]
MONTHS = [
    "_",
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def pairs(part: Part, count: int, *, seed: int) -> list[tuple[str, str]]:
    """``count`` dates in words, drawn anew each, with their digits; the same for the same seed."""
    return list(islice(endless(part, seed), count))


def endless(part: Part, seed: int) -> Iterator[tuple[str, str]]:
    dice = Random(f"{part}/{seed}")
    days = (LAST - FIRST).days + 1
    while True:
        day = FIRST + timedelta(dice.randrange(days))
        if part_of(day) == part:
            yield dice.choice(PHRASES)(day), day.isoformat()


def part_of(day: date) -> Part:
    """The part a day belongs to, on every machine alike."""
    number = sha256(day.isoformat().encode()).digest()[0]
    if number < 26:
        return "test"
    return "validation" if number < 39 else "train"


def of_the(day: date) -> str:
    return f"the {ordinal(day.day)} of {MONTHS[day.month]} {year(day.year)}"


def month_first(day: date) -> str:
    return f"{MONTHS[day.month]} the {ordinal(day.day)} {year(day.year)}"


def with_weekday(day: date) -> str:
    return f"{DAYS[day.weekday()]} {of_the(day)}"


def in_the_year(day: date) -> str:
    return f"in the year {year(day.year)} on the {ordinal(day.day)} of {MONTHS[day.month]}"


PHRASES: list[Callable[[date], str]] = [of_the, month_first, with_weekday, in_the_year]


def year(number: int) -> str:
    """1900 nineteen hundred, 1905 nineteen oh five, 1984 nineteen eighty four, 2007 two thousand
    and seven, 2015 twenty fifteen.
    """
    century, rest = divmod(number, 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" and {cardinal(rest)}" if rest else "")
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def cardinal(number: int) -> str:
    """0 to 99."""
    if number < 20:
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] + (f" {SMALL[ones]}" if ones else "")


def ordinal(number: int) -> str:
    """1 to 31."""
    if number <= 20:
        return ORDINALS[number]
    tens, ones = divmod(number, 10)
    return f"{TENS[tens]} {ORDINALS[ones]}" if ones else "thirtieth"
