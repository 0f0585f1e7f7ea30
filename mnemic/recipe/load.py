"""Load a recipe by name or path, with its base recipes and dotted overrides."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from mnemic.recipe.bounds import MAX_NESTING, is_too_deep
from mnemic.recipe.errors import ConfigError, did_you_mean, join_words
from mnemic.recipe.merge import Recipe, merge_recipes
from mnemic.recipe.migrate import RECIPES, migrate_override, migrate_recipe

RECIPES_FOLDER = Path(__file__).parents[1] / "recipes"
SECTIONS = ("model", "data", "objective", "train", "phases", "pretrained", "teacher")
PHASE_SECTIONS = ("model", "objective", "train")  # a phase may change these; the data stays the same
MAX_BASES = 50  # recipes that build on each other
MAX_BYTES = 1_000_000  # of a recipe's file
TOO_DEEP = f"is nested too deeply; a recipe has at most {MAX_NESTING} tables or lists in each other"
TASK_SECTIONS = ("model", "data", "objective", "train", "phases")


def load_recipe(
    name: str | Path,
    sets: Sequence[str] = (),
    *,
    task: int | None = None,
    change: Callable[[Recipe], Recipe] | None = None,
) -> Recipe:
    """Load a recipe by name (``memn2n``) or path, with its ``base`` and overrides.

    ``sets`` are overrides such as ``train.rate=0.1``; ``change`` edits the recipe before them. With
    ``task`` the recipe's settings for that bAbI task (``[tasks.3]``) are merged over the others.

    >>> mnemic.load_recipe("memn2n", ["model.memory.hops=5"])["model"]["memory"]["hops"]
    5
    >>> mnemic.load_recipe("entnet")["data"]["sentences"]
    70
    >>> mnemic.load_recipe("entnet", task=3)["data"]["sentences"]
    130
    """
    recipe = select_task(read_with_base(name), task)
    recipe = recipe if change is None else change(recipe)
    for text in sets:
        recipe = override(recipe, *migrate_override(*parse_assignment(text)))
    check_sections(recipe, f"recipe {find_recipe(name).stem}", SECTIONS)
    return recipe


def load_task_settings(name: str | Path) -> dict[str, Recipe]:
    """Load a recipe's settings for single tasks, by the task's number as a string."""
    return read_with_base(name).get("tasks", {})


def select_task(recipe: Recipe, task: int | None) -> Recipe:
    """Merge the settings of one task over a recipe; drop the others."""
    tasks = recipe.get("tasks", {})
    if not isinstance(tasks, Mapping) or not all(number.isdigit() for number in tasks):
        raise ConfigError(f"'tasks' holds one table per bAbI task, such as [tasks.3], not {tasks!r}")
    check_sections(dict(tasks), "tasks", tuple(tasks))
    for number, settings in tasks.items():
        check_sections(settings, f"tasks.{number}", TASK_SECTIONS)
    plain = {key: value for key, value in recipe.items() if key != "tasks"}
    return merge_recipes(plain, tasks.get(str(task), {}))


def read_with_base(name: str | Path, ancestors: tuple[Path, ...] = ()) -> Recipe:
    """Read a recipe by name or path, and merge it over its base recipes.

    A relative path in ``base`` starts at the recipe's folder. ``ancestors`` are the recipes that
    led here, so that a cycle is an error. A name of version 0.1 may stand for one task of a recipe.
    """
    path, (_, task) = find_recipe(name), RECIPES.get(str(name), ("", None))
    if path.resolve() in ancestors:
        raise ConfigError(f"the base of {path} leads back to itself")
    if len(ancestors) > MAX_BASES:
        raise ConfigError(f"{path} is the base of a base, and so on, of more than {MAX_BASES} recipes")
    recipe = migrate_recipe(read_toml(path))
    if "base" in recipe:
        base = recipe.pop("base")
        if not isinstance(base, str):
            raise ConfigError(f"the base of {path} is a recipe's name or path, not {base!r}")
        base_name = path.parent / base if base.endswith(".toml") else base
        recipe = merge_recipes(read_with_base(base_name, (*ancestors, path.resolve())), recipe)
    return recipe if task is None else select_task(recipe, task)


def read_toml(path: Path) -> Recipe:
    """Read a TOML file that is neither too large nor nested too deeply."""
    if path.stat().st_size > MAX_BYTES:
        raise ConfigError(f"{path} has {path.stat().st_size:,} bytes; a recipe has at most {MAX_BYTES:,}")
    try:
        recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ConfigError(f"{path} {TOO_DEEP}") from None
    except ValueError as error:  # a TOMLDecodeError or UnicodeDecodeError is one
        raise ConfigError(f"{path} is no valid TOML: {error}") from None
    if is_too_deep(recipe):
        raise ConfigError(f"{path} {TOO_DEEP}")
    return recipe


def check_sections(recipe: Recipe, name: str, known: Sequence[str]) -> None:
    """Check that a recipe has only known sections, each of the right type.

    ``phases`` is a list of partial recipes; every other section is a table.
    """
    for key, value in recipe.items():
        if key not in known:
            hint = did_you_mean(key, known)
            raise ConfigError(f"{name} has no section {key!r}{hint}; sections: {join_words(known)}")
        if key == "phases":
            if not isinstance(value, list) or not all(isinstance(phase, dict) for phase in value):
                raise ConfigError(f"'phases' is a list of tables [[phases]], not {value!r}")
            for number, phase in enumerate(value):
                check_sections(phase, f"phases.{number}", PHASE_SECTIONS)
        elif not isinstance(value, Mapping):
            raise ConfigError(f"{key!r} is a table {{ … }}, not {value!r}")
        elif key == "pretrained":  # options that differ for a run that starts from weights
            check_sections(dict(value), key, PHASE_SECTIONS)


def find_recipe(name: str | Path) -> Path:
    """Return the path of a shipped recipe, or ``name`` if it is a .toml file."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ConfigError(f"no recipe file {str(path)!r}")
        return path
    current, known = current_name_of(name), recipe_names()
    if current not in known:
        raise ConfigError(
            f"no recipe {current!r}{did_you_mean(current, known)}; "
            f"known recipes: {join_words(known)} (or give the path of a .toml file)"
        )
    return RECIPES_FOLDER / f"{current}.toml"


