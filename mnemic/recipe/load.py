"""Load a recipe by its name or path, with its base and dotted overrides."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemic.recipe.errors import ConfigError, listed, near
from mnemic.recipe.merge import Recipe, merge

RECIPES = Path(__file__).parents[1] / "recipes"
SECTIONS = ("model", "data", "objective", "train", "phases", "started")
CHANGED = ("model", "objective", "train")  # what a phase may change; the data stays the same


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
