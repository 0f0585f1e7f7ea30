"""Compare students with their teacher on several tasks: quality, size and time.

The students of a task differ in what they learn from: labels, a teacher's soft labels, its layers,
or several teachers. Those that find texts differ in their negatives instead. Tasks of classes have
a baseline of words beside them. Finished runs are saved as runs of ``mnemic train``, so an
interrupted table resumes. The best epoch is chosen on texts that are held out of training; dev is
for the table.
"""

import shlex
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, NamedTuple

import torch

from mnemic.checkpoint.atomic_files import hash_file, write_json
from mnemic.checkpoint.folder import RECIPE, find_checkpoint, load_checkpoint, read_metadata, weights_of
from mnemic.checkpoint.lock import lock_folder
from mnemic.checkpoint.quantize import quantize_weights
from mnemic.data import DATASETS
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.examples import TextError
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.models.evaluating import evaluating
from mnemic.recipe import ConfigError, Recipe, build, did_you_mean, join_words
from mnemic.reproduce.babi_table import append_runs, load_runs
from mnemic.reproduce.rows import describe_hardware, describe_versions
from mnemic.reproduce.student_recipes import (
    LEARNING_KEYS,
    NETWORKS,
    add_teachers,
    build_baseline_recipe,
    build_finder_recipes,
    build_student_recipe,
    build_teacher_recipe,
    describe_start,
)
from mnemic.reproduce.student_tasks import DEFAULT_TASKS, TASKS, TaskFiles, find_task_files, hold_out_sentences
from mnemic.train.run import StepReport, fit

TEXTS_PER_BATCH = 32  # whose time is measured
MAX_BATCHES = 20


@dataclass(frozen=True, kw_only=True)
class StudentsTable:
    """The settings of a table of students; no ``tasks``: those that have files."""

    squad: str = ""  # folder of SQuAD's files
    glue: str = ""  # folder of GLUE's tasks
    start: str = ""  # weights that teachers start from; "": random ones
    tasks: Sequence[str] = ()
    depth: int = 3  # of the students
    width: int = 0  # of the students; 0: their teacher's
    teachers: int = 3  # of the ensemble
    cross_encoder: str = ""  # teacher of a student that finds texts; "": no such student
    seeds: int = 1
    sets: Sequence[str] = ()  # of all networks
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.teachers < 2 or self.depth < 1 or self.width < 0:
            raise ConfigError("a table of students takes seeds ≥ 1, at least 2 teachers, a depth ≥ 1 and a width ≥ 0")
        if unknown := [name for name in self.tasks if name not in TASKS]:
            hint = did_you_mean(unknown[0], TASKS)
            raise ConfigError(f"there is no task {unknown[0]!r}{hint}; tasks: {join_words(TASKS)}")

    @cached_property
    def located(self) -> dict[str, TaskFiles | TextError]:
        """The files of each task, or what is missing.

        It is an error if files of ``tasks`` are missing, or those of all default tasks.
        """
        located: dict[str, TaskFiles | TextError] = {}
        for name in (name for name in TASKS if name in (self.tasks or DEFAULT_TASKS)):
            try:
                located[name] = find_task_files(TASKS[name], self.squad, self.glue)
            except TextError as error:
                if self.tasks:
                    raise
                located[name] = error
        if not self.squad and not self.glue:
            raise TextError("a table of students needs files: add --squad DIR, --glue DIR or both")
        if all(isinstance(files, TextError) for files in located.values()):
            raise TextError("; ".join(map(str, located.values())))
        return located

    @property
    def files(self) -> dict[str, TaskFiles]:
        """The files of each task of the table."""
        return {name: files for name, files in self.located.items() if isinstance(files, TaskFiles)}

    @property
    def skipped(self) -> dict[str, str]:
        """What is missing of each task that is left out; only without ``tasks``."""
        return {name: str(error) for name, error in self.located.items() if isinstance(error, TextError)}

    def files_in(self, folder: Path, name: str) -> TaskFiles:
        """Return the files of a task, whose training file may be split in ``folder``."""
        files = self.files[name]
        return hold_out_sentences(files, folder / f"{name}-data") if TASKS[name].splits_sentences else files

    def build_recipes(self, folder: Path, name: str, files: TaskFiles) -> dict[tuple[str, int], Recipe]:
        """Build the recipe of each network and seed, in the order of training."""
        task = TASKS[name]
        common_sets = [text for text in self.sets if not text.startswith(LEARNING_KEYS)]
        sets = [text for text in self.sets if text.startswith(LEARNING_KEYS)]
        teacher = build_teacher_recipe(task, files, self.depth, self.start, common_sets)
        student = build_student_recipe(task, files, teacher, self.depth, self.width, common_sets)
        if task.finds_texts:
            finders = build_finder_recipes(student, self.cross_encoder)
            return {(network, seed): finders[network] for seed in range(self.seeds) for network in finders}
        teachers = [str(folder / f"{name}-teacher-{seed}") for seed in range(max(self.seeds, self.teachers))]
        recipes = {("teacher", seed): teacher for seed in range(len(teachers))}
        for seed in range(self.seeds):
            recipes["alone", seed] = student
            recipes["soft", seed] = add_teachers(student, teachers[seed : seed + 1], sets)
            recipes["layers", seed] = add_teachers(student, teachers[seed : seed + 1], sets, with_layers=True)
            recipes["ensemble", seed] = add_teachers(student, teachers[: self.teachers], sets)
            if task.baseline:
                recipes["baseline", seed] = build_baseline_recipe(task, files)
        return recipes

    @property
    def command(self) -> str:
        """The command that makes this table, without its folder."""
        words = ["mnemic", "table", "students"]
        options = {"--squad": self.squad, "--glue": self.glue, "--start": self.start, "--tasks": ",".join(self.tasks)}
        options |= {"--cross-encoder": self.cross_encoder}
        sizes = {"--depth": self.depth, "--width": self.width, "--teachers": self.teachers, "--seeds": self.seeds}
        for option, value in (options | sizes).items():
            words += [option, str(value)] if value else []
        return shlex.join([*words, *(word for text in self.sets for word in ("--set", text)), "--device", self.device])


