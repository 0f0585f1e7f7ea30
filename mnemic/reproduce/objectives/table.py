"""Compare objectives of pre-training: pre-train each row, and fine-tune it on each task.

Finished networks and tasks are kept as JSON lines, so an interrupted table resumes. A process
claims what it trains, so that several processes can share a table.
"""

import json
import shlex
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mnemic.checkpoint.atomic_files import hash_file
from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.text_tasks.examples import TextError
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.recipe import ConfigError, Recipe, build, did_you_mean, join_words
from mnemic.reproduce.attention.table import claim
from mnemic.reproduce.objectives.pretrain import BUDGETS, Pretraining, Snapshot, pretrain
from mnemic.reproduce.objectives.rows import ObjectiveRow, build_pretraining_recipe, select_rows
from mnemic.reproduce.objectives.scale import ObjectivesScale, load_scale
from mnemic.reproduce.objectives.sequences import find_reason, hash_sequences, measure_mean_length, prepare_sequences
from mnemic.reproduce.rows import append_rows, describe_hardware, read_rows
from mnemic.reproduce.student_recipes import build_teacher_recipe
from mnemic.reproduce.student_tasks import TASKS, TaskFiles, find_task_files, hold_out_sentences
from mnemic.text.windows import WindowError
from mnemic.train.run import fit

CELLS_FILE = "cells.jsonl"
DATA_FOLDER = "data"  # subfolder with the sequences of all formats
QUESTIONS = "squad"  # the task whose head does not read one state of a text


@dataclass(frozen=True, kw_only=True)
class ObjectivesTable:
    """The settings of a table of objectives; no ``rows`` or ``tasks`` are all of them."""

    data: str  # folder of sequences of single sentences, or of texts
    glue: str = ""  # folders of the tasks; "": they are not measured
    squad: str = ""
    scale_name: str = "small"
    rows: Sequence[str] = ()
    tasks: Sequence[str] = ()
    budgets: Sequence[str] = ()
    seeds: int = 0  # of each task; 0: those of the scale
    sets: Sequence[str] = ()
    device: str = "cpu"

    def __post_init__(self) -> None:
        for names, known, kind in ((self.tasks, TASKS, "task"), (self.budgets, BUDGETS, "budget")):
            if unknown := [name for name in names if name not in known]:
                hint = did_you_mean(unknown[0], known)
                raise ConfigError(f"there is no {kind} {unknown[0]!r}{hint}; {kind}s: {join_words(known)}")
        if self.seeds < 0 or not self.data:
            raise ConfigError("a table of objectives takes --data DIR, and seeds ≥ 1 or 0 for those of the scale")

    @cached_property
    def scale(self) -> ObjectivesScale:
        """The sizes, budgets and tasks."""
        return load_scale(self.scale_name, self.sets)

    @cached_property
    def selected_rows(self) -> dict[str, ObjectiveRow]:
        """The rows by name."""
        return select_rows(self.rows)

    @property
    def selected_budgets(self) -> list[str]:
        """The budgets at which networks are kept."""
        return [budget for budget in BUDGETS if budget in (self.budgets or BUDGETS)]

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Why a task of this table is not measured, by its name."""
        reasons = {}
        for name in (name for name in TASKS if name in (self.tasks or TASKS)):
            try:
                find_task_files(TASKS[name], self.squad, self.glue)
            except TextError as error:
                reasons[name] = str(error)
            if name not in self.scale.tasks:
                reasons[name] = f"the scale {self.scale_name!r} leaves it out"
        return reasons

    @property
    def measured_tasks(self) -> list[str]:
        """The tasks that networks are fine-tuned for."""
        return [name for name in TASKS if name in (self.tasks or TASKS) and name not in self.reasons]

    def seeds_of(self, task: str) -> range:
        """Return the seeds of a task."""
        return range(self.seeds or self.scale.task_settings(task).seeds)

    def budgets_of(self, row: ObjectiveRow) -> list[str]:
        """Return the budgets of a row: a network that is not trained has one."""
        return self.selected_budgets if row.trained else self.selected_budgets[:1]

    @property
    def command(self) -> str:
        """The command that makes this table, without its folder."""
        options = {"--data": self.data, "--glue": self.glue, "--squad": self.squad, "--scale": self.scale_name}
        options |= {"--rows": ",".join(self.rows), "--tasks": ",".join(self.tasks)}
        options |= {"--budgets": ",".join(self.budgets), "--seeds": str(self.seeds or "")}
        words = ["mnemic", "table", "objectives"]
        for option, value in options.items():
            words += [option, value] if value else []
        return shlex.join([*words, *(word for text in self.sets for word in ("--set", text)), "--device", self.device])


class NetworkCell(NamedTuple):
    """The pre-training of a row, which gives a network per budget."""

    work: Pretraining
    fingerprint: str  # of recipe and sequences

    def path_of(self, budget: str) -> Path:
        """Return the folder of the network that is kept at a budget."""
        return self.work.run.parents[1] / "networks" / f"{self.work.row.name}-{budget}"


class TaskCell(NamedTuple):
    """The fine-tuning of a row's network on a task with a seed."""

    row: str
    budget: str
    task: str
    seed: int
    start: Path  # the network
    files: TaskFiles
    sets: Sequence[str]
    fingerprint: str  # of settings, files and the network

    @property
    def name(self) -> str:
        """The name of its run."""
        return f"{self.row}-{self.budget}-{self.task}-{self.seed}"

    def build_recipe(self, depth: int) -> Recipe:
        """Build its recipe; its network must be there."""
        return build_teacher_recipe(TASKS[self.task], self.files, depth, str(self.start), self.sets)


