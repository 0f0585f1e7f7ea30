"""What every part of a recipe takes, read from the signatures that the factory checks against."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mnemic.recipe import Recipe, hints, listed, named, spoken

# Facts that are handed to a part by its maker, so that a recipe does not set them.
MODEL = {"width", "vocab", "longest", "tables"}
OPTIMISER = {"parameters", "rate", "runs"}
NESTED = {"optimiser", "schedule", "clip"}  # parts of [train], which have rows of their own


def schema(recipe: Recipe) -> list[dict[str, Any]]:
    """One row an option of the kinds that ``recipe`` uses: what it takes, default, value here."""
    from mnemic.data import DATASETS
    from mnemic.encode import ENCODERS
    from mnemic.learn.clip import CLIPS
    from mnemic.learn.optimise import OPTIMISERS
    from mnemic.learn.schedule import SCHEDULES
    from mnemic.learn.train import TrainSettings
    from mnemic.memory import MEMORIES
    from mnemic.memory.memn2n import ADD
    from mnemic.memory.update import UPDATES
    from mnemic.objectives import OBJECTIVES
    from mnemic.respond import RESPONSES

    model = recipe.get("model", {})
    settings = vars(TrainSettings()) | recipe.get("train", {})
    memory = model.get("memory", {})
    return [
        row("model.width", int, model),
        *kind("model.encode", ENCODERS, model.get("encode", {}), MODEL),
        *kind("model.memory", MEMORIES, memory, MODEL | {"update"}),
        *kind("model.memory.update", UPDATES, memory.get("update", ADD), MODEL | {"hops"}),
        *kind("model.respond", RESPONSES, model.get("respond", {}), MODEL),
        *kind("data", DATASETS, recipe.get("data", {}), set()),
        *kind("objective", OBJECTIVES, recipe.get("objective", {}), set()),
        *part("train", TrainSettings, recipe.get("train", {}), NESTED, vars(TrainSettings())),
        *kind("train.optimiser", OPTIMISERS, settings["optimiser"], OPTIMISER),
        *kind("train.schedule", SCHEDULES, settings["schedule"], set()),
        *kind("train.clip", CLIPS, settings["clip"], set()),
    ]


def kind(
    name: str, table: Mapping[str, Callable[..., Any]], spec: Mapping[str, Any], given: set[str]
) -> Iterator[dict[str, Any]]:
    """The rows of a part that has kinds: the kinds first, then what the chosen one takes."""
    yield {"option": f"{name}.kind", "takes": listed(table)} | value_of("kind", spec)
    if spec.get("kind") in table:
        yield from part(name, table[spec["kind"]], spec, given, {})


def part(
    name: str,
    maker: Callable[..., Any],
    spec: Mapping[str, Any],
    given: set[str],
    defaults: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    for key, parameter in named(maker).items():
        if key not in given:
            found = row(f"{name}.{key}", hints(maker)[key], spec)
            needed = parameter.default is inspect.Parameter.empty
            yield found | ({} if needed else {"default": defaults.get(key, parameter.default)})


def row(option: str, wanted: Any, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"option": option, "takes": spoken(wanted)} | value_of(option.split(".")[-1], spec)


def value_of(key: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing where the recipe leaves the default."""
    return {"value": spec[key]} if key in spec else {}
