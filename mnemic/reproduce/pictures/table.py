"""Compare networks that look at pictures. Finished rows are saved, so a table resumes."""

import json
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch

from mnemic.checkpoint.atomic_files import write_json
from mnemic.checkpoint.folder import load_checkpoint
from mnemic.checkpoint.lock import lock_folder
from mnemic.data import DATASETS
from mnemic.recipe import (
    ConfigError,
    Recipe,
    build,
    did_you_mean,
    join_words,
    kind_of,
    load_recipe,
    parameters_of,
    parse_assignment,
)
from mnemic.reproduce.pictures.encoder_rows import ALL_ROWS as ROWS
from mnemic.reproduce.rows import append_rows, describe_hardware, describe_versions, read_rows
from mnemic.train.run import fit

ROWS_FILE = "rows.jsonl"


@dataclass(frozen=True, kw_only=True)
class PicturesTable:
    """The settings of a table of pictures: rows, seeds, and changes of the recipes."""

    rows: Sequence[str] = ()  # names in ROWS; none: all
    seeds: int = 1
    sets: Sequence[str] = ()
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"a table takes seeds ≥ 1, not {self.seeds}")
        if unknown := [name for name in self.rows if name not in ROWS]:
            hint = did_you_mean(unknown[0], ROWS)
            raise ConfigError(f"there is no row {unknown[0]!r}{hint}; rows: {join_words(ROWS)}")
        for name in self.names:
            build(DATASETS, self.build_recipe(name)["data"])  # finds mistakes before the first step

    @property
    def names(self) -> list[str]:
        """The names of the rows, in the order of the table."""
        return [name for name in ROWS if name in (self.rows or ROWS)]

    def build_recipe(self, name: str) -> Recipe:
        """Build the recipe of a row.

        An option of data, such as ``data.count``, changes the rows whose data takes it.
        """
        sets = [
            text for text in self.sets if self.takes(name, text) or not any(self.takes(n, text) for n in self.names)
        ]
        return load_recipe(ROWS[name].recipe, [*ROWS[name].sets, *sets])

    def takes(self, name: str, assignment: str) -> bool:
        """Check whether the data of a row takes an override; other sections take all."""
        section, _, option = parse_assignment(assignment)[0].partition(".")
        if section != "data" or option in ("", "kind"):
            return True
        kinds = [text for text in self.sets if parse_assignment(text)[0] == "data.kind"]
        data = load_recipe(ROWS[name].recipe, [*ROWS[name].sets, *kinds])["data"]
        return option.partition(".")[0] in parameters_of(kind_of(DATASETS, data))

    def key_of(self, name: str, seed: int) -> str:
        """Return what a row depends on."""
        return json.dumps([name, self.build_recipe(name), seed], sort_keys=True)


class PictureStep(NamedTuple):
    """The progress of a table."""

    name: str
    seed: int
    number: int  # of the run, from 0
    total: int
    fraction: float = 0.0  # of its training
    message: str = ""


def fill_pictures_table(table: PicturesTable, folder: Path) -> Generator[PictureStep, None, None]:
    """Train and measure the missing rows; then call ``save_pictures_table``."""
    runs = list(product(range(table.seeds), table.names))
    with lock_folder(folder):
        for number, (seed, name) in enumerate(runs):
            step, key = PictureStep(name, seed, number, len(runs)), table.key_of(name, seed)
            yield step
            if key in load_picture_rows(folder):
                continue
            recipe, run_folder = table.build_recipe(name), run_folder_of(folder, name, seed)
            start = time.perf_counter()
            for report in fit(recipe, run_folder, seed=seed, device=table.device):
                fraction = (report.phase + report.step / report.total_steps) / report.num_phases
                message = "" if report.row is None else f"{name}, seed {seed}: loss {report.row['loss']:.4f}"
                yield step._replace(fraction=fraction, message=message)
            row: dict[str, Any] = {"key": key, "row": name, "seed": seed, "recipe": ROWS[name].recipe}
            row |= {"seconds": round(time.perf_counter() - start, 1), "metrics": measure_run(name, run_folder, table)}
            append_rows(folder / ROWS_FILE, [row | {"hardware": describe_hardware(torch.device(table.device))}])


def run_folder_of(folder: Path, name: str, seed: int) -> Path:
    """Return the folder of a row's run."""
    return folder / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"


def measure_run(name: str, run_folder: Path, table: PicturesTable) -> dict[str, float]:
    """Measure a trained row."""
    checkpoint = load_checkpoint(run_folder)
    checkpoint.network.to(table.device)
    return {key: value for measure in ROWS[name].measures for key, value in measure(checkpoint).items()}


def load_picture_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Load the finished rows by their key."""
    return {row["key"]: row for row in read_rows(folder / ROWS_FILE)}


def save_pictures_table(table: PicturesTable, folder: Path) -> dict[str, Any]:
    """Save the rows of a table as ``table.json``: each metric's mean and deviation over seeds."""
    finished = load_picture_rows(folder)
    rows = []
    for name in table.names:
        runs = [finished[table.key_of(name, seed)] for seed in range(table.seeds)]
        metrics = {key: [run["metrics"][key] for run in runs] for key in runs[0]["metrics"]}
        rows.append({
            "row": name,
            "recipe": ROWS[name].recipe,
            "sets": list(ROWS[name].sets),
            "metrics": {key: mean(values) for key, values in metrics.items()},
            "deviations": {key: stdev(values) for key, values in metrics.items()} if table.seeds > 1 else {},
            "seconds": mean(run["seconds"] for run in runs),
            "hardware": runs[0]["hardware"],
        })  # fmt: skip
    result = {
        "table": "pictures", "seeds": list(range(table.seeds)), "overrides": list(table.sets), "rows": rows,
        "versions": describe_versions(),
    }  # fmt: skip
    write_json(folder / "table.json", result)
    return result