class ObjectivesStep(NamedTuple):
    """The progress of a table: a step of a cell."""

    cell: str
    number: int  # of the cell, from 0
    total: int
    fraction: float  # of the cell that is done
    detail: str = ""
    message: str = ""  # to print: a result, or why there is none


def list_networks(table: ObjectivesTable, folder: Path) -> dict[str, NetworkCell]:
    """List the pre-training of each row whose sequences are there."""
    root = folder / DATA_FOLDER
    cells = {}
    for name, row in table.selected_rows.items():
        if (root / row.sequences).is_dir():
            mean_length = measure_mean_length(root / row.sequences)
            recipe = build_pretraining_recipe(row, table.scale, root / row.sequences, mean_length)
            key = [recipe, table.scale.tokens, table.scale.seconds, hash_sequences(root / row.sequences)]
            work = Pretraining(row, recipe, root, folder / "runs" / name, table.scale, table.device)
            cells[name] = NetworkCell(work, make_fingerprint(key, folder))
    return cells


def list_tasks(table: ObjectivesTable, folder: Path, networks: Mapping[str, NetworkCell]) -> list[TaskCell]:
    """List all fine-tunings, seed by seed: part of a table can be compared."""
    cells = []
    files = {task: locate_files(table, task, folder) for task in table.measured_tasks}
    hashes = {task: [hash_file(path) for path in (files[task].train, files[task].dev)] for task in files}
    for seed in range(max((len(table.seeds_of(task)) for task in files), default=0)):
        for name, network in networks.items():
            row = network.work.row
            for budget in table.budgets_of(row):
                for task in (task for task in files if seed in table.seeds_of(task)):
                    sets = [*table.scale.task_settings(task).sets, *(row.fine_tuning if task != QUESTIONS else ())]
                    key = [TASKS[task], sets, hashes[task], network.fingerprint]
                    fingerprint, start = make_fingerprint(key, folder), network.path_of(budget)
                    cells.append(TaskCell(name, budget, task, seed, start, files[task], sets, fingerprint))
    return cells


def locate_files(table: ObjectivesTable, task: str, folder: Path) -> TaskFiles:
    """Find the files of a task, whose training file may be split below ``folder``."""
    files = find_task_files(TASKS[task], table.squad, table.glue)
    return hold_out_sentences(files, folder / f"{task}-data") if TASKS[task].splits_sentences else files


def make_fingerprint(key: Any, folder: Path) -> str:
    """Hash what a result depends on, wherever its folder is."""
    text = json.dumps(key, sort_keys=True).replace(json.dumps(str(folder))[1:-1], "")
    return sha256(text.encode()).hexdigest()[:16]


def fill_table(table: ObjectivesTable, folder: Path) -> Generator[ObjectivesStep, None, None]:
    """Train the missing networks and tasks; then call ``save_table``.

    What another process has claimed is left to it.
    """
    root = folder / DATA_FOLDER
    rows = [row for row in table.selected_rows.values() if not find_reason(row, table.data, root)]
    prepare_sequences(table.data, rows, table.scale, root)
    networks = list_networks(table, folder)
    tasks = list_tasks(table, folder, networks)
    check_finished(networks, tasks, folder)
    total = len(networks) + len(tasks)
    for number, network in enumerate(networks.values()):
        progress = ObjectivesStep(network.work.row.name, number, total, 0.0)
        yield from fill_network(table, network, tasks, folder, progress)
    for number, task in enumerate(tasks, start=len(networks)):
        if (task.start / "checkpoint").is_dir() and not is_finished(task, folder):
            with claim(folder, task.name) as is_claimed:
                if is_claimed and not is_finished(task, folder):
                    yield from train_task(table, task, folder, ObjectivesStep(task.name, number, total, 0.0))


def fill_network(
    table: ObjectivesTable, network: NetworkCell, tasks: Sequence[TaskCell], folder: Path, progress: ObjectivesStep
) -> Iterator[ObjectivesStep]:
    """Train the networks of a row that are missing and that a task needs."""
    row = network.work.row
    with claim(folder, row.name) as is_claimed:
        finished = load_lines(folder)
        missing = {
            budget: network.path_of(budget)
            for budget in table.budgets_of(row)
            if f"{row.name}-{budget}" not in finished or needs_network(network, budget, tasks, folder)
        }
        if is_claimed and missing:
            yield from train_network(network, missing, folder, progress)


