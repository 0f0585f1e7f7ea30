"""Reproduce a published bAbI table: train and test all runs, and compare with the paper.

Finished runs are appended to a file of JSON lines, so an interrupted table resumes where it
stopped.
"""

import json
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.checkpoint.atomic_files import write_json
from mnemic.checkpoint.folder import Checkpoint, TrainingProgress, save_checkpoint
from mnemic.checkpoint.lock import lock_folder
from mnemic.data.babi.folder import Size, find_story_folder
from mnemic.evaluate.by_task import mean_error, percent_by_task
from mnemic.recipe import ConfigError, Recipe, current_name_of, load_recipe, override, recipe_names
from mnemic.reproduce.faithfulness import measure_evidence_per_run
from mnemic.reproduce.rows import append_rows, describe_hardware, describe_versions, read_rows
from mnemic.reproduce.statistics import SELECTION_RULES, summarize_runs
from mnemic.reproduce.streams import interleave_trainings
from mnemic.reproduce.timer import LapTimer
from mnemic.reproduce.train_ensemble import EnsembleStep, create_networks, find_wrong_answers_per_run, train_ensemble
from mnemic.train.phases import read_phases
from mnemic.train.run import load_data

AUGMENTED_SUFFIX = "-augmented"  # of recipes that augment the training stories
RUNS_FILE = "runs.jsonl"
PUBLISHED = Path(__file__).with_name("published.toml")
DEFAULT_LANES = 20  # one per task


@dataclass(frozen=True, kw_only=True)
class BabiTable:
    """The settings of a bAbI table to reproduce."""

    recipe: str
    data: str
    size: Size = "1k"
    joint: bool = False
    seeds: int = 5
    tasks: Sequence[int] = tuple(range(1, 21))
    sets: Sequence[str] = ()
    device: str = "cpu"
    at_once: int = 0  # runs trained as one ensemble; 0: all on a GPU, one on a CPU
    lanes: int = 0  # ensembles trained concurrently; 0: DEFAULT_LANES on a GPU, one on a CPU

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.at_once < 0 or self.lanes < 0:
            values = f"seeds = {self.seeds}, at_once = {self.at_once}, lanes = {self.lanes}"
            raise ConfigError(f"a table takes seeds ≥ 1, at_once ≥ 0 and lanes ≥ 0, not {values}")

    @property
    def network(self) -> str:
        """The recipe that papers published results for: the one without augmented stories."""
        return current_name_of(self.recipe).removesuffix(AUGMENTED_SUFFIX)

    def build_recipes(self) -> list[Recipe]:
        """Build one recipe for all tasks, or one per task."""
        return [self.build_recipe(group) for group in self.task_groups()]

    def task_groups(self) -> list[list[int]]:
        """Return the groups of tasks that are trained together."""
        return [list(self.tasks)] if self.joint else [[task] for task in self.tasks]

    def build_recipe(self, tasks: list[int]) -> Recipe:
        """Build the recipe for these tasks, with the table's data and overrides.

        A joint table takes the recipe ``NAME-joint`` if there is one; others the task's settings.
        """
        name = f"{self.recipe}-joint" if self.joint else ""
        name = name if name in recipe_names() else self.recipe
        recipe = load_recipe(name, self.sets, task=None if self.joint else tasks[0])
        files = {"folder": self.data, "size": self.size, "missing": "generate", "tasks": tasks}
        return drop_other_tasks(recipe | {"data": recipe["data"] | files}, tasks)

    def load_published(self) -> dict[str, Any]:
        """Load the paper's results for this setting; empty if no paper has it."""
        published = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
        entry = published.get(self.network, {}).get(f"{self.size}-joint" if self.joint else self.size, {})
        if entry.pop("retold", False) and self.network != current_name_of(self.recipe):
            entry["source"] += ", no story told again"
        return entry

    def selection_split(self) -> str:
        """Return the split whose error selects the best run, as in the network's papers.

        A network that is in no paper selects its best run as its recipe selects its weights.
        """
        published = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
        if self.network not in published:
            keeps_best = self.build_recipes()[0].get("train", {}).get("keep") == "best"
            return "validation" if keeps_best else "train"
        entries = (self.load_published(), *published[self.network].values())
        return next((entry["selection"] for entry in entries if "selection" in entry), "train")

    def hash_recipes(self) -> list[str]:
        """Hash each recipe and the data files: all that determines a run except its seed."""
        digest = hash_data_files(self)
        recipes = [override(recipe, "data.folder", digest) for recipe in self.build_recipes()]
        return [sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16] for recipe in recipes]


