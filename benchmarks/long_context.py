"""Measure the accuracy of trained runs on long-context stories, per length and task.

    python benchmarks/long_context.py runs/selective --tokens 0 4000 32000 128000 --device cuda

Documents are streamed, a few segments at a time, so that length costs no memory. Questions are
those of the test split; the background novels are never those of training. Up to 32,000 tokens
there are ``--questions`` questions per task, beyond that a tenth. The report also has the tokens
per second and, on a GPU, the peak memory. Several runs, such as seeds of one recipe, read the same
documents in parallel. ``--way`` says what the same weights answer from:

- ``memory``: the memory of all segments;
- ``window``: only the last segment;
- ``retrieval``: the sentences most similar to the question, by the cosine of their mean states, as
  many as fit into one segment, read again in their order.

``--processes`` split the questions among themselves, on one GPU: making documents is work for a
CPU. With ``--once`` they only make documents, and a segment that occurs again, as in long documents
from a few novels, is encoded only once: the answers are the same, and there are no tokens per
second, since most are not read.
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
from segment_cache import find_wrong_with_cache
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.data.long_context.batches import FILL_RATE, LongBatch, LongDataset
from mnemic.data.long_context.hide import SentenceTokens
from mnemic.evaluate.by_task import percent_by_task
from mnemic.evaluate.long_context import find_correct_answers, find_wrong_answers_per_network
from mnemic.recipe import build
from mnemic.respond.classes import masked_mean

MAX_SHORT_TOKENS = 32_000  # of documents with all questions; longer ones get a tenth
MAX_TOKENS = 65_536  # encoded together
CACHED_SEGMENTS = 48  # per document, looked up together
FindWrong = Callable[..., list[Tensor]]  # networks, dataset, rows, segments per batch → wrong, per network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="of bert-mass or bert-mass-selective")
    parser.add_argument("--tokens", type=int, nargs="+", default=[0, 4000, 32_000])
    parser.add_argument("--tasks", type=int, nargs="+")
    parser.add_argument("--questions", type=int, default=1000, help="of each task")
    parser.add_argument("--batch", type=int, default=32, help="documents that are read together")
    parser.add_argument("--background", help="novels, if not those of the recipe")
    parser.add_argument("--folder", help="story files, if not those of the recipe")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--matmul", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--way", choices=list(FIND_WRONG), default="memory")
    parser.add_argument("--once", action="store_true", help="look up what was encoded before")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once and args.way != "memory":
        parser.error(f"--once is for --way memory, not {args.way}")
    if args.processes > 1 and args.part is None and not args.once:
        parts = run_processes(args.processes)
    else:
        parts = [measure_lengths(args)]
    if args.part is not None:
        print(json.dumps(parts[0]))
        return
    for number, run in enumerate(args.runs):
        rows_by_length = zip(*(result["rows"] for result in parts))  # per length, by process
        rows = [join_parts([runs[number] for runs in length_rows]) for length_rows in rows_by_length]
        report = {"run": str(run), "way": args.way, "weights": parts[0]["weights"], "rows": rows}
        print(json.dumps(report))


def run_processes(count: int) -> list[dict[str, Any]]:
    """Measure each part of the questions in its own process, in parallel."""
    commands = [[sys.executable, *sys.argv, "--part", str(part_number)] for part_number in range(count)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate()[0] for process in processes]
    if failed_codes := [process.returncode for process in processes if process.returncode]:
        raise SystemExit(f"{len(failed_codes)} of {count} processes failed")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def measure_lengths(args: argparse.Namespace) -> dict[str, Any]:
    """Measure one part of the questions at every length."""
    checkpoints = [load_checkpoint(run) for run in args.runs]
    first = checkpoints[0]
    overrides = {"background": args.background, "folder": args.folder}
    spec = dict(first.recipe["data"]) | {key: value for key, value in overrides.items() if value}
    source: Any = build(DATASETS, spec)
    if mismatched_runs := [
        run for run, checkpoint in zip(args.runs, checkpoints) if checkpoint.tokenizer != first.tokenizer
    ]:
        raise SystemExit(f"{mismatched_runs[0]} has other tokens than {args.runs[0]}; ask it by itself")
    dataset = source.dataset("test", first.tokenizer, args.tasks)
    networks = [checkpoint.network.to(args.device).eval() for checkpoint in checkpoints]
    find_wrong = FIND_WRONG[args.way]
    if args.once:
        find_wrong = partial(find_wrong_with_cache, num_workers=args.processes)
    else:
        dataset = dataset.to(args.device)
    weights = sum(weight.numel() for weight in networks[0].parameters())
    return {
        "weights": weights,
        "rows": [measure_length(networks, dataset, tokens, args, find_wrong) for tokens in args.tokens],
    }


def measure_length(
    networks: Sequence[Any], dataset: LongDataset, tokens: int, args: argparse.Namespace, find_wrong: FindWrong
) -> list[dict[str, Any]]:
    """Measure the wrong answers of each run at one length, and the cost of reading."""
    max_questions = args.questions if tokens <= MAX_SHORT_TOKENS else max(args.questions // 10, 1)
    all_rows = [
        row
        for task in dataset.task.unique().tolist()
        for row in (dataset.task == task).nonzero().flatten().tolist()[:max_questions]
    ]
    rows = all_rows if args.once else all_rows[args.part or 0 :: args.processes]
    long_dataset = dataset.with_segments(max(round(tokens / (dataset.max_text_tokens * FILL_RATE)), 0))
    batch_size = max(min(args.batch, len(rows)), 1)
    segments_per_batch = CACHED_SEGMENTS if args.once else max(MAX_TOKENS // (batch_size * dataset.length), 1)
    on_gpu = args.device.startswith("cuda")
    started, wrong_by_batch = time.perf_counter(), [torch.zeros(len(networks), 0, dtype=torch.bool)]
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with torch.autocast(args.device.split(":")[0], torch.bfloat16, enabled=args.matmul == "bf16"):
        for first in range(0, len(rows), batch_size):
            wrong_by_batch.append(
                torch.stack(find_wrong(networks, long_dataset, rows[first : first + batch_size], segments_per_batch))
            )
            if not args.part:
                num_done = min(first + batch_size, len(rows))
                print(f"{tokens} tokens: {num_done} of {len(rows)}", file=sys.stderr, flush=True)
    row: dict[str, Any] = {"tokens": tokens, "seconds": time.perf_counter() - started}
    row["read"] = sum(max(tokens, sum(map(len, dataset.examples[row].story))) for row in rows)
    row["tasks"], row["once"] = dataset.task[rows].tolist(), args.once
    row["peak"] = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None
    return [row | {"wrong": is_wrong} for is_wrong in torch.cat(wrong_by_batch, 1).tolist()]


@torch.no_grad()
def find_wrong_in_window(
    networks: Sequence[nn.Module], dataset: LongDataset, rows: list[int], segments_per_batch: int
) -> list[Tensor]:
    """Find the wrong answers of networks that see only the last segment."""
    batch = make_last_segment_batch(dataset, rows)
    return [~find_correct_answers(network(batch.inputs), batch.answers).cpu() for network in networks]


def make_last_segment_batch(dataset: LongDataset, rows: list[int]) -> LongBatch:
    """Make a batch of the last segment of each document."""
    documents = [dataset.draw_document(row) for row in rows]
    last_segments = [list(deque(document.segments, maxlen=1)) for document in documents]
    return dataset.assemble_batch(documents, last_segments)


def find_wrong_by_retrieval(
    networks: Sequence[nn.Module], dataset: LongDataset, rows: list[int], segments_per_batch: int
) -> list[Tensor]:
    """Find the wrong answers of networks that see only the retrieved sentences."""
    return [answer_by_retrieval(network, dataset, rows, segments_per_batch) for network in networks]


@torch.no_grad()
def answer_by_retrieval(network: nn.Module, dataset: LongDataset, rows: list[int], segments_per_batch: int) -> Tensor:
    """Answer from one segment of the sentences most similar to each question."""
    model: Any = network
    documents = [dataset.draw_document(row) for row in rows]
    best: list[list[tuple[float, int, SentenceTokens]]] = [[] for _ in rows]
    num_read = 0
    while any(segments_by_document := [list(islice(document.segments, segments_per_batch)) for document in documents]):
        inputs = dataset.assemble_batch(documents, segments_by_document).inputs
        encoded = model.encode_segments(inputs)  # items b s p d
        kwargs = {"segments": torch.ones_like(inputs.question)} if model.has_segment_embeddings else {}
        states = model.encode(inputs.question, inputs.question_mask, **kwargs)
        query = nn.functional.normalize(masked_mean(states, inputs.question_mask).float(), dim=-1)  # b d
        units = nn.functional.normalize(encoded.items.float(), dim=-1)
        similarities = torch.einsum("bspd,bd->bsp", units, query).cpu()
        for row, segments in enumerate(segments_by_document):
            for segment_number, sentences in enumerate(segments):
                scored_sentences = zip(similarities[row, segment_number].tolist(), sentences)
                candidates = [(score, num_read + segment_number, sentence) for score, sentence in scored_sentences]
                best[row] = keep_best_sentences(best[row] + candidates, dataset.max_text_tokens)
        num_read += segments_per_batch
    ordered = [[sentence for *_, sentence in sorted(row_best, key=lambda candidate: candidate[1])] for row_best in best]
    batch = dataset.assemble_batch(documents, [[segment] for segment in ordered])
    return ~find_correct_answers(model(batch.inputs), batch.answers).cpu()


def keep_best_sentences(
    candidates: list[tuple[float, int, SentenceTokens]], max_tokens: int
) -> list[tuple[float, int, SentenceTokens]]:  # fmt: skip
    """Keep the best sentences that fit into ``max_tokens``, in their original order."""
    order = sorted(range(len(candidates)), key=lambda number: -candidates[number][0])
    kept_numbers: set[int] = set()
    for number in order:
        size = len(candidates[number][2].ids)
        if size > max_tokens:
            break
        max_tokens -= size
        kept_numbers.add(number)
    return [candidate for number, candidate in enumerate(candidates) if number in kept_numbers]


def join_parts(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of all processes at one length: accuracies in percent, and speed."""
    is_wrong = torch.tensor([flag for result in parts for flag in result["wrong"]])
    tasks = torch.tensor([task for result in parts for task in result["tasks"]])
    errors = percent_by_task(is_wrong, tasks)
    seconds = max(result["seconds"] for result in parts)
    row: dict[str, Any] = {
        "tokens": parts[0]["tokens"],
        "questions": len(is_wrong),
        "accuracy": {task: round(100 - error, 2) for task, error in errors.items()},
        "mean": round(100 - sum(errors.values()) / len(errors), 2),
        "seconds": round(seconds, 1),
    }
    if not parts[0]["once"]:
        row["tokens a second"] = round(sum(result["read"] for result in parts) / seconds)
    if parts[0]["peak"] is not None:
        row["peak GiB"] = round(sum(result["peak"] for result in parts), 2)
    return row


FIND_WRONG: dict[str, FindWrong] = {
    "memory": find_wrong_answers_per_network,
    "window": find_wrong_in_window,
    "retrieval": find_wrong_by_retrieval,
}

if __name__ == "__main__":
    main()