class StudentStep(NamedTuple):
    """The progress of a table: a step of one of its runs."""

    task: str
    network: str
    seed: int
    number: int  # of the run, from 0
    total: int
    report: StepReport


def train_missing_students(table: StudentsTable, folder: Path) -> Generator[StudentStep, None, None]:
    """Train and evaluate the missing runs; then call ``save_students``."""
    # Mistakes are found before the first step.
    total = sum(len(table.build_recipes(folder, name, files)) for name, files in table.files.items())
    with lock_folder(folder):
        number = 0
        for name in table.files:
            hashes = hash_files(table, name)
            recipes = table.build_recipes(folder, name, table.files_in(folder, name))
            for (network, seed), recipe in recipes.items():
                if not is_finished(folder, f"{name}-{network}", seed, recipe, hashes):
                    run = folder / f"{name}-{network}-{seed}"
                    for report in fit(recipe, run, seed=seed, device=table.device):
                        yield StudentStep(name, network, seed, number, total, report)
                    row = {"recipe": f"{name}-{network}", "seed": seed, "data_sha256": hashes}
                    append_runs(folder, [row | evaluate_student(run, table.device)])
                number += 1


def hash_files(table: StudentsTable, name: str) -> dict[str, str]:
    """Hash the files of a task, by their names."""
    files = table.files[name]
    return {path.name: hash_file(path) for path in (files.train, files.dev)}


def is_finished(folder: Path, name: str, seed: int, recipe: Recipe, hashes: Mapping[str, str]) -> bool:
    """Whether a run is there; raise if its data has changed since."""
    row = load_runs(folder).get((name, seed))
    if row is None:
        return False
    if row["data_sha256"] != hashes:
        raise ConfigError(
            f"{folder / f'{name}-{seed}'} has learned from other files than {join_words(hashes)} are now: "
            "give another --out"
        )
    metadata = read_metadata(find_checkpoint(folder / f"{name}-{seed}") / RECIPE)
    return bool(metadata["recipe"] == recipe)  # ``fit`` says what to do about another one


