"""Generator of dates: ``the third of march nineteen eighty four`` → ``1984-03-03``.

A task for sequence-to-sequence models. A tenth of all days, chosen by a hash, is for test and a
twentieth for validation, so that these dates are not in training, in whatever words.
"""

from collections.abc import Callable
from datetime import date, timedelta
from hashlib import sha256
from random import Random

from mnemic.data.contract import Split

FIRST_DAY, LAST_DAY = date(1900, 1, 1), date(2099, 12, 31)
CARDINALS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ORDINALS = [
    "_", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth",
    "seventeenth", "eighteenth", "nineteenth", "twentieth",
]  # fmt: skip
MONTHS = [
    "_", "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
]  # fmt: skip
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def generate_dates(split: Split, count: int, *, seed: int) -> list[tuple[str, str]]:
    """Generate random dates of a split, in words and in digits."""
    generator = Random(f"{split}/{seed}")
    num_days = (LAST_DAY - FIRST_DAY).days + 1
    dates: list[tuple[str, str]] = []
    while len(dates) < count:
        day = FIRST_DAY + timedelta(generator.randrange(num_days))
        if split_of(day) == split:
            dates.append((generator.choice(PHRASES)(day), day.isoformat()))
    return dates


def split_of(day: date) -> Split:
    """Return the split of a day, by its hash."""
    first_byte = sha256(day.isoformat().encode()).digest()[0]
    if first_byte < 26:
        return "test"
    return "validation" if first_byte < 39 else "train"


def say_day_first(day: date) -> str:
    """Say "the third of march nineteen eighty four"."""
    return f"the {spell_ordinal(day.day)} of {MONTHS[day.month]} {spell_year(day.year)}"


def say_month_first(day: date) -> str:
    """Say "march the third nineteen eighty four"."""
    return f"{MONTHS[day.month]} the {spell_ordinal(day.day)} {spell_year(day.year)}"


def say_with_weekday(day: date) -> str:
    """Say "saturday the third of march nineteen eighty four"."""
    return f"{DAYS[day.weekday()]} {say_day_first(day)}"


def say_year_first(day: date) -> str:
    """Say "in the year nineteen eighty four on the third of march"."""
    return f"in the year {spell_year(day.year)} on the {spell_ordinal(day.day)} of {MONTHS[day.month]}"


PHRASES: list[Callable[[date], str]] = [say_day_first, say_month_first, say_with_weekday, say_year_first]


def spell_year(number: int) -> str:
    """Spell a year in words.

    1900 nineteen hundred, 1905 nineteen oh five, 1984 nineteen eighty four, 2007 two thousand and
    seven, 2015 twenty fifteen.
    """
    century, rest = divmod(number, 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" and {spell_cardinal(rest)}" if rest else "")
    if rest == 0:
        return f"{spell_cardinal(century)} hundred"
    return f"{spell_cardinal(century)} {'oh ' if rest < 10 else ''}{spell_cardinal(rest)}"


def spell_cardinal(number: int) -> str:
    """Spell a number from 0 to 99 in words."""
    if number < 20:
        return CARDINALS[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] + (f" {CARDINALS[ones]}" if ones else "")


def spell_ordinal(number: int) -> str:
    """Spell a number from 1 to 31 as an ordinal."""
    if number <= 20:
        return ORDINALS[number]
    tens, ones = divmod(number, 10)
    return f"{TENS[tens]} {ORDINALS[ones]}" if ones else "thirtieth"
