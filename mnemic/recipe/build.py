"""Build objects from a recipe: a constructor's typed keyword arguments are the schema."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from mnemic.recipe.bounds import check_numbers
from mnemic.recipe.errors import ConfigError, did_you_mean, join_words, tuple_length, type_name
from mnemic.recipe.merge import merge_recipes

T = TypeVar("T")


def build(constructors: Mapping[str, Callable[..., T]], spec: Mapping[str, Any], **context: Any) -> T:
    """Build the object whose constructor a spec's ``kind`` names.

    The other keys of ``spec`` are the constructor's keyword arguments. ``context`` holds values
    that the caller knows (width, vocab ...): the constructor gets those that it has a parameter
    for, and a recipe may not set them.
    """
    constructor = kind_of(constructors, spec)
    options = {key: value for key, value in spec.items() if key != "kind"}
    return construct(constructor, options, name=kind_name(spec), **context)


def kind_of(constructors: Mapping[str, Callable[..., T]], spec: Mapping[str, Any]) -> Any:
    """Return the class that a spec's ``kind`` names, to ask what it can do."""
    if not isinstance(spec, Mapping):
        kinds = spec if isinstance(spec, str) and spec in constructors else next(iter(constructors))
        raise ConfigError(f'a part is a table such as {{ kind = "{kinds}" }}, not {spec!r}')
    kind = kind_name(spec)
    if not isinstance(kind, str) or kind not in constructors:
        raise ConfigError(
            f"no kind {kind!r} here{did_you_mean(kind, constructors)}; known kinds: {join_words(constructors)}"
        )
    return constructors[kind]


def kind_name(spec: Mapping[str, Any]) -> Any:
    """Return the name of a spec's kind, to print or to save."""
    return spec.get("kind")


def construct(constructor: Callable[..., T], options: Mapping[str, Any], *, name: str, **context: Any) -> T:
    """Call a constructor with a recipe's options after checking their names and types.

    ``name`` is what error messages call the object; ``context`` is as in ``build``.
    """
    if not isinstance(options, Mapping):
        raise ConfigError(f"{name} is a table {{ … }}, not {options!r}")
    parameters = parameters_of(constructor)
    options = {key: complete_spec(value, parameters.get(key)) for key, value in options.items()}
    passed = {key: value for key, value in context.items() if key in parameters}
    accepted = [key for key in parameters if key not in passed]
    for key, value in options.items():
        if key not in accepted:
            choices = join_words(accepted) if accepted else "no options"
            raise ConfigError(f"{name} does not take {key!r}{did_you_mean(key, accepted)}; it takes {choices}")
        expected = type_hints_of(constructor)[key]
        if not matches_type(value, expected):
            raise ConfigError(f"{name}.{key} is {type_name(expected)}, not {value!r}")
        if key != "seed":
            check_numbers(value, f"{name}.{key}")
    needed = [k for k in accepted if parameters[k].default is inspect.Parameter.empty]
    if missing := [key for key in needed if key not in options]:
        raise ConfigError(f"{name} needs {join_words(missing)}; add it to the recipe or use --set")
    return constructor(**passed, **options)


def select_kinds(constructors: Mapping[str, Callable[..., T]], **attributes: Any) -> dict[str, Callable[..., T]]:
    """Select the kinds whose class attributes have these values.

    A missing attribute counts as False or None.
    """
    return {
        kind: constructor
        for kind, constructor in constructors.items()
        if all((getattr(constructor, name, None) or None) == (value or None) for name, value in attributes.items())
    }


def require_kinds(
    constructors: Mapping[str, Callable[..., T]], spec: Mapping[str, Any], purpose: str, **attributes: Any
) -> dict[str, Callable[..., T]]:
    """Select kinds by class attributes; raise if a spec's kind lacks them.

    ``purpose`` says where the kind cannot be used, such as "in a decoder".
    """
    selected = select_kinds(constructors, **attributes)
    kind_of(constructors, spec)
    if kind_name(spec) not in selected:
        raise ConfigError(f"kind {kind_name(spec)!r} cannot be used {purpose}; use one of {join_words(selected)}")
    return selected


def complete_spec(value: Any, parameter: inspect.Parameter | None) -> Any:
    """Merge a spec without a ``kind`` into the parameter's default spec.

    So ``attention = { heads = 8 }`` changes one option of the default attention. Any other value
    comes back as it is.
    """
    default = parameter.default if parameter else None
    if isinstance(value, Mapping) and isinstance(default, Mapping) and "kind" in default:
        return value if "kind" in value else merge_recipes(dict(default), dict(value))
    return value


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function that can be passed by name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters
    return {key: parameter for key, parameter in parameters.items() if parameter.kind in kinds}


def type_hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type hints of a function's arguments (of ``__init__`` for a class)."""
    target = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    return typing.get_type_hints(target)


def matches_type(value: Any, expected: Any) -> bool:
    """Check whether a TOML value is valid for a type annotation."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if expected is Any:
        return True
    if origin is Literal:
        return value in arguments
    if origin in (typing.Union, types.UnionType):
        return any(matches_type(value, argument) for argument in arguments)
    if origin in (list, tuple, Sequence):
        if not isinstance(value, list | tuple) or len(value) != (tuple_length(expected) or len(value)):
            return False
        return all(matches_type(item, (*arguments, Any)[0]) for item in value)
    if origin in (dict, Mapping) or expected in (dict, Mapping):
        return isinstance(value, Mapping)
    if expected is None or expected is type(None):
        return value is None
    if isinstance(value, bool):
        return expected is bool
    if expected is float:
        return isinstance(value, int | float)
    if expected is Path:
        return isinstance(value, str | Path)
    return isinstance(value, expected)
