"""Compare kinds of attention and stacks: train each in each column, and measure its cost.

A cell is a row in a column with a seed. Finished cells are kept as runs of ``mnemic train`` and as
JSON lines, so an interrupted table resumes. A process claims a cell before it trains it, so that
several processes can share a table.
"""

import json
import os
import shlex
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mnemic.checkpoint.atomic_files import hash_file
from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.checkpoint.lock import acquire_lock
from mnemic.data import DATASETS
from mnemic.data.text_tasks.examples import TextError
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.models import check_parts_fit
from mnemic.recipe import ConfigError, Recipe, build, did_you_mean, join_words
from mnemic.reproduce.attention.columns import (
    COLUMNS,
    COST,
    SourceFolders,
    build_cell_recipe,
    find_missing_data,
    find_reason,
)
from mnemic.reproduce.attention.cost import Cell as CostCell
from mnemic.reproduce.attention.cost import measure_depths, measure_length
from mnemic.reproduce.attention.rows import BASELINE, AttentionRow, load_rows, select_rows
from mnemic.reproduce.attention.scale import Scale, load_scale
from mnemic.reproduce.attention.sources import SOURCE_FILE, SOURCES, find_source_files, prepare_sources
from mnemic.reproduce.rows import append_rows, describe_hardware, read_rows
from mnemic.train.initialize import build_network, check_phases
from mnemic.train.phases import read_phases
from mnemic.train.run import fit

CELLS_FILE = "cells.jsonl"
DATA_FOLDER = "data"  # subfolder with the texts of all columns
CHECK_SIZES = {"vocab": 50, "classes": 2}  # of the networks that are built before the first step


@dataclass(frozen=True, kw_only=True)
class AttentionTable:
    """The settings of a table of attention; no ``rows`` or ``columns`` are all of them."""

    data: str = ""  # folders of files; "": the columns that need them are not measured
    classes: str = ""
    sentences: str = ""
    scale_name: str = "small"
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    seeds: int = 0  # of each column; 0: those of the scale
    sets: Sequence[str] = ()
    device: str = "cpu"

    def __post_init__(self) -> None:
        known = (*COLUMNS, COST)
        if unknown := [name for name in self.columns if name not in known]:
            raise ConfigError(
                f"there is no column {unknown[0]!r}{did_you_mean(unknown[0], known)}; columns: {join_words(known)}"
            )
        if self.seeds < 0:
            raise ConfigError(f"a table takes seeds ≥ 1, or 0 for those of the scale, not {self.seeds}")

    @cached_property
    def scale(self) -> Scale:
        """The sizes, data and training of all columns."""
        return load_scale(self.scale_name, self.sets)

    @cached_property
    def selected_rows(self) -> dict[str, AttentionRow]:
        """The rows by name."""
        return select_rows(self.rows)

    @property
    def folders(self) -> dict[str, str]:
        """The folder of each source that has one."""
        named = {"enwiki": self.data, "imdb": self.classes, "sentences": self.sentences}
        return {name: folder for name, folder in named.items() if folder}

    @property
    def selected_columns(self) -> list[str]:
        """The names of the columns to train for."""
        return [name for name in COLUMNS if name in (self.columns or COLUMNS)]

    @property
    def measures_cost(self) -> bool:
        """Whether time and memory are measured."""
        return not self.columns or COST in self.columns

    @property
    def cost_devices(self) -> list[str]:
        """The devices whose time is measured."""
        return ["cpu"] if self.device == "cpu" else ["cpu", self.device]

    def seeds_of(self, name: str) -> range:
        """Return the seeds of a column."""
        return range(self.seeds or self.scale.column_settings(name).seeds)

    def find_reason_of_column(self, name: str) -> str:
        """Say why a whole column is not measured; empty if it is."""
        source = COLUMNS[name].source
        if source and source not in self.folders:
            return f"no {SOURCES[source].option}"
        return find_missing_data(name)

    @property
    def command(self) -> str:
        """The command that makes this table, without its folder."""
        options = {"--data": self.data, "--classes": self.classes, "--sentences": self.sentences}
        options |= {"--scale": self.scale_name, "--rows": ",".join(self.rows), "--columns": ",".join(self.columns)}
        options |= {"--seeds": str(self.seeds or "")}
        words = ["mnemic", "table", "attention"]
        for option, value in options.items():
            words += [option, value] if value else []
        return shlex.join([*words, *(word for text in self.sets for word in ("--set", text)), "--device", self.device])


