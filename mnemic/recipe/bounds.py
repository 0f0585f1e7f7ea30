"""Bounds on the numbers and the nesting of recipes, which may come from strangers.

They are far beyond any sensible value: what they refuse would run for years or fill any machine.
"""

from collections.abc import Mapping
from typing import Any

from mnemic.recipe.errors import ConfigError

MAX_NUMBER = 10**9  # of any whole number in a recipe
MAX_REPEATS = 1000  # of layers, hops and passes, each of which is built or run in turn
MAX_NESTING = 100  # of tables and lists in each other


def check_numbers(value: Any, name: str) -> None:
    """Raise a ConfigError if a whole number in ``value`` is beyond all bounds."""
    if isinstance(value, list | tuple):
        for item in value:
            check_numbers(item, name)
    elif isinstance(value, int) and abs(value) > MAX_NUMBER:
        number = f"{value:,}" if abs(value) < 10**30 else f"one of {value.bit_length()} bits"
        raise ConfigError(f"{name} is a whole number of at most {MAX_NUMBER:,}, not {number}")


def check_repeats(**counts: int) -> None:
    """Raise a ConfigError if one of the named counts is above ``MAX_REPEATS``."""
    for name, count in counts.items():
        if count > MAX_REPEATS:
            raise ConfigError(f"{name} is at most {MAX_REPEATS}, not {count:,}")


def is_too_deep(value: Any) -> bool:
    """Return whether tables and lists are nested deeper than ``MAX_NESTING``."""
    level = [value]
    for _ in range(MAX_NESTING):
        level = [item for table in level for item in _items_of(table)]
        if not level:
            return False
    return True


def _items_of(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, Mapping | list)]