def drop_other_tasks(recipe: Recipe, tasks: Sequence[int]) -> Recipe:
    """Remove the augmentation settings of other tasks from a recipe."""
    alike = recipe["data"].get("interchangeable", ())
    if not isinstance(alike, Mapping):
        return recipe
    task_groups = {task: groups for task, groups in alike.items() if int(task) in tasks}
    recipe = override(recipe, "data.interchangeable", task_groups)
    return recipe if task_groups else override(recipe, "data.augment", 0)


class RunGroup(NamedTuple):
    """Runs of one recipe that are trained as one ensemble."""

    number: int  # of the recipe
    recipe: Recipe
    name: str  # hash of the recipe, in the file of finished runs
    seeds: list[int]


GroupStep = tuple[RunGroup, EnsembleStep]


def train_missing_runs(table: BabiTable, folder: Path) -> Generator[GroupStep, None, None]:
    """Train the table's missing runs into ``folder``, yielding steps; then ``build_result``."""
    with lock_folder(folder):
        device, timer = torch.device(table.device), LapTimer(folder / "going" / "seconds.json")
        lanes, split = table.lanes or (DEFAULT_LANES if device.type == "cuda" else 1), table.selection_split()
        check_folder(table, folder)
        groups = list_missing_groups(table, folder)
        trainings = (train_group(folder, group, device, split, timer) for group in groups)
        try:
            yield from interleave_trainings(trainings, lanes=lanes, device=device)
        except GeneratorExit:
            timer.stop()
            raise


def check_folder(table: BabiTable, folder: Path) -> None:
    """Raise if ``folder`` has runs of another recipe for the same tasks.

    The folder ``best`` has room for one network per task.
    """
    keys, groups = table.hash_recipes(), table.task_groups()
    if any(name not in keys and run["tasks"] in groups for (name, _), run in load_runs(folder).items()):
        raise ConfigError(
            f"{folder} has runs of another recipe or other settings for the same tasks; give another --out"
        )


def list_missing_groups(table: BabiTable, folder: Path) -> list[RunGroup]:
    """List the groups of runs that are not trained yet."""
    finished_runs, groups = load_runs(folder), []
    group_size = table.at_once or (table.seeds if table.device.startswith("cuda") else 1)
    for number, (name, recipe) in enumerate(zip(table.hash_recipes(), table.build_recipes())):
        seeds = [seed for seed in range(table.seeds) if (name, seed) not in finished_runs]
        for first in range(0, len(seeds), group_size):
            groups.append(RunGroup(number, recipe, name, seeds[first : first + group_size]))
    return groups


