"""The error that a wrong recipe raises, and helpers for its messages."""

import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal


class ConfigError(ValueError):
    """A mistake in the user's recipe; the message says where, and what would be right.

    >>> try:
    ...     mnemic.load_recipe("memn2n", ["trian.epochs=5"])
    ... except mnemic.ConfigError as error:
    ...     print(error)
    recipe memn2n has no section 'trian' (did you mean 'train'?); sections: ...
    """


def type_name(annotation: Any) -> str:
    """Describe a type annotation in plain English, for error messages."""
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    names |= {Path: "a path", type(None): "nothing"}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return "one of " + join_words(repr(argument) for argument in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(argument) for argument in arguments)
    if origin in (list, tuple, Sequence):
        length = f" of {count}" if (count := tuple_length(annotation)) else ""
        return f"a list{length}, each item {type_name(arguments[0])}"
    if origin in (dict, Mapping):
        return "a table { … }"
    return names.get(annotation, str(annotation))


def tuple_length(annotation: Any) -> int:
    """Return the length of a fixed-size tuple type; 0 for any other type."""
    arguments = typing.get_args(annotation)
    return len(arguments) if typing.get_origin(annotation) is tuple and Ellipsis not in arguments else 0


def join_words(words: Iterable[str]) -> str:
    """Join words with commas."""
    return ", ".join(words)


def did_you_mean(word: object, candidates: Iterable[str]) -> str:
    """Return a hint with the candidate spelled most like ``word``; empty if none is close."""
    matches = difflib.get_close_matches(str(word), list(candidates), n=1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""
