"""Rebuild a published table: train every run it needs, test, and set ours beside the paper's.

Finished runs are kept in a file of JSON lines, so a table that was stopped goes on where it was.
"""

import json
import platform
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic import __version__
from mnemic.checkpoint.atomic_files import write_json
from mnemic.checkpoint.folder import Checkpoint, Progress, save
from mnemic.checkpoint.lock import lock
from mnemic.data.babi.folder import Size, folder_of
from mnemic.evaluate.error_rate import by_task, mean
from mnemic.recipe import ConfigError, Recipe, load, names, override
from mnemic.reproduce.faithfulness import read_many
from mnemic.reproduce.statistics import RULES, joint_figures, task_figures
from mnemic.reproduce.streams import side_by_side
from mnemic.reproduce.timer import Clock
from mnemic.reproduce.train_ensemble import Watched, fit_many, new_networks, wrong_many
from mnemic.train.phases import phases
from mnemic.train.run import data_of

RETOLD = "-retold"  # ends the names of recipes that tell training stories several times
PUBLISHED = Path(__file__).with_name("published.toml")
LANES = 20  # one a task


@dataclass(frozen=True, kw_only=True)
class BabiTable:
    """Which table to rebuild."""

    recipe: str
    data: str
    size: Size = "1k"
    joint: bool = False
    seeds: int = 5
    tasks: Sequence[int] = tuple(range(1, 21))
    sets: Sequence[str] = ()
    device: str = "cpu"
    at_once: int = 0  # runs trained as one program; 0: all on a GPU, one by one on a CPU
    lanes: int = 0  # such programs side by side; 0: LANES on a GPU, one on a CPU

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.at_once < 0 or self.lanes < 0:
            came = f"seeds = {self.seeds}, at_once = {self.at_once}, lanes = {self.lanes}"
            raise ConfigError(f"a table takes seeds ≥ 1, at_once ≥ 0 and lanes ≥ 0, not {came}")

    def name(self, tasks: Sequence[int]) -> str:
        """The recipe for these tasks: ``entnet-task3`` or ``memn2n-joint`` where there is one."""
        own = f"{self.recipe}-joint" if self.joint else f"{self.recipe}-task{tasks[0]}"
        return own if own in names() else self.recipe

    def recipes(self) -> list[Recipe]:
        """One recipe for all tasks, or one a task."""
        return [self.recipe_of(group) for group in self.groups()]

    def groups(self) -> list[list[int]]:
        """The tasks that are learned together."""
        return [list(self.tasks)] if self.joint else [[task] for task in self.tasks]

    def recipe_of(self, tasks: list[int]) -> Recipe:
        whole = load(self.name(tasks), self.sets)
        given = {"folder": self.data, "size": self.size, "missing": "generate", "tasks": tasks}
        for key, value in given.items():
            whole = override(whole, f"data.{key}", value)
        return without_others(whole, tasks)

    def published(self) -> dict[str, Any]:
        """What the paper prints for this setting; nothing, where no paper has it."""
        every = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
        network = self.recipe.removesuffix(RETOLD)
        own = every.get(network, {}).get(f"{self.size}-joint" if self.joint else self.size, {})
        if own.pop("retold", False) and network != self.recipe:
            own["source"] += ", no story told again"
        return own

    def rule(self) -> str:
        """The part of the data whose error chooses the best run: as the network's papers did it."""
        every = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
        others = every.get(self.recipe.removesuffix(RETOLD), {}).values()
        known = [own["selection"] for own in (self.published(), *others) if "selection" in own]
        return known[0] if known else "train"

    def run_keys(self) -> list[str]:
        """A name a recipe, for all that decides a run but its seed: the recipe and the files."""
        digest = data_digest(self)
        whole = [override(recipe, "data.folder", digest) for recipe in self.recipes()]
        return [sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16] for own in whole]


def without_others(recipe: Recipe, tasks: Sequence[int]) -> Recipe:
    """The recipe without what it says of retelling other tasks' stories."""
    alike = recipe["data"].get("alike", ())
    if not isinstance(alike, Mapping):
        return recipe
    own = {task: groups for task, groups in alike.items() if int(task) in tasks}
    recipe = override(recipe, "data.alike", own)
    return recipe if own else override(recipe, "data.retold", 0)


class Group(NamedTuple):
    """Runs of one recipe that are trained as one program."""

    number: int  # of the recipe
    recipe: Recipe
    name: str  # of the recipe, among the kept runs
    seeds: list[int]


class Going(NamedTuple):
    """A step of one group of a table in the making."""

    group: Group
    watched: Watched


def rebuild(table: BabiTable, folder: Path) -> Generator[Going, None, None]:
    """Train what is missing of the table, into ``folder``; ``result`` then reads it."""
    with lock(folder):
        device, clock = torch.device(table.device), Clock(folder / "going" / "seconds.json")
        lanes = table.lanes or (LANES if device.type == "cuda" else 1)
        check_alone(table, folder)
        rule = table.rule()
        trainings = (
            train_group(folder, group, device, rule, clock) for group in missing(table, folder)
        )
        try:
            yield from side_by_side(trainings, lanes=lanes, device=device)
        except GeneratorExit:
            clock.stop()
            raise


