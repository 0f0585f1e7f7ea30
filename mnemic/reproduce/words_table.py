"""One perplexity table: language models of several kinds on the same words.

All have the same vocabulary, the same training words in the same order (of a seed), and the same
context: a network reads ``data.length`` words at once and begins each time with nothing read.
Finished runs are kept as runs of ``mnemic train``, so a table that was stopped goes on.
"""

import json
import platform
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mnemic import __version__
from mnemic.checkpoint.atomic_files import digest, write_json
from mnemic.checkpoint.folder import load, weights_of
from mnemic.checkpoint.lock import lock
from mnemic.data import DATASETS
from mnemic.data.language_modeling.dataset import WordFiles
from mnemic.data.language_modeling.token_folder import ABOUT, is_kept
from mnemic.predict.perplexity import language_figures, unigram_figures
from mnemic.recipe import ConfigError, Recipe, build, override
from mnemic.recipe import load as load_recipe
from mnemic.reproduce.babi_table import hardware, keep, kept
from mnemic.reproduce.statistics import spread
from mnemic.train.phases import phases
from mnemic.train.run import Report, fit

RECIPES = ("rnn-words", "gru-words", "lstm-words", "transformer-words")
WORDS = "words"  # the folder with the numbered documents
NEEDED = ("train.xz", "validation.xz", "test.xz", "tokenizer.json")


@dataclass(frozen=True, kw_only=True)
class WordsTable:
    """Which networks to compare, and on what."""

    data: str  # a folder of documents, or one that ``mnemic data words`` has made
    recipes: Sequence[str] = RECIPES
    seeds: int = 1
    sets: Sequence[str] = ()
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.seeds < 1 or not self.recipes:
            raise ConfigError(f"a table takes recipes and seeds ≥ 1, not {self.seeds} seeds")

    def recipe_of(self, name: str, folder: str) -> Recipe:
        recipe = override(load_recipe(name, self.sets), "data.folder", folder)
        if recipe.get("data", {}).get("kind") != "words":
            raise ConfigError(f"the recipe {name!r} does not learn from data of kind 'words'")
        return recipe

    def files(self, folder: str) -> WordFiles:
        """The data set that all recipes share."""
        told = [self.recipe_of(name, folder)["data"] for name in self.recipes]
        if strange := [name for name, own in zip(self.recipes, told) if own != told[0]]:
            raise ConfigError(
                f"{strange[0]} and {self.recipes[0]} learn from other words ([data] differs); "
                "perplexities can be compared only on the same"
            )
        return build(DATASETS, told[0])

    def place(self, folder: Path) -> str:
        """Where the words are: as given, or numbered below the table's own folder."""
        given = Path(self.data).expanduser()
        return str(given if is_kept(given) else folder / WORDS)


class Going(NamedTuple):
    """A step of one run of a table in the making."""

    recipe: str
    seed: int
    run: int  # counted from 0
    report: Report


def rebuild(table: WordsTable, folder: Path) -> Generator[Going, None, None]:
    """Number the words if nobody has, train and test what is missing; ``result`` then reads it."""
    with lock(folder):
        place = table.place(folder)
        if not is_kept(Path(place)):
            table.files(table.data).keep(Path(place))
        for number, (name, seed) in enumerate(runs_of(table)):
            recipe, run = table.recipe_of(name, place), folder / f"{name}-{seed}"
            if (name, seed) in kept(folder) and load(run).recipe == recipe:
                continue
            for report in fit(recipe, run, seed=seed, device=table.device):
                yield Going(name, seed, number, report)
            keep(folder, [tested(table, name, seed, run)])


def runs_of(table: WordsTable) -> Iterator[tuple[str, int]]:
    return ((name, seed) for seed in range(table.seeds) for name in table.recipes)


def tested(table: WordsTable, name: str, seed: int, run: Path) -> dict[str, Any]:
    """A finished run as a row: its perplexities, its size and what it cost."""
    checkpoint = load(run)
    network = checkpoint.network.to(table.device)
    files, history = build(DATASETS, checkpoint.recipe["data"]), checkpoint.progress.history
    data = files.data()
    words = {"validation": data.validation, "test": data.test}
    found = {
        part: language_figures(network, own.to(table.device)) if len(own) or part == "test" else {}
        for part, own in words.items()
    }
    return {
        "recipe": name,
        "seed": seed,
        **found,
        "weights": sum(weight.numel() for weight in weights_of(network).values()),
        "steps": history[-1]["steps"],
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def result(table: WordsTable, folder: Path) -> dict[str, Any]:
    """The whole table, from the runs in ``folder``, beside guessing by frequency."""
    done, place = kept(folder), table.place(folder)
    data = table.files(place).data()
    rows = []
    for name in table.recipes:
        runs = [done[name, seed] for seed in range(table.seeds)]
        over_seeds = spread([run["test"]["perplexity"] for run in runs])
        told = {key: over_seeds[key] for key in ("std", "median")}
        batch = phases(table.recipe_of(name, place))[-1].settings.batch
        same = {key: runs[0][key] for key in ("weights", "steps")}
        same["words_read"] = round(same["steps"] * batch * data.train.asked / len(data.train))
        figures = {
            key: sum(run["test"][key] for run in runs) / len(runs) for key in runs[0]["test"]
        }
        seconds = round(sum(run["seconds"] for run in runs), 1)
        rows.append({"recipe": name, **figures, **told, **same, "seconds": seconds, "runs": runs})
    told = json.loads((Path(place) / ABOUT).read_text(encoding="utf-8"))
    return {
        "table": "words",
        "rows": rows,
        "unigram": unigram_figures(data.train, data.test, len(data.words)),
        "overrides": list(table.sets),
        "recipes": list(table.recipes),
        "seeds": list(range(table.seeds)),
        "vocab": len(data.words),
        "length": data.train.length,
        "documents": told["about"],
        "words": {"train": data.train.asked, "test": data.test.asked},
        "data_sha256": {name: digest(Path(place) / name) for name in NEEDED},
        "hardware": hardware(torch.device(table.device)),
        "versions": {
            "mnemic": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }


def save_result(table: WordsTable, folder: Path) -> dict[str, Any]:
    """Write ``table.json`` beside the runs."""
    whole = result(table, folder)
    write_json(folder / "table.json", whole)
    return whole
