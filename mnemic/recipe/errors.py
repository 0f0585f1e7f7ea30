"""The error of a recipe, and the words that its messages share."""

import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal


class ConfigError(ValueError):
    """The user's recipe is wrong; the message says where and what would be right."""


def spoken(wanted: Any) -> str:
    """A type in words a recipe's writer knows."""
    words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    words |= {Path: "a path", type(None): "nothing"}
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is Literal:
        return "one of " + listed(repr(part) for part in parts)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(spoken(part) for part in parts)
    if origin in (list, tuple, Sequence):
        many = f" of {count}" if (count := count_of(wanted)) else ""
        return f"a list{many}, each item {spoken(parts[0])}"
    if origin in (dict, Mapping):
        return "a table { … }"
    return words.get(wanted, str(wanted))


def count_of(wanted: Any) -> int:
    """How many items ``tuple[float, float]`` has; 0 for a list of any length."""
    parts = typing.get_args(wanted)
    return len(parts) if typing.get_origin(wanted) is tuple and Ellipsis not in parts else 0


def listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def near(word: object, known: Iterable[str]) -> str:
    """A hint for a slip of the finger, or nothing."""
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