def check_alone(table: BabiTable, folder: Path) -> None:
    """No other recipe's runs of the same tasks are there: ``best`` has room for one a task."""
    keys, groups = table.run_keys(), table.groups()
    for (name, _), run in kept(folder).items():
        if name not in keys and run["tasks"] in groups:
            raise ConfigError(
                f"{folder} has runs of another recipe or other settings for the same tasks; give "
                "another --out"
            )


def missing(table: BabiTable, folder: Path) -> list[Group]:
    """The groups that are not trained yet."""
    done, groups = kept(folder), []
    at_once = table.at_once or (table.seeds if table.device.startswith("cuda") else 1)
    for number, (name, recipe) in enumerate(zip(table.run_keys(), table.recipes())):
        seeds = [seed for seed in range(table.seeds) if (name, seed) not in done]
        for first in range(0, len(seeds), at_once):
            groups.append(Group(number, recipe, name, seeds[first : first + at_once]))
    return groups


def train_group(
    folder: Path, group: Group, device: torch.device, rule: str, clock: Clock
) -> Generator[Going, None, None]:
    """Train, test and keep the runs of one group, and its network if none was better so far."""
    recipe, seeds = group.recipe, group.seeds
    data = data_of(recipe)
    networks = new_networks(recipe, data, seeds)
    pools = [torch.arange(len(data.train))] * len(seeds)
    key = "-".join(map(str, [group.name, *seeds]))
    going = folder / "going" / f"{sha256(key.encode()).hexdigest()[:16]}.safetensors"
    steps = fit_many(recipe, data, networks, seeds=seeds, pools=pools, device=device, going=going)
    with closing(steps):
        for watched in steps:
            yield Going(group, watched)
    errors = {
        part: test(recipe, data, networks, part, device) for part in ("train", "validation", "test")
    }
    read = read_many(recipe, data, networks, device)
    took = clock.lap() / len(seeds)
    rows = [
        {
            "recipe": group.name,
            "tasks": list(recipe["data"]["tasks"]),
            "seed": seed,
            "generated": list(data.made),
            "seconds": round(took, 2),
            **{part: found[run] for part, found in errors.items()},
            "evidence": read[run],
            "hardware": hardware(device),
        }
        for run, seed in enumerate(seeds)
    ]
    keep(folder, rows)
    ours = [run for (name, _), run in kept(folder).items() if name == group.name]
    best = min(ours, key=lambda run: mean(list(run[rule].values())))["seed"]
    if best in seeds:
        checkpoint = Checkpoint(
            recipe=recipe,
            seed=best,
            sizes=data.sizes,
            tokenizer=data.words,
            network=networks[seeds.index(best)],
            progress=Progress(phase=len(phases(recipe)), done=True),
            state={},
        )
        tasks = recipe["data"]["tasks"]
        save(folder / "best" / (f"task{tasks[0]}" if len(tasks) == 1 else "tasks"), checkpoint)


def test(
    recipe: Recipe, data: Any, networks: Sequence[Any], part: str, device: torch.device
) -> list[dict[int, float]]:
    """The error of every run, task by task, on a part of the data."""
    stories = getattr(data, part)
    rows: Tensor = torch.arange(len(stories)).expand(len(networks), -1)
    wrong = wrong_many(recipe, data, networks, rows, part, device)
    return [by_task(own, stories.task) for own in wrong]


def result(table: BabiTable, folder: Path) -> dict[str, Any]:
    """Ours beside the published table, from the runs in ``folder``."""
    done = kept(folder)
    runs = [done[name, seed] for name in table.run_keys() for seed in range(table.seeds)]
    paper, part = table.published(), table.rule()
    ours = joint_figures(runs, part) if table.joint else task_figures(runs, table.seeds, part)
    if paper:
        paper["per_task"] = {str(t): e for t, e in enumerate(paper["per_task"], start=1)}
    return {
        "table": "babi",
        "recipe": table.recipe,
        "size": table.size,
        "setting": "joint" if table.joint else "per task",
        "overrides": list(table.sets),
        "seeds": list(range(table.seeds)),
        "selection": RULES[part],
        "ours": ours,
        "published": paper,
        "generated_training_tasks": sorted({task for run in runs for task in run["generated"]}),
        "data_sha256": data_digest(table),
        "hardware": ", ".join(sorted({run["hardware"] for run in runs})),
        "versions": {
            "mnemic": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "seconds": round(sum(run["seconds"] for run in runs), 1),
    }


def kept(folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The finished runs, by recipe and seed; a line that a kill cut short is no run."""
    path = folder / "runs.jsonl"
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[row["recipe"], row["seed"]] = {"hardware": "unknown"} | row
    return found


def keep(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"\n{json.dumps(row)}\n" for row in rows)  # never behind a cut line


def save_result(table: BabiTable, folder: Path) -> dict[str, Any]:
    """Write ``table.json`` beside the runs."""
    whole = result(table, folder)
    write_json(folder / "table.json", whole)
    return whole


def data_digest(table: BabiTable) -> str:
    """One SHA-256 over the official files the table used."""
    whole = sha256()
    for path in sorted(folder_of(Path(table.data).expanduser(), table.size).glob("qa*.txt")):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def hardware(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}), threads: {torch.get_num_threads()}"
