"""Long-context stories: accuracy of trained runs at each length, task by task.

    python benchmarks/long_context.py runs/keeps --tokens 0 4000 32000 128000 1000000 --device cuda

Documents are streamed, a few segments at a time, so that length costs no memory. Questions are
those of the test set, the background novels are never those of training. Up to 32,000 tokens
``--questions`` a task are asked, beyond that a tenth. Each length also has the tokens read a second
and, on a GPU, the peak of its memory. Several runs, other seeds of one recipe, read the same
documents side by side. ``--way`` says what the same weights answer from:

- ``memory``: all that was read;
- ``window``: the last segment alone;
- ``retrieval``: the sentences most like the question, by the cosine of their mean states, as many
  as have room in one segment, read again in their order.

``--processes`` share the questions between them, on one GPU: making documents is work for a CPU.
With ``--once`` they only make documents, and a segment that comes again, as those of long documents
drawn from a few novels do, is encoded the first time alone: the answers are the same, and no tokens
a second are told, since most are not read.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from long_once import wrong_of_once
from torch import Tensor, nn

from mnemic.checkpoint.folder import load
from mnemic.data import DATASETS
from mnemic.data.long_context.batches import FULL, Batch, LongSet
from mnemic.data.long_context.hide import Piece
from mnemic.evaluate.error_rate import by_task
from mnemic.evaluate.long_context import right, wrong_of_each
from mnemic.recipe import build
from mnemic.respond.classes import mean_of

LONG = 32_000  # tokens from which on fewer questions are asked
AT_ONCE = 65_536  # tokens that are encoded together
ONCE = 48  # segments of each document that are looked up together
Judge = Callable[..., list[Tensor]]  # networks, documents, rows, segments at once → wrong, of each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="of bert-mass or keeps")
    parser.add_argument("--tokens", type=int, nargs="+", default=[0, 4000, 32_000])
    parser.add_argument("--tasks", type=int, nargs="+")
    parser.add_argument("--questions", type=int, default=1000, help="of each task")
    parser.add_argument("--batch", type=int, default=32, help="documents that are read together")
    parser.add_argument("--background", help="novels, if not those of the recipe")
    parser.add_argument("--folder", help="story files, if not those of the recipe")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--matmul", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--way", choices=list(JUDGES), default="memory")
    parser.add_argument("--once", action="store_true", help="look up what was encoded before")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once and given.way != "memory":
        parser.error(f"--once is for --way memory, not {given.way}")
    if given.processes > 1 and given.part is None and not given.once:
        parts = in_processes(given.processes)
    else:
        parts = [measured(given)]
    if given.part is not None:
        print(json.dumps(parts[0]))
        return
    for number, run in enumerate(given.runs):
        measures = zip(*(own["rows"] for own in parts))  # of each length, by process
        rows = [joined([own[number] for own in each]) for each in measures]
        found = {"run": str(run), "way": given.way, "weights": parts[0]["weights"], "rows": rows}
        print(json.dumps(found))


def in_processes(count: int) -> list[dict[str, Any]]:
    """Each part of the questions in a process of its own, all at once."""
    commands = [[sys.executable, *sys.argv, "--part", str(part)] for part in range(count)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    told = [own.communicate()[0] for own in started]
    if failed := [own.returncode for own in started if own.returncode]:
        raise SystemExit(f"{len(failed)} of {count} processes failed")
    return [json.loads(own.splitlines()[-1]) for own in told]


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """One part of the questions at every length."""
    checkpoints = [load(run) for run in given.runs]
    first = checkpoints[0]
    named = {"background": given.background, "folder": given.folder}
    spec = dict(first.recipe["data"]) | {key: own for key, own in named.items() if own}
    source: Any = build(DATASETS, spec)
    if strange := [
        run for run, own in zip(given.runs, checkpoints) if own.tokenizer != first.tokenizer
    ]:
        raise SystemExit(f"{strange[0]} has other tokens than {given.runs[0]}; ask it by itself")
    asked = source.asked("test", first.tokenizer, given.tasks)
    networks = [own.network.to(given.device).eval() for own in checkpoints]
    judge = JUDGES[given.way]
    if given.once:
        judge = partial(wrong_of_once, workers=given.processes)
    else:
        asked = asked.to(given.device)
    weights = sum(weight.numel() for weight in networks[0].parameters())
    return {
        "weights": weights,
        "rows": [measure(networks, asked, tokens, given, judge) for tokens in given.tokens],
    }


def measure(
    networks: Sequence[Any], asked: LongSet, tokens: int, given: argparse.Namespace, judge: Judge
) -> list[dict[str, Any]]:
    """What each run had wrong at one length, task by task, and what reading cost."""
    most = given.questions if tokens <= LONG else max(given.questions // 10, 1)
    every = [
        row
        for task in asked.task.unique().tolist()
        for row in (asked.task == task).nonzero().flatten().tolist()[:most]
    ]
    chosen = every if given.once else every[given.part or 0 :: given.processes]
    long = asked.upto(max(round(tokens / (asked.room * FULL)), 0))
    batch = max(min(given.batch, len(chosen)), 1)
    at_once = ONCE if given.once else max(AT_ONCE // (batch * asked.length), 1)
    on_gpu = given.device.startswith("cuda")
    began, found = time.perf_counter(), [torch.zeros(len(networks), 0, dtype=torch.bool)]
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with torch.autocast(given.device.split(":")[0], torch.bfloat16, enabled=given.matmul == "bf16"):
        for first in range(0, len(chosen), batch):
            found.append(torch.stack(judge(networks, long, chosen[first : first + batch], at_once)))
            if not given.part:
                done = min(first + batch, len(chosen))
                print(f"{tokens} tokens: {done} of {len(chosen)}", file=sys.stderr, flush=True)
    row: dict[str, Any] = {"tokens": tokens, "seconds": time.perf_counter() - began}
    row["read"] = sum(max(tokens, sum(map(len, asked.examples[row].story))) for row in chosen)
    row["tasks"], row["once"] = asked.task[chosen].tolist(), given.once
    row["peak"] = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None
    return [row | {"wrong": own} for own in torch.cat(found, 1).tolist()]


@torch.no_grad()
def windowed(
    networks: Sequence[nn.Module], long: LongSet, rows: list[int], at_once: int
) -> list[Tensor]:
    """As ``wrong_of_each``, from the last segment: what a memory that never lasts would hold."""
    batch = last_segments(long, rows)
    return [~right(own(batch.inputs), batch.answers).cpu() for own in networks]


def last_segments(long: LongSet, rows: list[int]) -> Batch:
    """Of each document the last segment alone."""
    documents = [long.document(row) for row in rows]
    lasts = [list(deque(own.segments, maxlen=1)) for own in documents]
    return long.assembled(documents, lasts, [0] * len(rows))


def retrieved(
    networks: Sequence[nn.Module], long: LongSet, rows: list[int], at_once: int
) -> list[Tensor]:
    """As ``wrong_of_each``, from one segment of the sentences that are most like the question."""
    return [retrieved_by(own, long, rows, at_once) for own in networks]


@torch.no_grad()
def retrieved_by(network: nn.Module, long: LongSet, rows: list[int], at_once: int) -> Tensor:
    reader: Any = network
    documents = [long.document(row) for row in rows]
    best: list[list[tuple[float, int, Piece]]] = [[] for _ in rows]
    told = 0
    while any(part := [list(islice(own.segments, at_once)) for own in documents]):
        inputs = long.assembled(documents, part, [0] * len(rows)).inputs
        encoded = reader.encoded(inputs)  # units b s p d
        kinds = {"segments": torch.ones_like(inputs.question)} if reader.tells_apart else {}
        states = reader.encode(inputs.question, inputs.asked, **kinds)
        query = nn.functional.normalize(mean_of(states, inputs.asked).float(), dim=-1)  # b d
        units = nn.functional.normalize(encoded.units.float(), dim=-1)
        like = torch.einsum("bspd,bd->bsp", units, query).cpu()
        for row, segments in enumerate(part):
            for place, pieces in enumerate(segments):
                scored = zip(like[row, place].tolist(), pieces)
                new = [(score, told + place, piece) for score, piece in scored]
                best[row] = fitting(best[row] + new, long.room)
        told += at_once
    ordered = [[piece for *_, piece in sorted(own, key=lambda one: one[1])] for own in best]
    batch = long.assembled(documents, [[own] for own in ordered], [0] * len(rows))
    return ~right(reader(batch.inputs), batch.answers).cpu()


def fitting(
    found: list[tuple[float, int, Piece]], room: int
) -> list[tuple[float, int, Piece]]:  # fmt: skip
    """The best ones, as long as there is room for their tokens; in the order they were told."""
    order = sorted(range(len(found)), key=lambda number: -found[number][0])
    kept: set[int] = set()
    for number in order:
        size = len(found[number][2].ids)
        if size > room:
            break
        room -= size
        kept.add(number)
    return [own for number, own in enumerate(found) if number in kept]


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One length of all processes: accuracies in percent, and tokens a second of them all."""
    wrongs = torch.tensor([flag for own in parts for flag in own["wrong"]])
    errors = by_task(wrongs, torch.tensor([task for own in parts for task in own["tasks"]]))
    seconds = max(own["seconds"] for own in parts)
    row: dict[str, Any] = {
        "tokens": parts[0]["tokens"],
        "questions": len(wrongs),
        "accuracy": {task: round(100 - error, 2) for task, error in errors.items()},
        "mean": round(100 - sum(errors.values()) / len(errors), 2),
        "seconds": round(seconds, 1),
    }
    if not parts[0]["once"]:
        row["tokens a second"] = round(sum(own["read"] for own in parts) / seconds)
    if parts[0]["peak"] is not None:
        row["peak GiB"] = round(sum(own["peak"] for own in parts), 2)
    return row


JUDGES: dict[str, Judge] = {
    "memory": wrong_of_each,
    "window": windowed,
    "retrieval": retrieved,
}

if __name__ == "__main__":
    main()
