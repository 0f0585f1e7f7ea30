"""Long-context stories: accuracy of a trained run at each length, task by task.

    python benchmarks/long_context.py runs/keeps --tokens 0 4000 32000 128000 1000000 --device cuda

Documents are streamed, a few segments at a time, so that length costs no memory. Questions are
those of the test set, the background novels are never those of training. ``--empty`` empties the
memory before every segment: the same weights without what they remember. Up to 32,000 tokens
``--questions`` a task are asked, beyond that a tenth. Each length also has the tokens read a second
and, on a GPU, the peak of its memory.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

from mnemic.data import DATASETS
from mnemic.data.long.tensors import FULL, LongSet
from mnemic.learn.checkpoint import load
from mnemic.learn.evaluate import by_task
from mnemic.learn.recall import wrong
from mnemic.recipe import build

LONG = 32_000  # tokens from which on fewer questions are asked
AT_ONCE = 65_536  # tokens that are encoded together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run of bert-mass or keeps")
    parser.add_argument("--tokens", type=int, nargs="+", default=[0, 4000, 32_000])
    parser.add_argument("--tasks", type=int, nargs="+")
    parser.add_argument("--questions", type=int, default=1000, help="of each task")
    parser.add_argument("--batch", type=int, default=32, help="documents that are read together")
    parser.add_argument("--background", help="novels, if not those of the recipe")
    parser.add_argument("--folder", help="story files, if not those of the recipe")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--empty", action="store_true", help="without a lasting memory")
    given = parser.parse_args()
    checkpoint = load(given.run)
    spec = dict(checkpoint.recipe["data"])
    spec |= {"background": given.background} if given.background else {}
    spec |= {"folder": given.folder} if given.folder else {}
    source: Any = build(DATASETS, spec)
    asked = source.asked("test", checkpoint.tokenizer, given.tasks).to(given.device)
    network = checkpoint.network.to(given.device)
    network.lasts = not given.empty
    weights = sum(weight.numel() for weight in network.parameters())
    print(f"{weights:,} weights, {len(asked):,} questions", file=sys.stderr)
    rows = [measure(network, asked, tokens, given) for tokens in given.tokens]
    print(json.dumps({"run": str(given.run), "weights": weights, "rows": rows}, indent=1))


def measure(network: Any, asked: LongSet, tokens: int, given: argparse.Namespace) -> dict[str, Any]:
    """Accuracy of each task at one length, and what reading cost."""
    most = given.questions if tokens <= LONG else max(given.questions // 10, 1)
    chosen = [
        row
        for task in asked.task.unique().tolist()
        for row in (asked.task == task).nonzero().flatten().tolist()[:most]
    ]
    segments = max(round(tokens / (asked.room * FULL)), 0)
    long = asked.upto(segments)
    batch = min(given.batch, len(chosen))
    at_once = max(AT_ONCE // (batch * asked.length), 1)
    began, found = time.perf_counter(), []
    if given.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    for first in range(0, len(chosen), batch):
        found.append(wrong(network, long, chosen[first : first + batch], at_once))
        done = first + len(found[-1])
        print(f"{tokens} tokens: {done} of {len(chosen)}", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - began
    errors = by_task(torch.cat(found), asked.task[chosen])
    read = sum(max(tokens, sum(map(len, asked.examples[row].story))) for row in chosen)
    row: dict[str, Any] = {
        "tokens": tokens,
        "questions": len(chosen),
        "accuracy": {task: round(100 - error, 2) for task, error in errors.items()},
        "mean": round(100 - sum(errors.values()) / len(errors), 2),
        "tokens a second": round(read / seconds),
    }
    if given.device.startswith("cuda"):
        row["peak GiB"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    return row


if __name__ == "__main__":
    main()
