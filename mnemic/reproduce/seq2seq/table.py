"""Compare noises of sequence-to-sequence pre-training on several tasks.

Each row pre-trains an encoder-decoder on one list of noises and fine-tunes it on the task of each
column; rows from scratch stand beside. A finished cell is a JSON line, so an interrupted table
resumes. Generated texts are kept with it, and scored when the table is saved: where networks are
trained, the libraries of scores need not be installed.
"""

import json
import shlex
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.data.corpora.packed_folder import METADATA_FILE
from mnemic.data.corpora.sequence_folder import is_sequence_folder
from mnemic.data.text_tasks.examples import TextError
from mnemic.recipe import ConfigError, Recipe, did_you_mean, join_words, load_recipe, override
from mnemic.reproduce.attention.table import claim
from mnemic.reproduce.rows import append_rows, read_rows
from mnemic.reproduce.seq2seq.bodies import body_of, write_body
from mnemic.reproduce.seq2seq.evaluate_cell import evaluate_cell
from mnemic.reproduce.seq2seq.rows import COLUMNS, PRETRAINING, ROWS
from mnemic.train.initialize import copy_dropout, start_recipe_from
from mnemic.train.run import fit

CELLS_FILE = "cells.jsonl"
STAGES = (PRETRAINING, *COLUMNS)  # that a setting may be of


@dataclass(frozen=True, kw_only=True)
class Seq2SeqTable:
    """The settings of a table of noises; empty ``rows`` and ``columns`` are all."""

    data: str  # folder of packed sequences
    squad: str = ""  # folder of SQuAD's files
    multi30k: str = ""  # folder of parallel lines
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    seeds: int = 1
    sets: Sequence[str] = ()  # "squad.train.epochs=2" is for one stage, "model.width=64" for all
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"--seeds is at least 1, not {self.seeds}")
        for names, known in ((self.rows, ROWS), (self.columns, COLUMNS)):
            if unknown := [name for name in names if name not in known]:
                hint = did_you_mean(unknown[0], known)
                raise ConfigError(f"this table has no {unknown[0]!r}{hint}; it has {join_words(known)}")
        if not is_sequence_folder(Path(self.data).expanduser()):
            raise ConfigError(
                f"{self.data} holds no sequences; make them with: mnemic data sequences t5-pretrain --data TEXTS "
                f"--out {self.data}"
            )
        if not self.selected_columns:
            raise ConfigError("a table of noises needs tasks: add --squad DIR, --multi30k DIR or both")

    @property
    def selected_rows(self) -> list[str]:
        """The rows of the table, in order."""
        return [name for name in ROWS if name in (self.rows or ROWS)]

    @property
    def selected_columns(self) -> list[str]:
        """The columns of the table whose data is there, in order."""
        names = [name for name in COLUMNS if name in (self.columns or COLUMNS)]
        if missing := [name for name in names if self.columns and not self.folder_of(name)]:
            raise ConfigError(f"column {missing[0]!r} needs --{COLUMNS[missing[0]].source} DIR")
        return [name for name in names if self.folder_of(name)]

    def folder_of(self, column: str) -> str:
        """Return the folder of a column's data; "" if it is not named."""
        return self.squad if COLUMNS[column].source == "squad" else self.multi30k

    def settings_of(self, stage: str) -> list[str]:
        """List the settings of all stages, then those of one."""
        common = [text for text in self.sets if text.partition(".")[0] not in STAGES]
        return common + [text.removeprefix(f"{stage}.") for text in self.sets if text.startswith(f"{stage}.")]

    @property
    def command(self) -> str:
        """The command that makes this table, without its folder."""
        options = {"--data": self.data, "--squad": self.squad, "--multi30k": self.multi30k,
                   "--rows": ",".join(self.rows), "--columns": ",".join(self.columns)}  # fmt: skip
        words = ["mnemic", "table", "seq2seq"]
        words += [word for option, value in options.items() if value for word in (option, value)]
        words += ["--seeds", str(self.seeds), *(word for text in self.sets for word in ("--set", text))]
        return shlex.join(words)


class NoiseCell(NamedTuple):
    """A network to train: the pre-training of a row, or its task of a column."""

    row: str
    column: str  # or PRETRAINING
    seed: int

    @property
    def name(self) -> str:
        """The name of its run."""
        return f"{self.row}-{self.column}-{self.seed}"


class CellStep(NamedTuple):
    """The progress of a table: a step of one of its cells."""

    cell: str
    number: int  # of the cell, from 0
    total: int
    fraction: float  # of the cell
    detail: str


