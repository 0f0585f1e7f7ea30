"""Count days, weeks, weekends, months, seasons and years from a day."""

from collections.abc import Callable
from datetime import timedelta

from mnemic.text.dates.period import Period, find_weekday, make_day, make_months, make_week, make_year, shift_months
from mnemic.text.dates.rule import Clock

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first month, in the north


def shift_day(clock: Clock, number: int) -> Period:
    """Return the day some days later, or before."""
    return make_day(clock.day + timedelta(number))


def shift_week(clock: Clock, number: int) -> Period:
    """Return the week, Monday to Sunday, some weeks later, or before."""
    return make_week(clock.day + timedelta(7 * number))


def shift_month(clock: Clock, number: int) -> Period:
    """Return the month some months later, or before."""
    return shift_months(clock.day, number)


def shift_year(clock: Clock, number: int) -> Period:
    """Return the year some years later, or before."""
    return make_year(clock.day.year + number)


def shift_weekend(clock: Clock, number: int) -> Period:
    """Return a weekend: 0 is that of this week, -1 the last one before it."""
    saturday = make_week(clock.day).first + timedelta(5 + 7 * number)
    return Period(saturday, saturday + timedelta(1))


SHIFTS: dict[str, Callable[[Clock, int], Period]] = {
    "day": shift_day,
    "night": shift_day,
    "morning": shift_day,
    "afternoon": shift_day,
    "evening": shift_day,
    "week": shift_week,
    "weekend": shift_weekend,
    "month": shift_month,
    "year": shift_year,
}


def shift_units(clock: Clock, unit: str, number: int) -> Period | None:
    """Shift by any unit; None for one that is shorter than a day."""
    if unit == "fortnight":
        return shift_week(clock, 2 * number)
    return SHIFTS[unit](clock, number) if unit in SHIFTS else None


def shift_weekday(clock: Clock, weekday: int, number: int) -> Period:
    """Return the n-th such weekday after the day, or before it if n is negative."""
    first = find_weekday(clock.day, weekday, after=number > 0)
    return make_day(first.first + timedelta(7 * (number - 1 if number > 0 else number + 1)))


def find_weekday_near(clock: Clock, weekday: int) -> Period | None:
    """Return the weekday that is meant by its name alone; that depends on the tense."""
    if clock.tense is None:
        return None
    return find_weekday(clock.day, weekday, after=clock.tense == "future")


def find_weekend_near(clock: Clock) -> Period | None:
    """Return the weekend that is meant by "the weekend"; that depends on the tense."""
    if clock.tense is None:
        return None
    is_over = clock.tense == "past" and clock.day.weekday() < 5
    return shift_weekend(clock, -1 if is_over else 0)


def find_month(clock: Clock, month: int, number: int) -> Period:
    """Return the n-th such month after or before; 0: in the same year."""
    if number > 0:
        number -= month > clock.day.month
    elif number < 0:
        number += month < clock.day.month
    return shift_months(clock.day.replace(day=1, month=month), 12 * number)


def find_month_near(clock: Clock, month: int) -> Period | None:
    """Return the month that is meant by its name alone; that depends on the tense."""
    if clock.tense is None or month == clock.day.month:
        return None if clock.tense is None else find_month(clock, month, 0)
    return find_month(clock, month, -1 if clock.tense == "past" else 1)


def find_season(clock: Clock, season: str, number: int) -> Period:
    """Return the last such season (-1), the next (1), or this year's (0)."""
    year = clock.day.year - (season == "winter" and clock.day.month < 3)
    seasons = [make_months(year + step, SEASONS[season], 3) for step in (-1, 0, 1)]
    if number < 0:
        return [period for period in seasons if period.last < clock.day][-1]
    return next(period for period in seasons if period.first > clock.day) if number else seasons[1]


def find_season_near(clock: Clock, season: str) -> Period | None:
    """Return the season that is meant by its name alone; that depends on the tense."""
    current = find_season(clock, season, 0)
    if clock.tense is None or current.contains(make_day(clock.day)):
        return current if clock.tense else None
    return find_season(clock, season, -1 if clock.tense == "past" else 1)


def find_day_of_month(clock: Clock, day: int, month: int | None) -> Period | None:
    """Return the day that "the 5th" or "5 May" means; that depends on the tense."""
    if clock.tense is None:
        return None
    step = -1 if clock.tense == "past" else 1
    for number in range(0, 50 * step, step):  # 29 February may be 8 years away; others are near
        period = shift_months(clock.day, number)
        if (month or period.first.month) == period.first.month and day <= period.last.day:
            result = period.first.replace(day=day)
            if (result <= clock.day) if step < 0 else (result >= clock.day):
                return make_day(result)
    return None
