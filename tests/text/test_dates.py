"""Dates in texts: absolute ones, stamps, and times that are counted from a day."""

import time
from datetime import date, timedelta

import pytest

from mnemic.text.dates.absolute import decide_order, find_dates
from mnemic.text.dates.period import Period, make_day, make_month, make_week, make_year
from mnemic.text.dates.relative import find_times, resolve_time
from mnemic.text.dates.rule import Clock, Tense
from mnemic.text.dates.stamps import find_stamps

MONDAY = date(2023, 5, 8)


def resolve(text: str, day: date = MONDAY, tense: Tense = "past") -> list[tuple[str, str | None]]:
    """The times of a text, and the ISO periods that they mean on a day."""
    periods = [(text[time.start : time.end], resolve_time(time, Clock(day, tense))) for time in find_times(text)]
    return [(words, period.iso if period else None) for words, period in periods]


@pytest.mark.parametrize(
    ("period", "iso", "text"),
    [
        (make_day(MONDAY), "2023-05-08", "8 May 2023"),
        (make_week(MONDAY), "2023-05-08/2023-05-14", "8 to 14 May 2023"),
        (Period(date(2022, 12, 26), date(2023, 1, 1)), "2022-12-26/2023-01-01", "26 December 2022 to 1 January 2023"),
        (make_week(date(2023, 6, 1)), "2023-05-29/2023-06-04", "29 May to 4 June 2023"),
        (make_month(2023, 5), "2023-05", "May 2023"),
        (make_month(2023, 0), "2022-12", "December 2022"),
        (make_year(2023), "2023", "2023"),
        (Period(date(2022, 6, 1), date(2022, 8, 31)), "2022-06/2022-08", "June to August 2022"),
    ],
)
def test_a_period_is_as_long_as_it_says(period: Period, iso: str, text: str) -> None:
    assert (period.iso, period.text) == (iso, text)


@pytest.mark.parametrize(
    "text",
    [
        "8 May 2023",
        "8th of May, 2023",
        "May 8, 2023",
        "May 8th 2023",
        "2023-05-08",
        "2023-05-08T10:15:00Z",
        "8.5.2023",
        "08-May-2023",
        "2023/05/08",
        "8 May '23",
        "Monday, May 8th, 2023,",
        "2023年5月8日",
    ],
)
def test_one_date_in_many_forms(text: str) -> None:
    (mention,) = find_dates(f"before {text} after")
    assert mention.read() == (make_day(MONDAY),)


@pytest.mark.parametrize("text", ["version 1.2.2023.4", "31/31/2023", "call 0123-45-6789", "may 12% rise", "1066 men"])
def test_what_is_no_date(text: str) -> None:
    assert not find_dates(text)


def test_the_other_dates_of_a_document_decide_an_ambiguous_one() -> None:
    (open_date,) = find_dates("05/08/2023")
    readings = {date(2023, 8, 5), date(2023, 5, 8)}
    assert {period.first for period in open_date.read()} == readings
    assert decide_order(find_dates("13/08/2023, 05/08/2023")) == "dmy"
    assert decide_order(find_dates("08/13/2023, 05/08/2023")) == "mdy"
    assert decide_order(find_dates("13/08/2023, 08/13/2023, 05/08/2023")) is None
    assert decide_order(find_dates("8 May 2023, 05/08/2023")) is None
    ascending = find_dates("05/08/2023 05/09/2023 06/01/2023")  # 8 May, 9 May, 1 June; else January comes last
    assert decide_order([], ascending) == "mdy"
    assert [period.first for period in open_date.read("dmy")] == [date(2023, 8, 5)]
    assert [period.first for period in open_date.read("mdy")] == [date(2023, 5, 8)]


@pytest.mark.parametrize(
    "line",
    [
        "[8 May 2023, 10:15] Anna: I went",
        "08/05/2023, 10:15 - Anna: hi",
        "[5/8/23, 10:15:22 AM] Anna: hi",
        "2023-05-08 10:15 <Anna> hi",
        "2023-05-08T10:15:00Z Anna: hi",
        "[10:15, 08/05/2023] Anna: hi",
        "Anna — 05/08/2023 10:15 AM",
        "Anna (8 May 2023, 10:15): I went",
        "----- Monday, May 8th, 2023 -----",
        "## 2023-05-08",
        "DATE: 1:56 pm on 8 May, 2023",
        "Date: Mon, 08 May 2023 10:15:00 +0200",
        "Session 3 (8 May 2023)",
        "Berlin, 8 May 2023",
        "On Sun, 7 May 2023 at 20:00, Ben <b@x.org> wrote:",
        "user: anna; ts: 2023-05-08T10:15:00Z; text: hi",
        "2023年5月8日 10:15 小明：你好",
    ],
)
def test_a_line_that_dates_what_follows(line: str) -> None:
    assert len(find_stamps(f"before\n{line}\nafter")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "We met on 8 May 2023.",
        "8 May 2023 was a sunny day.",
        "Anna and Ben were in Rome on 8 May 2023",
        "Anna: I was born on 8 May 1983.",
        "On 8 May 2023 the team met.",
        "In May 2023 she left.",
    ],
)
def test_a_date_in_a_sentence_dates_nothing_else(line: str) -> None:
    assert not find_stamps(f"before\n{line}\nafter")


