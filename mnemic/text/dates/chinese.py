"""Chinese words for times that are counted from a day: 昨天, 上周五, 三个月前.

This is all that another language has to bring: a tuple of rules, which ``relative`` lists.
"""

import re

from mnemic.text.dates.period import Period, make_day, make_week
from mnemic.text.dates.rule import Clock, Resolver, Rule
from mnemic.text.dates.units import shift_day, shift_units, shift_year

DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "当": 0, "明": 1, "后": 2, "大后": 3}
YEARS = {"前": -2, "去": -1, "今": 0, "明": 1, "后": 2}
STEPS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}
_DIGITS = "一二三四五六七八九十"
_UNIT = "(?P<unit>天|日|周|星期|礼拜|月|年)"


def count_digits(text: str) -> int:
    """Return the number that digits say, up to ten in Chinese."""
    return int(text) if text.isdigit() else _DIGITS.index(text.replace("两", "二")) + 1


def resolve_step(match: re.Match[str], clock: Clock) -> Period | None:
    """Resolve 上周, 下个月, 上周五."""
    step = STEPS[match["step"]]
    if not match["weekday"]:
        return shift_units(clock, "weekend" if match["weekend"] else UNITS[match["unit"]], step)
    weekday = 6 if match["weekday"] in "日天" else count_digits(match["weekday"]) - 1
    return make_day(clock.day.fromordinal(make_week(clock.day).first.toordinal() + 7 * step + weekday))


def make_number_shift(sign: int) -> Resolver:
    """Return a resolver that shifts by the number of units in the match."""
    return lambda match, clock: shift_units(clock, UNITS[match["unit"]], sign * count_digits(match["number"]))


RULES = (
    Rule(
        re.compile(r"(?P<day>大前|前|昨|今|当|明|大后|后)(?:天|日)|(?P<short>昨|今|明)(?=[晚早晨夜])"),
        lambda match, clock: shift_day(clock, DAYS[match["day"] or match["short"]]),
    ),
    Rule(re.compile("(?P<year>前|去|今|明|后)年"), lambda match, clock: shift_year(clock, YEARS[match["year"]])),
    Rule(
        re.compile(
            rf"(?P<step>上上|上|这|本|下下|下)(?:一)?个?{_UNIT}(?:(?P<weekend>末)|(?P<weekday>[一二三四五六日天]))?"
        ),
        resolve_step,
    ),
    Rule(re.compile(rf"(?P<number>\d{{1,3}}|[{_DIGITS}两])个?{_UNIT}(?:之|以)?前"), make_number_shift(-1)),
    Rule(re.compile(rf"(?P<number>\d{{1,3}}|[{_DIGITS}两])个?{_UNIT}(?:之|以)?后"), make_number_shift(1)),
)