def evaluate_student(run: Path, device: str) -> dict[str, Any]:
    """Measure a finished run: metrics on dev, size in int8, time on the CPU."""
    checkpoint = load_checkpoint(run)
    network, history = checkpoint.network, checkpoint.progress.history
    texts = build(DATASETS, checkpoint.recipe["data"]).dataset("test", checkpoint.tokenizer, checkpoint.labels)
    metrics = compute_metrics(network.to(device), texts.to(device))
    weights = weights_of(network.cpu())
    stored = quantize_weights(weights).values()
    return {
        "metrics": metrics,
        "texts": len(texts),
        "weights": sum(weight.numel() for weight in weights.values()),
        "mb": round(sum(weight.numel() * weight.element_size() for weight in stored) / 1e6, 3),
        "ms": round(measure_milliseconds(network, (texts.retrieval.texts if texts.retrieval else texts).to("cpu")), 3),
        "cpu": describe_hardware(torch.device("cpu")),
        "hardware": describe_hardware(torch.device(device)),
        "steps": history[-1]["steps"],
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


@torch.no_grad()
def measure_milliseconds(network: Any, dataset: TextDataset) -> float:
    """Measure the milliseconds a text: the median of batches of a dataset, in its order.

    A text has all its windows; tokenizing is not counted.
    """
    batches = list(torch.arange(len(dataset)).split(TEXTS_PER_BATCH)[:MAX_BATCHES])
    times = []
    with evaluating(network):
        for rows in [batches[0], *batches]:  # the first one is a warm-up
            inputs = dataset.batch(rows).inputs
            start = time.perf_counter()
            network(inputs)
            times.append(1000 * (time.perf_counter() - start) / len(rows))
    return median(times[1:])


def save_students(table: StudentsTable, folder: Path) -> dict[str, Any]:
    """Save the rows of each task as ``table.json``."""
    runs = load_runs(folder)
    tasks = {}
    for name in table.files:
        recipes = table.build_recipes(folder, name, table.files_in(folder, name))
        rows = [
            {"network": network, **summarize_seeds([runs[f"{name}-{network}", seed] for seed in range(table.seeds)])}
            for network in NETWORKS
            if (network, 0) in recipes
        ]
        add_shares(rows, TASKS[name].metrics[0])
        student, teacher = (recipes.get((network, 0)) for network in ("alone", "teacher"))
        student = student or recipes[rows[0]["network"], 0]
        tasks[name] = {
            "metrics": list(TASKS[name].metrics),
            "recipe": TASKS[name].recipe,
            "student_start": describe_start(student),
            "student_width": student["model"]["width"],
            "teacher_depth": teacher["model"]["encode"]["stack"]["depth"] if teacher else None,
            "held_out": TASKS[name].held_out,
            "data_sha256": hash_files(table, name),
            "rows": rows,
        }
    all_runs = [run for task in tasks.values() for row in task["rows"] for run in row["runs"]]
    result = {
        "table": "students",
        "command": table.command,
        "tasks": tasks,
        "skipped": table.skipped,
        "start": table.start,
        "depth": table.depth,
        "teachers": table.teachers,
        "cross_encoder": table.cross_encoder,
        "seeds": list(range(table.seeds)),
        "overrides": list(table.sets),
        "texts_per_batch": TEXTS_PER_BATCH,
        "cpu": join_words(sorted({run["cpu"] for run in all_runs})),
        "hardware": join_words(sorted({run["hardware"] for run in all_runs})),
        "versions": describe_versions(),
        "seconds": round(sum(run["seconds"] for run in all_runs), 1),
    }
    write_json(folder / "table.json", result)
    return result


def add_shares(rows: Sequence[dict[str, Any]], metric: str) -> None:
    """Add to each row its share of the teacher's metric, None without one above 0."""
    teacher_score = rows[0]["metrics"][metric]["mean"] if rows[0]["network"] == "teacher" else 0.0
    for row in rows:
        row["share_of_teacher"] = 100 * row["metrics"][metric]["mean"] / teacher_score if teacher_score > 0 else None


def summarize_seeds(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarize the runs of a network: its metrics over seeds, its size and time."""
    values = {name: [run["metrics"][name] for run in runs] for name in runs[0]["metrics"]}
    return {
        "metrics": {
            name: {"mean": mean(scores), "std": stdev(scores) if len(scores) > 1 else 0.0}
            for name, scores in values.items()
        },
        "mb": runs[0]["mb"],
        "ms": median([run["ms"] for run in runs]),
        "weights": runs[0]["weights"],
        "seconds": round(sum(run["seconds"] for run in runs), 1),
        "runs": list(runs),
    }
