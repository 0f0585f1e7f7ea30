"""Compare the perplexity of several kinds of language models on the same words.

All have the same vocabulary, the same training words in the same order (per seed), and the same
context: a network reads ``data.length`` words at once, without state from earlier words. Finished
runs are saved as runs of ``mnemic train``, so an interrupted table resumes.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

from mnemic.checkpoint.atomic_files import hash_file, write_json
from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.checkpoint.lock import lock_folder
from mnemic.data import DATASETS
from mnemic.data.language_modeling.dataset import LanguageModelFiles
from mnemic.data.language_modeling.token_folder import METADATA_FILE, is_token_folder
from mnemic.files import read_json
from mnemic.predict.perplexity import compute_perplexity, compute_unigram_perplexity
from mnemic.recipe import ConfigError, Recipe, build, kind_of, load_recipe, override
from mnemic.reproduce.babi_table import append_runs, load_runs
from mnemic.reproduce.rows import describe_hardware, describe_versions
from mnemic.reproduce.statistics import summarize_errors
from mnemic.train.phases import read_phases
from mnemic.train.run import StepReport, fit

DEFAULT_RECIPES = ("rnn-words", "gru-words", "lstm-words", "transformer-words")
WORDS_FOLDER = "words"  # subfolder with the encoded documents
HASHED_FILES = ("train.xz", "validation.xz", "test.xz", "tokenizer.json")


@dataclass(frozen=True, kw_only=True)
class WordsTable:
    """The settings of a perplexity table: recipes, data and seeds."""

    data: str  # a folder of documents, or one that ``mnemic data words`` wrote
    recipes: Sequence[str] = DEFAULT_RECIPES
    seeds: int = 1
    sets: Sequence[str] = ()
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.seeds < 1 or not self.recipes:
            raise ConfigError(f"a table takes recipes and seeds ≥ 1, not {self.seeds} seeds")

    def build_recipe(self, name: str, folder: str) -> Recipe:
        """Load a recipe with the table's overrides and data folder; raise for other data."""
        recipe = override(load_recipe(name, self.sets), "data.folder", folder)
        if not issubclass(kind_of(DATASETS, recipe["data"]), LanguageModelFiles):
            raise ConfigError(f"the recipe {name!r} does not learn from data of kind 'words'")
        return recipe

    def build_data_source(self, folder: str) -> LanguageModelFiles:
        """Build the data source that all recipes share; raise if their data differ."""
        sections = [self.build_recipe(name, folder)["data"] for name in self.recipes]
        if mismatched := [name for name, section in zip(self.recipes, sections) if section != sections[0]]:
            raise ConfigError(
                f"{mismatched[0]} and {self.recipes[0]} learn from other words ([data] differs); "
                "perplexities can be compared only on the same"
            )
        return build(DATASETS, sections[0])

    def words_folder_of(self, folder: Path) -> str:
        """Return the folder of the encoded words: ``data``, or a subfolder of the table's."""
        path = Path(self.data).expanduser()
        return str(path if is_token_folder(path) else folder / WORDS_FOLDER)


RunStep = tuple[str, int, int, StepReport]  # its recipe, its seed, its number from 0


def train_missing_runs(table: WordsTable, folder: Path) -> Generator[RunStep, None, None]:
    """Encode the words if needed, train and test missing runs; then call ``save_result``."""
    with lock_folder(folder):
        words_folder = table.words_folder_of(folder)
        if not is_token_folder(Path(words_folder)):
            table.build_data_source(table.data).save_encoded(Path(words_folder))
        for index, (seed, name) in enumerate(product(range(table.seeds), table.recipes)):
            recipe, run = table.build_recipe(name, words_folder), folder / f"{name}-{seed}"
            if (name, seed) in load_runs(folder) and load_checkpoint(run).recipe == recipe:
                continue
            for report in fit(recipe, run, seed=seed, device=table.device):
                yield name, seed, index, report
            append_runs(folder, [evaluate_run(table, name, seed, run)])


def evaluate_run(table: WordsTable, name: str, seed: int, run: Path) -> dict[str, Any]:
    """Evaluate a finished run: perplexities, number of weights, steps and seconds."""
    checkpoint = load_checkpoint(run)
    network, history = checkpoint.network.to(table.device), checkpoint.progress.history
    data = build(DATASETS, checkpoint.recipe["data"]).load()
    validation, test = data.validation.to(table.device), data.test.to(table.device)
    return {
        "recipe": name,
        "seed": seed,
        "validation": compute_perplexity(network, validation) if len(validation) else {},
        "test": compute_perplexity(network, test),
        "weights": sum(weight.numel() for weight in weights_of(network).values()),
        "steps": history[-1]["steps"],
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def save_result(table: WordsTable, folder: Path) -> dict[str, Any]:
    """Save the table of the runs in ``folder``, next to a unigram model, as ``table.json``."""
    finished_runs, words_folder = load_runs(folder), table.words_folder_of(folder)
    data = table.build_data_source(words_folder).load()
    rows = []
    for name in table.recipes:
        runs = [finished_runs[name, seed] for seed in range(table.seeds)]
        over_seeds = summarize_errors([run["test"]["perplexity"] for run in runs])
        deviations = {key: over_seeds[key] for key in ("std", "median")}
        batch = read_phases(table.build_recipe(name, words_folder))[-1].settings.batch
        sizes = {key: runs[0][key] for key in ("weights", "steps")}
        sizes["words_read"] = round(sizes["steps"] * batch * data.train.num_targets / len(data.train))
        mean_metrics = {key: sum(run["test"][key] for run in runs) / len(runs) for key in runs[0]["test"]}
        seconds = round(sum(run["seconds"] for run in runs), 1)
        rows.append({"recipe": name, **mean_metrics, **deviations, **sizes, "seconds": seconds, "runs": runs})
    result = {
        "table": "words",
        "rows": rows,
        "unigram": compute_unigram_perplexity(data.train, data.test, len(data.tokenizer)),
        "overrides": list(table.sets),
        "recipes": list(table.recipes),
        "seeds": list(range(table.seeds)),
        "vocab": len(data.tokenizer),
        "length": data.train.max_tokens,
        "documents": read_json(Path(words_folder) / METADATA_FILE)["about"],
        "words": {"train": data.train.num_targets, "test": data.test.num_targets},
        "data_sha256": {name: hash_file(Path(words_folder) / name) for name in HASHED_FILES},
        "hardware": describe_hardware(torch.device(table.device)),
        "versions": describe_versions(),
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }
    write_json(folder / "table.json", result)
    return result