def current_name_of(name: str | Path) -> str:
    """The name today of a recipe that version 0.1 called ``name``."""
    return RECIPES.get(str(name), (str(name), None))[0]


def recipe_names() -> list[str]:
    """List the names of the recipes that ship with the package."""
    return sorted(path.stem for path in RECIPES_FOLDER.glob("*.toml"))


def recipe_comment(name: str | Path) -> str:
    """Return the comment at the top of a recipe: the paper and its published score."""
    lines = find_recipe(name).read_text(encoding="utf-8").splitlines()
    comment = takewhile(lambda line: line.startswith("#"), lines)
    return "\n".join(line.lstrip("# ").rstrip() for line in comment)


def parse_assignment(text: str) -> tuple[str, Any]:
    """Parse ``train.rate=0.1`` into ``("train.rate", 0.1)``.

    A value that is not valid TOML is a string.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"an override is KEY=VALUE, for example train.rate=0.01, not {text!r}")
    if key.count(".") >= MAX_NESTING:
        raise ConfigError(f"the key {key[:20]!r} … {TOO_DEEP}")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of many digits
        reason = TOO_DEEP if isinstance(error, RecursionError) else f"is no valid TOML: {error}"
        raise ConfigError(f"the value of {key.strip()} {reason}") from None
    if is_too_deep(parsed):
        raise ConfigError(f"the value of {key.strip()} {TOO_DEEP}")
    return key.strip(), parsed


def override(recipe: Mapping[str, Any], key: str, value: Any) -> Recipe:
    """Return a copy of a recipe with the dotted ``key`` set to ``value``.

    A number in the key selects an item of a list: ``phases.0.train.rate``.
    """
    head, _, rest = key.partition(".")
    inner = recipe.get(head, {})
    if rest and isinstance(inner, list):
        items, (index, _, deeper) = list(inner), rest.partition(".")
        if not index.isdigit() or int(index) >= len(items) or not deeper:
            raise ConfigError(f"cannot set {key!r}: {head!r} has items 0 to {len(items) - 1}")
        items[int(index)] = override(items[int(index)], deeper, value)
        return {**recipe, head: items}
    if rest and not isinstance(inner, Mapping):
        raise ConfigError(f"cannot set {key!r}: {head!r} holds {inner!r}, which has no parts")
    return {**recipe, head: override(inner, rest, value) if rest else value}