@pytest.mark.parametrize("distance", range(-9, 10))
def test_days_are_counted_one_by_one(distance: int) -> None:
    """A slow twin counts on the calendar."""
    day = MONDAY
    for _ in range(abs(distance)):
        day += timedelta(1 if distance > 0 else -1)
    text = f"in {distance} days" if distance > 0 else f"{-distance} days ago"
    assert resolve(text, tense="future" if distance > 0 else "past")[0][1] == day.isoformat()


@pytest.mark.parametrize("offset", range(7))
def test_weekdays_on_every_day_of_the_week(offset: int) -> None:
    """A slow twin goes day by day to the next or last Friday; neither is the day itself."""
    day = MONDAY + timedelta(offset)
    before, after = day - timedelta(1), day + timedelta(1)
    while before.strftime("%A") != "Friday":
        before -= timedelta(1)
    while after.strftime("%A") != "Friday":
        after += timedelta(1)
    assert resolve("last Friday", day) == [("last Friday", before.isoformat())]
    assert resolve("next Friday", day, "future") == [("next Friday", after.isoformat())]
    assert resolve("on Friday", day, "past") == [("Friday", before.isoformat())]
    assert resolve("on Friday", day, "future") == [("Friday", after.isoformat())]
    assert resolve("on Friday", day, None) == [("Friday", None)]


@pytest.mark.parametrize(
    ("words", "iso"),
    [
        ("yesterday", "2023-05-07"),
        ("the day before yesterday", "2023-05-06"),
        ("last night", "2023-05-07"),
        ("this morning", "2023-05-08"),
        ("last week", "2023-05-01/2023-05-07"),
        ("two weeks ago", "2023-04-24/2023-04-30"),
        ("the week before last", "2023-04-24/2023-04-30"),
        ("last weekend", "2023-05-06/2023-05-07"),
        ("over the weekend", "2023-05-06/2023-05-07"),
        ("last month", "2023-04"),
        ("a year ago", "2022"),
        ("last summer", "2022-06/2022-08"),
        ("last winter", "2022-12/2023-02"),
        ("in March", "2023-03"),
        ("in May", "2023-05"),
        ("back in May", "2022-05"),
        ("Friday last week", "2023-05-05"),
        ("three weeks ago on Friday", "2023-04-21"),
        ("the week before 9 June 2023", "2023-05-29/2023-06-04"),
        ("the Friday before 9 June 2023", "2023-06-02"),
        ("two days before last Friday", "2023-05-03"),
        ("May 5th", "2023-05-05"),
        ("the 9th", "2023-04-09"),
        ("昨天", "2023-05-07"),
        ("上周五", "2023-05-05"),
        ("三个月前", "2023-02"),
    ],
)
def test_times_before_the_day(words: str, iso: str) -> None:
    assert [period for _, period in resolve(f"It was {words}.")] == [iso]


@pytest.mark.parametrize(
    ("words", "iso"),
    [
        ("tomorrow", "2023-05-09"),
        ("in three weeks", "2023-05-29/2023-06-04"),
        ("next month", "2023-06"),
        ("this weekend", "2023-05-13/2023-05-14"),
        ("Tuesday next week", "2023-05-16"),
        ("the week after next", "2023-05-22/2023-05-28"),
        ("in two months' time", "2023-07"),
        ("in June", "2023-06"),
        ("the 20th", "2023-05-20"),
        ("下周", "2023-05-15/2023-05-21"),
    ],
)
def test_times_after_the_day(words: str, iso: str) -> None:
    assert [period for _, period in resolve(f"It will be {words}.", tense="future")] == [iso]


@pytest.mark.parametrize(
    "words",
    [
        "a few years ago",
        "a couple of weeks ago",
        "the other day",
        "half a year ago",
        "a year and a half ago",
        "more than two years ago",
        "a week before the wedding",
        "the day after my birthday",
        "five decades ago",
    ],
)
def test_vague_times_are_not_resolved(words: str) -> None:
    assert [period for _, period in resolve(f"It was {words} or so.")] == [None]


@pytest.mark.parametrize("text", ["It may rain.", "They march in.", "on the 5th floor", "a day of rest", "week of joy"])
def test_words_that_are_no_times(text: str) -> None:
    assert not find_times(text)


def test_a_day_that_the_calendar_lacks_is_not_resolved() -> None:
    assert resolve("two years ago", date(1, 1, 1)) == [("two years ago", None)]
    assert resolve("tomorrow", date.max, "future") == [("tomorrow", None)]
    assert resolve("on 29 February", date(2023, 5, 8)) == [("29 February", "2020-02-29")]


@pytest.mark.parametrize(
    ("unit", "number"), [("10:15,", 20), ("10:15 am ", 20), ("10:15-", 26), ("Mon ", 500), (" ", 4000), (", ", 2000)]
)
def test_a_line_that_is_made_to_be_slow_is_read_at_once(unit: str, number: int) -> None:
    line = f"{unit * number}x 8 May 2023 {unit * number}x"
    before = time.process_time()
    assert [line[stamp.start : stamp.end] for stamp in find_stamps(line)] in ([], ["8 May 2023"])
    assert time.process_time() - before < 1, "the parts of each time are tried anew"