def needs_network(network: NetworkCell, budget: str, tasks: Sequence[TaskCell], folder: Path) -> bool:
    """Whether a network is not there, and a task is to be learned from it."""
    if (network.path_of(budget) / "checkpoint").is_dir():
        return False
    of_network = [task for task in tasks if (task.row, task.budget) == (network.work.row.name, budget)]
    return any(not is_finished(task, folder) for task in of_network)


def train_network(
    network: NetworkCell, missing: Mapping[str, Path], folder: Path, progress: ObjectivesStep
) -> Iterator[ObjectivesStep]:
    """Pre-train a row and keep its networks; one that diverges is kept as such."""
    work, row = network.work, network.work.row
    common = {"row": row.name, "fingerprint": network.fingerprint}
    fractions = dict.fromkeys(missing, 0.0)
    try:
        for report in pretrain(work, missing):
            if isinstance(report, Snapshot):
                line = {"cell": f"{row.name}-{report.budget}", **common, **report._asdict()}
                append_rows(folder / CELLS_FILE, [line])
                fractions[report.budget] = 1.0
                message = f"{line['cell']}: loss {report.metrics['loss']:.3f} after {report.seconds:.0f} s"
                yield progress._replace(fraction=min(fractions.values()), message=message)
            else:
                fraction = min(report.step / work.token_steps, 1.0)
                yield progress._replace(fraction=fraction, detail=f"step {report.step}")
    except (ConfigError, torch.OutOfMemoryError) as error:
        cells = [{"cell": f"{row.name}-{budget}", **common, "failed": str(error)} for budget in missing]
        append_rows(folder / CELLS_FILE, cells)
        yield progress._replace(fraction=1.0, message=f"{row.name}: {error}")
        return
    shutil.rmtree(work.run, ignore_errors=True)  # its networks are kept


def train_task(
    table: ObjectivesTable, cell: TaskCell, folder: Path, progress: ObjectivesStep
) -> Iterator[ObjectivesStep]:
    """Fine-tune and test a network; one that diverges is kept as such."""
    line = {"cell": cell.name, "row": cell.row, "budget": cell.budget, "task": cell.task, "seed": cell.seed}
    line |= {"fingerprint": cell.fingerprint}
    run = folder / "runs" / cell.name
    try:
        for report in fit(cell.build_recipe(table.scale.depth), run, seed=cell.seed, device=table.device):
            fraction = (report.phase + report.step / report.total_steps) / report.num_phases
            yield progress._replace(fraction=fraction, detail=f"step {report.step} of {report.total_steps}")
        line |= evaluate_task(cell, run, table.device)
        message = f"{cell.name}: {line['value']:.1f}"
    except (ConfigError, TextError, WindowError, torch.OutOfMemoryError) as error:
        line["failed"] = str(error)
        message = f"{cell.name}: {error}"
    append_rows(folder / CELLS_FILE, [line])
    shutil.rmtree(run, ignore_errors=True)
    yield progress._replace(fraction=1.0, message=message)


def evaluate_task(cell: TaskCell, run: Path, device: str) -> dict[str, Any]:
    """Test a fine-tuned network on a task's development file."""
    checkpoint = load_checkpoint(run)
    source = build(DATASETS, checkpoint.recipe["data"])
    dataset = source.dataset("test", checkpoint.tokenizer, checkpoint.labels).to(device)
    metrics = compute_metrics(checkpoint.network.to(device), dataset)
    history = checkpoint.progress.history
    return {
        "value": metrics[TASKS[cell.task].metrics[0]],
        "metrics": metrics,
        "examples": len(dataset),
        "steps": history[-1]["steps"],
        "seconds": round(sum(row["seconds"] for row in history), 1),
        "hardware": describe_hardware(torch.device(device)),
    }


def load_lines(folder: Path) -> dict[str, dict[str, Any]]:
    """Load the last line of each finished network and task by its name."""
    return {line["cell"]: line for line in read_rows(folder / CELLS_FILE) if "failed" not in line}


def load_failures(folder: Path) -> dict[str, str]:
    """Load why networks and tasks have no result, by their names."""
    lines = read_rows(folder / CELLS_FILE)
    finished = load_lines(folder)
    return {line["cell"]: line["failed"] for line in lines if "failed" in line and line["cell"] not in finished}


def is_finished(cell: TaskCell, folder: Path) -> bool:
    """Whether a task has a result; one that failed is tried again."""
    return cell.name in load_lines(folder)


def check_finished(networks: Mapping[str, NetworkCell], tasks: Sequence[TaskCell], folder: Path) -> None:
    """Raise if the folder has a result of other settings or data."""
    finished = load_lines(folder)
    expected = {f"{name}-{budget}": cell.fingerprint for name, cell in networks.items() for budget in BUDGETS}
    for name, fingerprint in (expected | {task.name: task.fingerprint for task in tasks}).items():
        if name in finished and finished[name]["fingerprint"] != fingerprint:
            raise ConfigError(f"{folder} has {name} of other data or settings: give another --out")