class TableCell(NamedTuple):
    """A row in a column with a seed, and the recipe that it is trained with."""

    row: str
    column: str
    seed: int
    recipe: Recipe
    fingerprint: str  # of recipe and data

    @property
    def name(self) -> str:
        """The name of its run."""
        return f"{self.row}-{self.column}-{self.seed}"


class TableStep(NamedTuple):
    """The progress of a table: a step of a cell, or a pass that is measured."""

    cell: str
    number: int  # of the cell, from 0
    total: int
    fraction: float  # of the cell that is done
    detail: str = ""
    message: str = ""  # to print: why a cell has no result


def list_cells(table: AttentionTable, root: Path, hashes: Mapping[str, str]) -> list[TableCell]:
    """List all cells to train, column by column, so that a part of a table can be compared."""
    cells = []
    for column in (name for name in table.selected_columns if not table.find_reason_of_column(name)):
        for seed in table.seeds_of(column):
            for row in table.selected_rows.values():
                if not find_reason(row, column):
                    recipe = build_cell_recipe(row, column, table.scale, SourceFolders(root / DATA_FOLDER))
                    key = json.dumps(recipe, sort_keys=True).replace(json.dumps(str(root))[1:-1], "")
                    key += hashes.get(COLUMNS[column].source, "")
                    cells.append(TableCell(row.name, column, seed, recipe, sha256(key.encode()).hexdigest()[:16]))
    return cells


def check_cells(cells: Sequence[TableCell], table: AttentionTable) -> None:
    """Build a small network of each cell, to find mistakes before the first step."""
    for cell in (cell for cell in cells if cell.seed == 0):
        sizes = {**CHECK_SIZES, "max_length": table.scale.column_settings(cell.column).max_tokens}
        try:
            check_phases(read_phases(cell.recipe), cell.recipe, sizes)
            check_parts_fit(build_network(cell.recipe["model"], sizes, 0), sizes)
        except ConfigError as error:
            raise ConfigError(f"row {cell.row}, column {cell.column}: {error}") from None


def fill_table(table: AttentionTable, folder: Path) -> Generator[TableStep, None, None]:
    """Train and measure the missing cells; then call ``save_table``.

    Cells that another process has claimed are left to it.
    """
    for name, path in table.folders.items():
        find_source_files(name, path)
    check_cells(list_cells(table, folder, {}), table)
    columns = [name for name in table.selected_columns if not table.find_reason_of_column(name)]
    sources = {COLUMNS[name].source for name in columns}
    used_folders = {name: path for name, path in table.folders.items() if name in sources}
    prepare_sources(used_folders, columns, table.scale, folder / DATA_FOLDER)
    cells = list_cells(table, folder, hash_sources(folder))
    check_finished(cells, folder)
    total = len(cells) + (len(table.cost_devices) if table.measures_cost else 0)
    for number, cell in enumerate(cells):
        if not is_finished(cell, folder):
            with claim(folder, cell.name) as is_claimed:
                if is_claimed and not is_finished(cell, folder):
                    yield from train_cell(cell, folder, table.device, number, total)
    for number, device in enumerate(table.cost_devices if table.measures_cost else (), start=len(cells)):
        with claim(folder, f"{COST}-{device.partition(':')[0]}") as is_claimed:
            if is_claimed:
                yield from fill_cost(table, folder, device, number, total)


def train_cell(cell: TableCell, folder: Path, device: str, number: int, total: int) -> Iterator[TableStep]:
    """Train, test and keep a cell; a training that diverges is kept as such."""
    row = {"cell": cell.name, "fingerprint": cell.fingerprint, **cell._asdict()}
    del row["recipe"]
    run = folder / "runs" / cell.name
    try:
        for report in fit(cell.recipe, run, seed=cell.seed, device=device):
            fraction = (report.phase + report.step / report.total_steps) / report.num_phases
            yield TableStep(cell.name, number, total, fraction, f"step {report.step} of {report.total_steps}")
        row |= evaluate_cell(cell, run, device)
    except (ConfigError, TextError, torch.OutOfMemoryError) as error:
        row["failed"] = str(error)
        yield TableStep(cell.name, number, total, 1.0, message=f"{cell.name}: {error}")
    append_rows(folder / CELLS_FILE, [row])