def train_group(
    folder: Path, group: RunGroup, device: torch.device, selection_split: str, timer: LapTimer
) -> Generator[GroupStep, None, None]:
    """Train, test and save the runs of a group, yielding steps.

    Saves the network of the best run if it is the best of the recipe so far.
    """
    recipe, seeds = group.recipe, group.seeds
    data: Any = load_data(recipe)
    networks = create_networks(recipe, data, seeds)
    rows_per_run = [torch.arange(len(data.train))] * len(seeds)
    key = "-".join(map(str, [group.name, *seeds]))
    path = folder / "going" / f"{sha256(key.encode()).hexdigest()[:16]}.safetensors"
    steps = train_ensemble(
        recipe, data, networks, seeds=seeds, rows_per_run=rows_per_run, device=device, progress_path=path
    )
    with closing(steps):
        for step in steps:
            yield group, step
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    errors = {split: compute_run_errors(networks, dataset, device) for split, dataset in splits.items()}
    evidence = measure_evidence_per_run(networks, data.test, device)
    seconds = timer.lap() / len(seeds)
    rows = [
        {
            "recipe": group.name,
            "tasks": list(recipe["data"]["tasks"]),
            "seed": seed,
            "generated": list(data.generated_tasks),
            "seconds": round(seconds, 2),
            **{split: run_errors[run] for split, run_errors in errors.items()},
            "evidence": evidence[run],
            "hardware": describe_hardware(device),
        }
        for run, seed in enumerate(seeds)
    ]
    append_runs(folder, rows)
    finished_runs = [run for (name, _), run in load_runs(folder).items() if name == group.name]
    best_seed = min(finished_runs, key=lambda run: mean_error(list(run[selection_split].values())))["seed"]
    if best_seed in seeds:
        checkpoint = Checkpoint(
            recipe=recipe,
            seed=best_seed,
            sizes=data.sizes,
            tokenizer=data.tokenizer,
            network=networks[seeds.index(best_seed)],
            progress=TrainingProgress(phase=len(read_phases(recipe)), done=True),
            state={},
        )
        tasks = recipe["data"]["tasks"]
        save_checkpoint(folder / "best" / (f"task{tasks[0]}" if len(tasks) == 1 else "tasks"), checkpoint)


def compute_run_errors(networks: Sequence[Any], dataset: Any, device: torch.device) -> list[dict[int, float]]:
    """Compute each run's error per task on a split of the data."""
    rows: Tensor = torch.arange(len(dataset)).expand(len(networks), -1)
    is_wrong = find_wrong_answers_per_run(networks, dataset, rows, device)
    return [percent_by_task(run_wrong, dataset.task) for run_wrong in is_wrong]


def build_result(table: BabiTable, folder: Path) -> dict[str, Any]:
    """Build the table from the runs in ``folder``, next to the published one."""
    finished_runs = load_runs(folder)
    runs = [finished_runs[name, seed] for name in table.hash_recipes() for seed in range(table.seeds)]
    paper, split = table.load_published(), table.selection_split()
    results = summarize_runs(runs, table.seeds, split, joint=table.joint)
    if paper:
        paper["per_task"] = {str(task): error for task, error in enumerate(paper["per_task"], start=1)}
    return {
        "table": "babi",
        "recipe": table.recipe,
        "size": table.size,
        "setting": "joint" if table.joint else "per task",
        "overrides": list(table.sets),
        "seeds": list(range(table.seeds)),
        "selection": SELECTION_RULES[split],
        "ours": results,
        "published": paper,
        "generated_training_tasks": sorted({task for run in runs for task in run["generated"]}),
        "data_sha256": hash_data_files(table),
        "hardware": ", ".join(sorted({run["hardware"] for run in runs})),
        "versions": describe_versions(),
        "seconds": round(sum(run["seconds"] for run in runs), 1),
    }


def load_runs(folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Load the finished runs by recipe hash and seed; skip lines that were cut short."""
    rows = read_rows(folder / RUNS_FILE)
    return {(row["recipe"], row["seed"]): {"hardware": "unknown"} | row for row in rows}


def append_runs(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append finished runs to the JSON lines file of a table's folder."""
    append_rows(folder / RUNS_FILE, rows)


def save_result(table: BabiTable, folder: Path) -> dict[str, Any]:
    """Save the table as ``table.json`` in the folder of its runs."""
    contents = build_result(table, folder)
    write_json(folder / "table.json", contents)
    return contents


def hash_data_files(table: BabiTable) -> str:
    """Compute one SHA-256 of the official data files that the table uses."""
    hasher = sha256()
    for path in sorted(find_story_folder(Path(table.data).expanduser(), table.size).glob("qa*.txt")):
        hasher.update(path.name.encode() + path.read_bytes())
    return hasher.hexdigest()
