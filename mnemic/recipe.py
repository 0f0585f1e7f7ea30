"""From a recipe (TOML) to parts: one loader, dotted overrides, and the one factory ``build``.

A recipe is a plain dictionary with a few known sections. It holds only what differs from the
parts' defaults; a constructor's typed keyword arguments are its schema. Every mistake of the
user raises ``ConfigError``, which says where it is, what came and what would be right.
"""

import difflib
import inspect
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Recipe = dict[str, Any]

RECIPES = Path(__file__).with_name("recipes")
SECTIONS = ("model", "data", "objective", "train", "phases", "started")
CHANGED = ("model", "objective", "train")  # what a phase may change; the data stays the same


class ConfigError(ValueError):
    """The user's recipe is wrong; the message says where and what would be right."""


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


def load(
    name: str | Path,
    sets: Sequence[str] = (),
    *,
    change: Callable[[Recipe], Recipe] | None = None,
) -> Recipe:
    """Read a recipe by name (``memn2n``) or path, with its ``base`` and the ``--set`` overrides.

    ``change`` is done to it before those.
    """
    path = find(name)
    recipe = read(path) if change is None else change(read(path))
    for text in sets:
        key, value = assignment(text)
        recipe = override(recipe, key, value)
    check_sections(recipe, f"recipe {path.stem}", SECTIONS)
    return recipe


def read(path: Path, above: tuple[Path, ...] = ()) -> Recipe:
    """A recipe laid over its bases. A base's path is meant from where the recipe lies."""
    if path in above:
        raise ConfigError(f"the base of {path} leads back to itself")
    try:
        recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no valid TOML: {error}") from None
    if "base" not in recipe:
        return recipe
    base = recipe.pop("base")
    if not isinstance(base, str):
        raise ConfigError(f"the base of {path} is a recipe's name or path, not {base!r}")
    place = path.parent / base if base.endswith(".toml") else base
    return merge(read(find(place), (*above, path)), recipe)


def check_sections(recipe: Recipe, name: str, known: Sequence[str]) -> None:
    """Every section is a known one and a table; ``phases`` is a list of pieces of recipe."""
    for key, value in recipe.items():
        if key not in known:
            hint = near(key, known)
            raise ConfigError(f"{name} has no section {key!r}{hint}; sections: {listed(known)}")
        if key == "phases":
            if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
                raise ConfigError(f"'phases' is a list of tables [[phases]], not {value!r}")
            for number, part in enumerate(value):
                check_sections(part, f"phases.{number}", CHANGED)
        elif not isinstance(value, Mapping):
            raise ConfigError(f"{key!r} is a table {{ … }}, not {value!r}")
        elif key == "started":  # what is otherwise where weights are already there
            check_sections(dict(value), key, CHANGED)


def find(name: str | Path) -> Path:
    """The file of a shipped recipe, or the path itself if it is one."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ConfigError(f"no recipe file {str(path)!r}")
        return path
    known = names()
    if str(name) not in known:
        raise ConfigError(
            f"no recipe {str(name)!r}{near(str(name), known)}; known recipes: {listed(known)} "
            "(or give the path of a .toml file)"
        )
    return RECIPES / f"{name}.toml"


def names() -> list[str]:
    """The names of the recipes that ship with the package."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def about(name: str | Path) -> str:
    """The recipe's first comment: the paper and its published score."""
    lines = find(name).read_text(encoding="utf-8").splitlines()
    comment = []
    for line in lines:
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# ").rstrip())
    return "\n".join(comment)


def assignment(text: str) -> tuple[str, Any]:
    """``train.rate=0.1`` → ``("train.rate", 0.1)``; a value that is no TOML is taken as text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set takes KEY=VALUE, for example train.rate=0.01, not {text!r}")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def override(recipe: Mapping[str, Any], key: str, value: Any) -> Recipe:
    """A new recipe in which the dotted ``key`` has ``value``; a number picks from a list."""
    head, _, rest = key.partition(".")
    changed = dict(recipe)
    if rest and isinstance(changed.get(head), list):
        items, (place, _, deeper) = list(changed[head]), rest.partition(".")
        if not place.isdigit() or int(place) >= len(items) or not deeper:
            raise ConfigError(f"cannot set {key!r}: {head!r} has items 0 to {len(items) - 1}")
        items[int(place)] = override(items[int(place)], deeper, value)
        return changed | {head: items}
    if rest:
        inner = changed.get(head, {})
        if not isinstance(inner, Mapping):
            raise ConfigError(f"cannot set {key!r}: {head!r} holds {inner!r}, which has no parts")
        changed[head] = override(inner, rest, value)
    else:
        changed[head] = value
    return changed


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Recipe:
    """``base`` with what ``over`` changes; a part of another kind replaces the whole part."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            same = value.get("kind", old.get("kind")) == old.get("kind")
            merged[key] = merge(old, value) if same else dict(value)
        else:
            merged[key] = value
    return merged


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


def count_of(wanted: Any) -> int:
    """How many items ``tuple[float, float]`` has; 0 for a list of any length."""
    parts = typing.get_args(wanted)
    return len(parts) if typing.get_origin(wanted) is tuple and Ellipsis not in parts else 0


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


def listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def near(word: object, known: Iterable[str]) -> str:
    """A hint for a slip of the finger, or nothing."""
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