def evaluate_cell(cell: TableCell, run: Path, device: str) -> dict[str, Any]:
    """Test a finished run: its metrics, weights, steps and seconds."""
    checkpoint = load_checkpoint(run)
    network, history = checkpoint.network.to(device), checkpoint.progress.history
    source = build(DATASETS, checkpoint.recipe["data"])
    dataset = source.dataset("test", checkpoint.tokenizer, checkpoint.labels).to(device)
    metrics = compute_metrics(network, dataset)
    return {
        "value": metrics[COLUMNS[cell.column].metric or next(iter(metrics))],
        "metrics": metrics,
        "examples": len(dataset),
        "weights": sum(weight.numel() for weight in weights_of(network).values()),
        "steps": history[-1]["steps"],
        "seconds": round(sum(row["seconds"] for row in history), 1),
        "hardware": describe_hardware(torch.device(device)),
    }


def fill_cost(table: AttentionTable, folder: Path, device: str, number: int, total: int) -> Iterator[TableStep]:
    """Measure the missing lengths of all rows on a device, the baseline with each of them."""
    rows = {name: row for name, row in table.selected_rows.items() if not find_reason(row, COST)}
    lengths, label = table.scale.cost_settings.lengths, f"{COST}-{device.partition(':')[0]}"
    fingerprint = hash_cost(table.scale)
    for done, length in enumerate(lengths):
        finished = load_cost(folder, label, fingerprint)
        missing = {name: row for name, row in rows.items() if length not in finished.get(name, {})}
        if not missing:
            continue
        step = TableStep(f"{label}, {length:,} tokens", number, total, done / len(lengths))
        measured = {BASELINE: load_rows()[BASELINE]} | missing
        earlier = {name: list(finished.get(name, {}).values()) for name in measured}
        cells: dict[str, CostCell] = {}
        for name in measure_length(measured, table.scale, length, device, earlier, cells):
            yield step._replace(detail=name)
        if length == lengths[0]:
            for name, cell in cells.items():
                yield step._replace(detail=f"{name}, several depths")
                cell["saved_mib_by_depth"] = measure_depths(measured[name], table.scale, device)
        row = {"cell": label, "fingerprint": fingerprint, "tokens": length, "rows": cells}
        append_rows(folder / CELLS_FILE, [row | {"hardware": describe_hardware(torch.device(device))}])


def load_cost(folder: Path, label: str, fingerprint: str) -> dict[str, dict[int, CostCell]]:
    """Load the cost of each row by length; raise if it was measured with other settings."""
    costs: dict[str, dict[int, CostCell]] = {}
    for line in read_rows(folder / CELLS_FILE):
        if line["cell"] == label:
            if line["fingerprint"] != fingerprint:
                raise ConfigError(f"{folder} has costs of other sizes or settings: give another --out")
            for name, cell in line["rows"].items():
                if name not in costs or line["tokens"] not in costs[name]:
                    costs.setdefault(name, {})[line["tokens"]] = cell
    return costs


def hash_cost(scale: Scale) -> str:
    """Hash all that a cost depends on but the rows."""
    key = json.dumps([scale.cost, scale.heads, scale.norm], sort_keys=True)
    return sha256(key.encode()).hexdigest()[:16]


def hash_sources(folder: Path) -> dict[str, str]:
    """Hash what the texts of each source were made of."""
    files = {path.parent.name: path for path in (folder / DATA_FOLDER).glob(f"*/{SOURCE_FILE}")}
    return {name: hash_file(path) for name, path in files.items()}


def load_cells(folder: Path) -> dict[str, dict[str, Any]]:
    """Load the last line of each trained cell by its name."""
    return {line["cell"]: line for line in read_rows(folder / CELLS_FILE) if "column" in line}


def is_finished(cell: TableCell, folder: Path) -> bool:
    """Whether a cell has a result; one that failed is tried again."""
    return "value" in load_cells(folder).get(cell.name, {})


def check_finished(cells: Sequence[TableCell], folder: Path) -> None:
    """Raise if the folder has a cell of other settings or data."""
    finished = load_cells(folder)
    for cell in cells:
        line = finished.get(cell.name, {})
        if "value" in line and line["fingerprint"] != cell.fingerprint:
            raise ConfigError(f"{folder} has {cell.name} of other data or settings: give another --out")


@contextmanager
def claim(folder: Path, name: str) -> Iterator[bool]:
    """Claim a cell for this process; False if another one has it."""
    path = folder / f".{name}.lock"
    try:
        descriptor = acquire_lock(path)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