def list_cells(table: Seq2SeqTable) -> list[NoiseCell]:
    """List the cells of a table, each row with its pre-training before its tasks."""
    cells = []
    for seed in range(table.seeds):
        for row in table.selected_rows:
            cells += [NoiseCell(row, PRETRAINING, seed)] * (ROWS[row].noises is not None)
            cells += [NoiseCell(row, column, seed) for column in table.selected_columns]
    return cells


def build_pretraining_recipe(table: Seq2SeqTable, row: str) -> Recipe:
    """Build the recipe of a row's pre-training, whose shape its rows from scratch have, too."""
    folder = Path(table.data).expanduser()
    about = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))["about"]
    data = {"folder": str(folder), **{key: about[key] for key in ("length", "words", "tokenizer", "format")}}
    noises = ROWS[row].noises or ()

    def change(recipe: Recipe) -> Recipe:
        for key, value in data.items():
            recipe = override(recipe, f"data.{key}", value)
        return override(recipe, "objective.noises", [dict(noise) for noise in noises])

    return load_recipe("bart-pretrain", table.settings_of(PRETRAINING), change=change)


def build_cell_recipe(table: Seq2SeqTable, cell: NoiseCell, folder: Path) -> Recipe:
    """Build the recipe of a cell; a task starts from the row's finished pre-training."""
    pretraining = build_pretraining_recipe(table, cell.row)
    if cell.column == PRETRAINING:
        return pretraining
    column, row, model = COLUMNS[cell.column], ROWS[cell.row], pretraining["model"]

    def change(recipe: Recipe) -> Recipe:
        if row.noises is not None:
            start = folder / "runs" / NoiseCell(cell.row, PRETRAINING, cell.seed).name
            return start_recipe_from(recipe, write_body(start) if column.reads_spans else start)
        encode = body_of(model) if column.reads_spans else model["encode"]
        changes = {"model.width": model["width"], "model.encode": copy_dropout(encode, recipe["model"]["encode"])}
        if not column.reads_spans:
            changes["model.respond"] = copy_dropout(model["respond"], recipe["model"]["respond"])
        if not row.own_vocabulary:
            changes["data.tokenizer"] = {"kind": "stored", "folder": str(Path(table.data).expanduser())}
        for key, value in changes.items():
            recipe = override(recipe, key, value)
        return recipe

    settings = [f"data.folder={table.folder_of(cell.column)}", *column.settings]
    settings += [text for text in table.settings_of(cell.column) if not text.startswith("model.")]
    return load_recipe(column.recipe, settings, change=change)


def fill_table(table: Seq2SeqTable, folder: Path) -> Generator[CellStep, None, None]:
    """Train and evaluate the missing cells; then call ``save_table``.

    Cells that another process has claimed are left to it.
    """
    cells = list_cells(table)
    folder.mkdir(parents=True, exist_ok=True)
    for row in table.selected_rows:
        build_pretraining_recipe(table, row)  # mistakes are found before the first step
    for number, cell in enumerate(cells):
        if cell.name not in load_cells(folder):
            with claim(folder, cell.name) as is_claimed:
                if is_claimed and cell.name not in load_cells(folder):
                    yield from train_cell(table, cell, folder, number, len(cells))


def train_cell(
    table: Seq2SeqTable, cell: NoiseCell, folder: Path, number: int, total: int
) -> Generator[CellStep, None, None]:
    """Train, test and keep a cell; keep the reason if it cannot be trained."""
    line: dict[str, Any] = {"cell": cell.name, **cell._asdict()}
    run = folder / "runs" / cell.name
    pretraining = load_cells(folder).get(cell._replace(column=PRETRAINING).name, {})
    if "failed" in pretraining:
        append_rows(folder / CELLS_FILE, [line | {"failed": f"its pre-training failed: {pretraining['failed']}"}])
        return
    try:
        recipe = build_cell_recipe(table, cell, folder)
        for report in fit(recipe, run, seed=cell.seed, device=table.device):
            fraction = (report.phase + report.step / report.total_steps) / report.num_phases
            yield CellStep(cell.name, number, total, fraction, f"step {report.step} of {report.total_steps}")
        line |= evaluate_cell(run, table.device)
    except (ConfigError, TextError) as error:
        line |= {"failed": str(error)}
    append_rows(folder / CELLS_FILE, [line])


def load_cells(folder: Path) -> dict[str, dict[str, Any]]:
    """Load the finished cells by name."""
    return {line["cell"]: line for line in read_rows(folder / CELLS_FILE)}
