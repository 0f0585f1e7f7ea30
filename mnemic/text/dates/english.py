"""Count English times from a day: yesterday, last week, two days ago.

A time is as long as its unit: "two weeks ago" is a week (Monday to Sunday), "last month" a month.
"Last Friday" is the last one before the day, "next Tuesday" the next after it; seasons are those of
the north. What only says "a few years ago" is not resolved.
"""

import re

from mnemic.text.dates.absolute import MONTH_PATTERN, parse_month
from mnemic.text.dates.period import Period, make_day, make_week
from mnemic.text.dates.rule import Clock, Resolver, Rule, drop, reject
from mnemic.text.dates.units import (
    SEASONS,
    find_day_of_month,
    find_month,
    find_month_near,
    find_season,
    find_season_near,
    find_weekday_near,
    find_weekend_near,
    shift_day,
    shift_units,
    shift_weekday,
)

NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SHORT_WEEKDAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FULL_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
NUMBER = rf"(?P<number>\d{{1,3}}|an?|{'|'.join(NUMBER_WORDS)})"
UNIT = "(?P<unit>day|night|week|weekend|fortnight|month|year|decade)s?"
SINGLE = "(?P<unit>day|morning|afternoon|evening|night|weekend|week|month|year)"
SEASON = rf"(?P<season>{'|'.join(SEASONS)})"
# "may" and "march" are also verbs, "sun" is also a star: these have a capital letter.
MONTH = rf"(?P<month>(?-i:May|Mar(?:ch)?)|(?!may|mar)(?:{MONTH_PATTERN}))"
NAMED = (
    rf"(?:(?P<unit>weekend|week|month|year|decade)|(?P<weekday>{FULL_WEEKDAY}|(?-i:{SHORT_WEEKDAYS})\b)"
    rf"|{MONTH}|{SEASON})"
)
STEP = "(?P<step>this past|this coming|last|past|this|current|next|coming|upcoming)"
STEPS = {"last": -1, "past": -1, "this": 0, "current": 0, "next": 1, "coming": 1, "upcoming": 1}
_PART = r"(?: (?:early |late )?(?:morning|afternoon|evening|night|noon|lunchtime|at noon|at night))?"
_ABOUT = "(?:(?:about|around|almost|nearly|exactly|roughly|just) )?"
_VAGUE = r"(?:(?:a )?(?:few|couple(?: of)?|number of|handful of)|several|some|many|half an?)"
_EARLY = r"(?:(?:early|late|earlier|later|sometime|mid) )?"
_CLAUSE_END = r"(?=\s*(?:[.,;:!?)\]…\"”]|\Z|\n|\s(?:and|but|so|because|already|when)\b))"
_CALLED_MONTH = "in|during|since|until|till|by|of|from|back in|early|late|mid"
MONTH_LENGTHS = {"week": 7, "month": 30, "year": 365}  # days of "over the last month"


def count_number(text: str) -> int:
    """Return the number that a word or digits say; of an article 1."""
    text = text.lower()
    return int(text) if text.isdigit() else NUMBER_WORDS.index(text) + 1 if text in NUMBER_WORDS else 1


def get_weekday(text: str) -> int:
    """Return the number of a weekday, from 0 for Monday."""
    return WEEKDAYS.index(text[:3].lower())


def shift_by_days(number: int) -> Resolver:
    """Return a resolver that shifts by a number of days."""
    return lambda match, clock: shift_day(clock, number)


def make_number_shift(sign: int) -> Resolver:
    """Return a resolver that shifts by the number of units in the match."""
    return lambda match, clock: shift_units(clock, match["unit"].lower(), sign * count_number(match["number"]))


def shift_by_unit(number: int) -> Resolver:
    """Return a resolver that shifts by a number of the match's units."""
    return lambda match, clock: shift_units(clock, match["unit"].lower(), number)


