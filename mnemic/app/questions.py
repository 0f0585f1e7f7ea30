"""The questions a checkpoint is tested with: those of its own recipe's data, split by split."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemic.data.stories.format import Example


class Split(StrEnum):
    """Which part of a data set."""

    test = "test"
    validation = "validation"
    train = "train"


def questions(
    data: Mapping[str, Any], split: Split, choose: Callable[[list[int]], Sequence[int]]
) -> list["Example"]:
    """The examples of a split of a recipe's ``[data]``; ``choose`` picks among its tasks.

    Only the files that the split needs must be there.
    """
    from mnemic.data import DATASETS
    from mnemic.recipe import ConfigError, listed

    sources = {"stories": told, "generated": made}
    if data.get("kind") not in sources:
        raise ConfigError(f"no questions in data of kind {data.get('kind')!r}; {listed(sources)}")
    kind = data["kind"]
    parameters = inspect.signature(DATASETS[kind]).parameters
    options = {key: parameter.default for key, parameter in parameters.items()} | dict(data)
    chosen = choose(sorted(options["tasks"]))
    found = [kept(sources[kind](options, task, split), options, split) for task in chosen]
    return [example for own in found for example in own]


def kept(examples: list["Example"], options: Mapping[str, Any], split: Split) -> list["Example"]:
    """What belongs to the split: the last share of the training questions is for validation."""
    cut = len(examples) - round(options["validation"] * len(examples))
    return {Split.test: examples, Split.train: examples[:cut]}.get(split, examples[cut:])


def told(options: Mapping[str, Any], task: int, split: Split) -> list["Example"]:
    """From the official files, or made where the recipe says so."""
    from mnemic.data.stories.dataset import COUNTS, has, make
    from mnemic.data.stories.folder import folder_of, load

    root = folder_of(Path(options["folder"]).expanduser(), options["size"])
    if split is Split.test:
        return load(root, task, "test")
    absent = options["missing"] == "generate" and not has(root, task)
    if absent or options["trained_on"] == "generated":
        return make(task, COUNTS[options["size"]], options["seed"])
    return load(root, task, "train")


def made(options: Mapping[str, Any], task: int, split: Split) -> list["Example"]:
    """From the generator, as in training."""
    from mnemic.data.stories.dataset import TEST, make

    if split is Split.test:
        return make(task, TEST, options["seed"] + 1)
    return make(task, options["count"], options["seed"])
