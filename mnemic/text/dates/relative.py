"""Find times that are counted from a day, and resolve them.

>>> from datetime import date
>>> (time,) = find_times("We went to the museum last week.")
>>> resolve_time(time, Clock(date(2023, 5, 8), "past")).iso
'2023-05-01/2023-05-07'
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from mnemic.text.dates import chinese, english
from mnemic.text.dates.absolute import DateMention, find_dates
from mnemic.text.dates.period import Period, find_weekday, make_day
from mnemic.text.dates.rule import Clock, Rule, Tense, drop
from mnemic.text.dates.units import find_day_of_month, shift_units

ANY_DAY = date(2001, 5, 16)
RULES: tuple[Rule, ...] = (*english.RULES, *chinese.RULES)


class TimeSpan(NamedTuple):
    """A time in a text, with the rule or the date that resolves it.

    ``base`` is the time that it is counted from, if the text names it: "two days before Friday".
    """

    start: int
    end: int
    match: re.Match[str] | None
    rule: Rule | None = None
    mention: DateMention | None = None
    base: "TimeSpan | None" = None

    @property
    def is_relative(self) -> bool:
        """Whether it needs a day to be counted from."""
        if self.base is not None:
            return self.base.is_relative
        return self.mention is None or self.mention.year is None

    @property
    def is_anaphoric(self) -> bool:
        """Whether it is counted from the time that the text named before."""
        return self.base is None and self.rule is not None and self.rule.is_anaphoric


def find_times(text: str, dates: Sequence[DateMention] | None = None) -> list[TimeSpan]:
    """Find the times of a text, relative ones and dates, in order."""
    spans = [TimeSpan(mention.start, mention.end, None, mention=mention) for mention in dates or find_dates(text)]
    for rule in RULES:
        spans += [TimeSpan(*match.span(), match, rule) for match in rule.pattern.finditer(text)]
    spans.sort(key=lambda span: (span.start - span.end, span.start))
    disjoint: list[TimeSpan] = []
    for span in spans:
        if all(span.end <= longer.start or longer.end <= span.start for longer in disjoint):
            disjoint.append(span)
    return join_times(text, sorted(disjoint, key=lambda span: span.start))


def join_times(text: str, spans: Sequence[TimeSpan]) -> list[TimeSpan]:
    """Join times that say one time together: "two days before" and "last Friday"."""
    joined: list[TimeSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last and (head := match_head(text, last, span)):
            joined[-1] = TimeSpan(last.start, span.end, head, base=span)
            continue
        if last and (weekday := match_weekday(text, last, span)):
            week = span if weekday.re is english.WEEKDAY_OF else last
            joined[-1] = TimeSpan(last.start, span.end, weekday, base=week)
            continue
        joined.append(span)
    return [span for span in joined if span.rule is None or span.rule.resolve is not drop]


def match_head(text: str, first: TimeSpan, second: TimeSpan) -> re.Match[str] | None:
    """Match what a time right behind it is the base of: "two days before" Friday."""
    if first.match is None or text[first.end : second.start].strip():
        return None
    return english.BEFORE_TIME.fullmatch(text, first.start, first.end)


def match_weekday(text: str, first: TimeSpan, second: TimeSpan) -> re.Match[str] | None:
    """Match the weekday of a weekday and its week: "Friday last week"."""
    if first.base or second.base or second.start - first.end > len(", of "):
        return None
    if has_week_unit(second) and (match := english.WEEKDAY_OF.fullmatch(text, first.start, second.start)):
        return match
    return english.OF_WEEKDAY.fullmatch(text, first.end, second.end) if has_week_unit(first) else None


def has_week_unit(span: TimeSpan) -> bool:
    """Check whether a time is a week: "last week", "two weeks ago"."""
    return span.match is not None and (span.match.groupdict().get("unit") or "").lower() == "week"


def resolve_time(span: TimeSpan, clock: Clock) -> Period | None:
    """Return the period of a relative time; None if it is too vague."""
    try:
        return resolve_joined(span, clock) if span.base else resolve_single(span, clock)
    except (ValueError, OverflowError):  # there is no such day, or not in our calendar
        return None


def resolve_single(span: TimeSpan, clock: Clock) -> Period | None:
    """Return the period of a rule's match, or of a date without year."""
    if span.mention is None:
        return span.rule.resolve(span.match, clock) if span.rule and span.match else None
    periods = span.mention.read()
    if span.mention.year is None and span.mention.day is not None:
        return find_day_of_month(clock, span.mention.day, span.mention.month)
    return periods[0] if len(periods) == 1 else None


def resolve_joined(span: TimeSpan, clock: Clock) -> Period | None:
    """Return the period of a time that is counted from another one."""
    assert span.base is not None, "only joined times come here"
    assert span.match is not None, "a joined time has a match"
    base = resolve_single(span.base, clock)
    if base is None:
        return None
    fields = span.match.groupdict()
    side, unit, weekday = fields.get("side", "").lower(), (fields.get("unit") or "").lower(), fields["weekday"]
    if not side:
        return make_day(base.first + timedelta(english.get_weekday(weekday)))
    is_before = side in ("before", "prior to")
    if weekday:
        return find_weekday(base.first if is_before else base.last, english.get_weekday(weekday), after=not is_before)
    if side == "of":
        return shift_units(Clock(base.first), unit, 0) if unit.startswith("week") and base.is_day else base
    number = english.count_number(fields["number"] or "one") * (-1 if is_before else 1)
    return shift_units(Clock(base.first if is_before else base.last), unit, number)


def fits_tense(span: TimeSpan, tense: Tense) -> bool:
    """Check that a time fits an event that is past or to come."""
    if tense is None or not span.is_relative or span.is_anaphoric:
        return True
    period = resolve_time(span, Clock(ANY_DAY, tense))
    return period is None or not (period.first > ANY_DAY if tense == "past" else period.last < ANY_DAY)


def guess_tense(*texts: str) -> Tense:
    """Guess from the verbs of texts whether an event is past or to come.

    >>> guess_tense("When did Anna come?"), guess_tense("When is the meeting?")
    ('past', 'future')
    """
    for text in texts:
        if english.FUTURE.search(text):
            return "future"
        if english.PAST.search(text):
            return "past"
        if english.PRESENT.search(text):
            return "future"
    return None