def resolve_coming(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "in two weeks"; of what is past it says how long it took."""
    return None if clock.tense == "past" else make_number_shift(1)(match, clock)


def resolve_named(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "last week", "next Tuesday", "this May", "last summer"."""
    return resolve_name(match, STEPS[match["step"].split()[-1].lower()], clock)


def resolve_second(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "the week before last" and "the Friday after next"."""
    return resolve_name(match, 2 * STEPS[match["step"].lower()], clock)


def resolve_name(match: re.Match[str], step: int, clock: Clock) -> Period | None:
    """Resolve the unit, weekday, month or season that a match names, some steps away."""
    if unit := (match["unit"] or "").lower():
        is_near = unit == "weekend" and not step and clock.tense == "past"
        return find_weekend_near(clock) if is_near else shift_units(clock, unit, step)
    if match["weekday"]:
        weekday = get_weekday(match["weekday"])
        return shift_weekday(clock, weekday, step) if step else find_this_weekday(clock, weekday)
    if match["month"]:
        month = parse_month(match["month"]) or 1
        return find_month(clock, month, step) if step else find_month_near(clock, month)
    season = match["season"].lower()
    return find_season(clock, season, step) if step else find_season_near(clock, season)


def find_this_weekday(clock: Clock, weekday: int) -> Period | None:
    """Return the weekday of this week, or its neighbor if the tense excludes it."""
    period = make_day(clock.day.fromordinal(make_week(clock.day).first.toordinal() + weekday))
    is_excluded = period.first > clock.day if clock.tense == "past" else period.first < clock.day
    return find_weekday_near(clock, weekday) if clock.tense and is_excluded else period


def resolve_rolling(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "over the last week": the days up to this one."""
    return Period(shift_day(clock, -MONTH_LENGTHS[match["unit"].lower()]).first, clock.day)


def resolve_weekday(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "on Friday"."""
    return find_weekday_near(clock, get_weekday(match["weekday"]))


def resolve_weekend(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "over the weekend"."""
    return find_weekend_near(clock)


def resolve_month(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "in May", and "back in May", which is never the month of the day."""
    if match.group().lower().startswith("back"):
        return find_month(clock, parse_month(match["month"]) or 1, -1)
    return find_month_near(clock, parse_month(match["month"]) or 1)


def resolve_season(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "in the summer"."""
    return find_season_near(clock, match["season"].lower())


def resolve_day_of_month(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve "on the 5th"."""
    return find_day_of_month(clock, int(match["day"]), None)


def make_rule(pattern: str, resolve: Resolver, *, is_anaphoric: bool = False) -> Rule:
    """Make a rule of a pattern for whole words; a blank is any white space."""
    words = pattern.replace(" ", r"\s+")
    return Rule(re.compile(rf"(?<![\w'’-])(?:{words})(?![\w-])", re.IGNORECASE), resolve, is_anaphoric)


RULES = (
    make_rule(rf"{_VAGUE} (?:\w+ )?{UNIT} (?:ago|back|earlier|later|before|after|from now)", reject),
    make_rule(rf"{NUMBER} {UNIT} and a half ago", reject),
    make_rule(rf"(?:\w+ and a half|\d+[.,]\d+) {UNIT} ago", reject),
    make_rule(rf"(?:(?:more|less) than|at least|over|under) {NUMBER} {UNIT} ago", reject),
    make_rule("(?:the other|one|some) (?:day|night|week|month|weekend)|a (?:long )?while (?:ago|back)", reject),
    make_rule(
        "(?:earlier |later )?today|tonight|just now|(?:a|one|two|\\w+) (?:minutes?|moments?) ago", shift_by_days(0)
    ),
    make_rule(rf"{_EARLY}this (?:morning|afternoon|evening|noon)", shift_by_days(0)),
    make_rule(rf"yesterday{_PART}|last (?:night|evening)", shift_by_days(-1)),
    make_rule(rf"(?:the )?day before yesterday{_PART}|(?:the )?night before last", shift_by_days(-2)),
    make_rule(rf"tomorrow{_PART}", shift_by_days(1)),
    make_rule(rf"(?:the )?day after tomorrow{_PART}", shift_by_days(2)),
    make_rule(rf"{_ABOUT}{NUMBER} {UNIT} (?:ago|back)", make_number_shift(-1)),
    make_rule("(?:a|one) week ago (?:today|to the day)", shift_by_days(-7)),
    make_rule("(?:a|one) week from (?:today|now)|today week", shift_by_days(7)),
    make_rule(rf"in {_ABOUT}{NUMBER} {UNIT}(?:['’]? time)?", resolve_coming),
    make_rule(rf"{NUMBER} {UNIT} from (?:now|today)", make_number_shift(1)),
    make_rule(rf"{_EARLY}{STEP} {NAMED}{_PART}", resolve_named),
    make_rule(rf"(?:the )?{NAMED} before (?P<step>last)(?! {FULL_WEEKDAY}| week| month| year)", resolve_second),
    make_rule(rf"(?:the )?{NAMED} after (?P<step>next)(?! {FULL_WEEKDAY}| week| month| year)", resolve_second),
    make_rule("(?:over|during|in|for|within) the (?:last|past) (?P<unit>week|month|year)", resolve_rolling),
    make_rule(rf"(?P<weekday>{FULL_WEEKDAY}){_PART}", resolve_weekday),
    make_rule(rf"(?:on|until|by|since|till) (?P<weekday>(?-i:{SHORT_WEEKDAYS})){_PART}", resolve_weekday),
    make_rule("(?:(?:over|on|at|during|for) )?the weekend", resolve_weekend),
    make_rule(rf"(?:{_CALLED_MONTH}) {_EARLY}{MONTH}(?: this year)?(?!,? (?:of )?['’]?\d)", resolve_month),
    make_rule(rf"(?:in|during|over|since) (?:the )?{_EARLY}{SEASON}", resolve_season),
    make_rule(
        r"(?:on )?the (?P<day>[12]?\d|3[01])(?:st|nd|rd|th)(?! (?!and |or |but |at |in )\w)", resolve_day_of_month
    ),
    make_rule(rf"{NUMBER} {UNIT} (?:later|afterwards|after{_CLAUSE_END})", make_number_shift(1), is_anaphoric=True),
    make_rule(rf"{NUMBER} {UNIT} (?:earlier|(?:before|prior){_CLAUSE_END})", make_number_shift(-1), is_anaphoric=True),
    make_rule(rf"the (?:very )?(?:next|following) {SINGLE}", shift_by_unit(1), is_anaphoric=True),
    make_rule(rf"the (?:previous|preceding) {SINGLE}", shift_by_unit(-1), is_anaphoric=True),
    make_rule(rf"the {SINGLE} after{_CLAUSE_END}", shift_by_unit(1), is_anaphoric=True),
    make_rule(rf"the {SINGLE} (?:before|prior){_CLAUSE_END}", shift_by_unit(-1), is_anaphoric=True),
    make_rule(rf"(?:that|the) (?:same|very) {SINGLE}", shift_by_unit(0), is_anaphoric=True),
    make_rule(rf"that {SINGLE}", shift_by_unit(0), is_anaphoric=True),
    make_rule(rf"(?:the|{NUMBER}) (?:{UNIT}|{FULL_WEEKDAY}) (?:before|after)", reject),
    make_rule(rf"(?:the|{NUMBER}) (?:{UNIT}|{FULL_WEEKDAY}) (?:prior to|from|following|of)", drop),
)
# Before another time, the last two are counted from it: "two days before last Friday".
BEFORE_TIME = make_rule(
    rf"(?:the|{NUMBER}) (?:{UNIT}|(?P<weekday>{FULL_WEEKDAY})) (?P<side>before|after|prior to|from|following|of)",
    reject,
).pattern
WEEKDAY_OF = re.compile(rf"(?P<weekday>{FULL_WEEKDAY}){_PART}\s*(?:of |in |,\s*)?\Z", re.IGNORECASE)
OF_WEEKDAY = re.compile(rf"(?:['’]s|,? on|,)?\s+(?P<weekday>{FULL_WEEKDAY}){_PART}\b", re.IGNORECASE)
PAST = re.compile(r"(?i)\b(?:did|was|were|has|had|have|been|went|got|came|saw|made|took|\w{3,}ed|ago)\b")
FUTURE = re.compile(
    r"(?i)\b(?:will|shall|won['’]t|going to|gonna|plan(?:s|ning)? (?:to|on)|about to|(?:is|are) due|would|can|should)\b"
    r"|['’]ll\b"
)
PRESENT = re.compile(r"(?i)\b(?:is|are|does|do|am)\b")
