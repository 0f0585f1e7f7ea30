"""Define rules for relative times: a pattern, and how it is resolved."""

import re
from collections.abc import Callable
from datetime import date
from typing import Literal, NamedTuple, TypeAlias

from mnemic.text.dates.period import Period

Tense: TypeAlias = Literal["past", "future"] | None


class Clock(NamedTuple):
    """A day to count from, and whether the event is past or to come."""

    day: date
    tense: Tense = None


Resolver: TypeAlias = Callable[[re.Match[str], Clock], Period | None]


class Rule(NamedTuple):
    """A pattern of words, and how a match is resolved.

    An anaphoric time ("the next day") is counted from the time that the text named before, another
    from the day on which it was said.
    """

    pattern: re.Pattern[str]
    resolve: Resolver
    is_anaphoric: bool = False


def reject(match: re.Match[str], clock: Clock) -> None:
    """Resolve nothing: the words are too vague, as "a few years ago"."""


def drop(match: re.Match[str], clock: Clock) -> None:
    """Resolve nothing: the words are no time unless one follows, as "the week of"."""
