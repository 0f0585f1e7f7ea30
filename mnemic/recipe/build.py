"""Build a part from a recipe: the constructor's typed keyword arguments are the schema."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from mnemic.recipe.errors import ConfigError, count_of, listed, near, spoken
from mnemic.recipe.merge import merge

T = TypeVar("T")


def build(table: Mapping[str, Callable[..., T]], spec: Mapping[str, Any], **given: Any) -> T:
    """Make the part that ``spec["kind"]`` names; the maker's own signature is the schema.

    ``given`` are facts the caller knows (width, vocab ...): the maker gets those it names, and
    a recipe may not set them.
    """
    if not isinstance(spec, Mapping):
        kinds = spec if isinstance(spec, str) and spec in table else next(iter(table))
        raise ConfigError(f'a part is a table such as {{ kind = "{kinds}" }}, not {spec!r}')
    options = dict(spec)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in table:
        raise ConfigError(f"no kind {kind!r} here{near(kind, table)}; known kinds: {listed(table)}")
    return fill(table[kind], options, name=kind, **given)


def fill(maker: Callable[..., T], options: Mapping[str, Any], *, name: str, **given: Any) -> T:
    """Call ``maker`` with the recipe's ``options``, each checked by name and type."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"{name} is a table {{ … }}, not {options!r}")
    parameters = named(maker)
    options = {key: whole(value, parameters.get(key)) for key, value in options.items()}
    offered = {key: value for key, value in given.items() if key in parameters}
    accepted = [key for key in parameters if key not in offered]
    for key, value in options.items():
        if key not in accepted:
            takes = listed(accepted) if accepted else "no options"
            raise ConfigError(
                f"{name} does not take {key!r}{near(key, accepted)}; it takes {takes}"
            )
        wanted = hints(maker)[key]
        if not fits(value, wanted):
            raise ConfigError(f"{name}.{key} is {spoken(wanted)}, not {value!r}")
    needed = [k for k in accepted if parameters[k].default is inspect.Parameter.empty]
    if missing := [key for key in needed if key not in options]:
        raise ConfigError(f"{name} needs {listed(missing)}; add it to the recipe or use --set")
    return maker(**offered, **options)


def whole(value: Any, parameter: inspect.Parameter | None) -> Any:
    """What is set of a part that has a default and is not named anew: that, so changed."""
    default = parameter.default if parameter else None
    if isinstance(value, Mapping) and isinstance(default, Mapping) and "kind" in default:
        return value if "kind" in value else merge(dict(default), dict(value))
    return value


def named(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The arguments a maker has a name for."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    every = inspect.signature(maker).parameters
    return {key: parameter for key, parameter in every.items() if parameter.kind in kinds}


def hints(maker: Callable[..., Any]) -> dict[str, Any]:
    """The types of a maker's arguments (of ``__init__`` for a class)."""
    target = maker.__init__ if isinstance(maker, type) else maker  # type: ignore[misc]
    return typing.get_type_hints(target)


def fits(value: Any, wanted: Any) -> bool:
    """Whether a TOML value may stand where ``wanted`` is asked for."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any:
        return True
    if origin is Literal:
        return value in parts
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin in (list, tuple, Sequence):
        if not isinstance(value, list | tuple) or len(value) != (count_of(wanted) or len(value)):
            return False
        return all(fits(item, (*parts, Any)[0]) for item in value)
    if origin in (dict, Mapping) or wanted in (dict, Mapping):
        return isinstance(value, Mapping)
    if wanted is None or wanted is type(None):
        return value is None
    if isinstance(value, bool):
        return wanted is bool
    if wanted is float:
        return isinstance(value, int | float)
    if wanted is Path:
        return isinstance(value, str | Path)
    return isinstance(value, wanted)
