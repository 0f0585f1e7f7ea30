"""Measure what a memory of earlier segments is worth to a language model.

    mnemic data words --data enwiki --out words --set data.vocab=8000 --set data.documents=550
    python benchmarks/language_model_memory.py words --out runs/memory

Trains the recipe ``transformer-xl-words`` with each ``--memory`` length, on the same segments in
the same order with the same seed, and tests every network with each ``--test`` length. A network
without a memory is also tested as other language models are: on windows of as many words that
overlap, so that each word is predicted from at least three quarters of a window. The learning rate
is the one of ``--rates`` with the lowest perplexity on the first ``--validation-words`` validation
words, after ``--trial-steps`` steps without a memory. Finished runs are not trained again. The
report is JSON: perplexities of all words, and of known words.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.language_modeling.batches import TokenDataset
from mnemic.predict.perplexity import compute_perplexity
from mnemic.recipe import build, load_recipe
from mnemic.train.run import fit

RECIPE = "transformer-xl-words"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a folder that `mnemic data words` wrote")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the runs")
    parser.add_argument("--memory", type=int, nargs="+", default=[0, 128], help="lengths in training")
    parser.add_argument("--test", type=int, nargs="+", default=[0, 64, 128, 256, 512], help="lengths in the test")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8, help="segments of a step")
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.001, 0.002, 0.004])
    parser.add_argument("--trial-steps", type=int, default=250)
    parser.add_argument("--validation-words", type=int, default=30_000)
    parser.add_argument("--test-words", type=int, default=100_000, help="the first so many; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", action="append", default=[], dest="sets", help="another KEY=VALUE of the recipe")
    args = parser.parse_args()
    started = time.process_time()
    trials = {}
    for rate in args.rates if len(args.rates) > 1 else ():
        run = train_run(args, memory=0, rate=rate, steps=args.trial_steps, name=f"trial-{rate:g}")
        trials[rate] = evaluate_run(run, args, 0, split="validation", max_words=args.validation_words)["perplexity"]
        print(f"rate {rate:g}: validation {trials[rate]:.1f}", file=sys.stderr, flush=True)
    rate = min(trials, key=trials.__getitem__) if trials else args.rates[0]
    rows = []
    for memory in args.memory:
        run = train_run(args, memory=memory, rate=rate, steps=args.steps, name=f"memory-{memory}")
        row = {"memory in training": memory, "seconds": load_seconds(run)}
        row["test"] = {length: evaluate_run(run, args, length) for length in args.test}
        if not memory:
            windows = {"data.stream": False, "data.context": 96}
            row["overlapping windows"] = evaluate_run(run, args, 0, changes=windows)
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    report = {"rate": rate, "validation of rates": trials, "rows": rows, "seed": args.seed}
    print(json.dumps(report | {"processor seconds": round(time.process_time() - started)}, indent=1))


def train_run(args: argparse.Namespace, *, memory: int, rate: float, steps: int, name: str) -> Path:
    """Train one network, unless its run is finished; return its folder."""
    options = {
        "data.folder": args.data, "model.width": args.width, "model.encode.stack.depth": args.depth,
        "model.encode.stack.attention.heads": args.heads, "model.encode.memory_length": memory,
        "train.batch": args.batch, "train.epochs": 1000, "train.steps": steps, "train.rate": rate,
        "train.log": 100, "train.validate": 0,
    }  # fmt: skip
    recipe = load_recipe(RECIPE, [*(f"{key}={value}" for key, value in options.items()), *args.sets])
    for report in fit(recipe, args.out / name, seed=args.seed, device=args.device):
        if report.row is not None:
            print(f"{name} {report.step} {report.row['loss']:.3f}", file=sys.stderr, flush=True)
    return args.out / name


def load_seconds(run: Path) -> float:
    """Return how long a run has trained."""
    return round(sum(row["seconds"] for row in load_checkpoint(run).progress.history))


def evaluate_run(
    run: Path, args: argparse.Namespace, memory: int, *, split: str = "test", max_words: int | None = None,
    changes: dict[str, Any] | None = None,
) -> dict[str, float]:  # fmt: skip
    """Compute a run's perplexity with a memory of this length."""
    checkpoint = load_checkpoint(run)
    network = checkpoint.network.to(args.device)
    network.encode.memory_length = memory
    data_spec = dict(checkpoint.recipe["data"]) | {
        key.removeprefix("data."): value for key, value in (changes or {}).items()
    }
    source: Any = build(DATASETS, data_spec)
    dataset = source.dataset(split, checkpoint.tokenizer).to(args.device)
    metrics = compute_perplexity(network, cut_dataset(dataset, args.test_words if max_words is None else max_words))
    return {key: round(value, 2) for key, value in metrics.items()}


def cut_dataset(dataset: TokenDataset, max_words: int) -> TokenDataset:
    """Keep the spans that predict the first ``max_words`` words; 0: all."""
    num_words = (dataset.lengths - dataset.context_lengths).cumsum(0)
    count = int((num_words <= max_words).sum()) if max_words else len(dataset)
    return replace(
        dataset,
        starts=dataset.starts[:count],
        lengths=dataset.lengths[:count],
        context_lengths=dataset.context_lengths[:count],
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
