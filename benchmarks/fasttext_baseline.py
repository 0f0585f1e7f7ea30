"""Train ``fasttext-classes`` on the classification tasks of the results page, several seeds each.

    python benchmarks/fasttext_baseline.py DATA OUT --seeds 3

DATA is a folder with glue, imdb, sentences and zh/chnsenticorp. Every run is a file in OUT, and
runs that are there are not repeated; ``table.json`` has the means. A tenth of the training texts is
held out, unless there is a validation file; the test file is read once, after training.
"""

import argparse
import json
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch

from mnemic.checkpoint.atomic_files import write_json
from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.recipe import build, load_recipe
from mnemic.reproduce.rows import describe_hardware
from mnemic.train.run import fit


class Task(NamedTuple):
    """A data set with the metric of its published results."""

    title: str
    folder: str
    metric: str = "accuracy"
    settings: tuple[str, ...] = ("data.test_file=dev",)


STANFORD = ("data.label_first=true", *(f"data.{name}_file=stsa.fine.{file}" for name, file in (
    ("train", "train"), ("validation", "dev"), ("test", "test"),
)))  # fmt: skip
TASKS = {
    "imdb": Task("IMDB", "imdb", settings=()),
    "sst2": Task("SST-2 dev", "glue/SST-2"),
    "sst5": Task("SST-5", "sentences", settings=STANFORD),
    "cola": Task("CoLA dev", "glue/CoLA", "matthews", ("data.columns={ text = 4, label = 2 }", "data.test_file=dev")),
    "mrpc": Task("MRPC dev", "glue/MRPC", "f1", ("data.kind=pairs", "data.test_file=dev")),
    "rte": Task("RTE dev", "glue/RTE", settings=("data.kind=pairs", "data.test_file=dev")),
    "chnsenticorp": Task("ChnSentiCorp", "zh/chnsenticorp", settings=("data.validation_file=dev",)),
}


def run_task(name: str, data: Path, seed: int, sets: Sequence[str]) -> dict[str, Any]:
    """Train and test once; the seconds are those of all that ``mnemic train`` does."""
    task = TASKS[name]
    recipe = load_recipe("fasttext-classes", [f"data.folder={data / task.folder}", *task.settings, *sets])
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        deque(fit(recipe, Path(folder) / "run", seed=seed, device="cpu"), maxlen=0)
        seconds = time.monotonic() - started
        checkpoint = load_checkpoint(Path(folder) / "run")
        best = min((row for row in checkpoint.progress.history if "figures" in row), key=lambda row: row["validation"])
        texts = build(DATASETS, recipe["data"]).dataset("test", checkpoint.tokenizer, checkpoint.labels)
        figures = compute_metrics(checkpoint.network, texts)
    return {
        "task": name, "title": task.title, "metric": task.metric, "seed": seed, "sets": [*task.settings, *sets],
        "test": figures, "validation": best["figures"], "texts": len(texts), "seconds": round(seconds, 1),
        "hardware": describe_hardware(torch.device("cpu")), "torch": torch.__version__,
    }  # fmt: skip


def summarize_runs(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Average the runs of a task."""
    first = runs[0]
    scores = [run["test"][first["metric"]] for run in runs]
    return {key: first[key] for key in ("task", "title", "metric", "sets", "texts", "hardware", "torch")} | {
        "seeds": [run["seed"] for run in runs],
        "mean": mean(scores),
        "deviation": stdev(scores) if len(scores) > 1 else 0.0,
        "validation": mean(run["validation"][first["metric"]] for run in runs),
        "seconds": mean(run["seconds"] for run in runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the recipe")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in args.tasks:
        runs = []
        for seed in range(args.seeds):
            path = args.out / f"{name}-{seed}.json"
            if not path.is_file():
                write_json(path, run_task(name, args.data, seed, args.set))
            runs.append(json.loads(path.read_text(encoding="utf-8")))
        rows.append(summarize_runs(runs))
        print(f"{rows[-1]['title']}: {rows[-1]['mean']:.1f} ± {rows[-1]['deviation']:.1f}, {rows[-1]['seconds']:.0f} s")
    write_json(args.out / "table.json", {"table": "fasttext-classes", "rows": rows})


if __name__ == "__main__":
    main()
