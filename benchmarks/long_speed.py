"""Time a token and peak memory of reading one long text, beside sparse and full attention.

    python benchmarks/long_speed.py --tokens 1000 4000 16000
    python benchmarks/long_speed.py --tokens 1000 10000 100000 1000000 --device cuda

All have random weights, the same width, depth and vocabulary; the others are those of
``transformers``, as wide as they come: Longformer with windows of ``--length`` tokens, BigBird with
blocks of 64. A memory reads segments of ``--length`` tokens, as many at once as ``--at-once``. Each
measurement has a process of its own, in which the smallest size is read once before, of ours no
less than goes on from a memory; short texts are read again for ``--again`` seconds, and their mean
counts, since one reading of a long text is a mean, too. On a GPU all lengths of ours are read in
one process, from short to long and back: one text leaves it waiting for the processor, whose pace
differs more between processes than between lengths. The peak is what reading added to the memory of
the process; on a GPU, all that was allocated there. What would take more than ``--seconds``, by the
size before it, is left out and said to be.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import mean
from typing import Any

import torch

VOCAB, HEADS = 8000, 4
OTHERS = ("longformer", "bigbird", "full")
OURS = ("bert-mass", "keeps")
GROWTH = {"full": 2}  # by which power of the length time grows, if not by the first
Read = Callable[[int], None]  # reads a text of so many tokens


def ours(kind: str, given: argparse.Namespace) -> Read:
    """A network of ours that carries a memory; segments are made when they are read."""
    from mnemic.network import assemble
    from mnemic.network.segments import Segments

    model = {
        "width": given.width,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": given.depth}},
        "memory": {"kind": kind, "slots": 128},
        "respond": {"kind": "predictor"},
        "carry": {},
    }
    network = assemble(model, {"vocab": VOCAB, "longest": given.length}).to(given.device).eval()

    def read(tokens: int) -> None:
        state, left = None, -(-tokens // given.length)
        while left:
            count = min(left, given.at_once)
            ids = torch.randint(5, VOCAB, (1, count, given.length), device=given.device)
            here = torch.ones_like(ids, dtype=torch.bool)
            inputs = Segments(ids, here, here, ids[:, 0], here[:, 0], ids[:, 0, :0])
            encoded = network.encoded(inputs)
            state = network.empty(1, encoded.units[:, 0]) if state is None else state
            state, _, _ = network.carry(state, encoded)
            left -= count

    return read


def theirs(kind: str, longest: int, given: argparse.Namespace) -> Read:
    """An encoder of ``transformers``, with positions for the ``longest`` text."""
    from transformers import (
        BertConfig,
        BertModel,
        BigBirdConfig,
        BigBirdModel,
        LongformerConfig,
        LongformerModel,
    )

    shape: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": given.width,
        "num_hidden_layers": given.depth,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * given.width,
        "max_position_embeddings": longest + 2 * given.length + 2,
    }
    if kind == "longformer":
        network: Any = LongformerModel(LongformerConfig(attention_window=given.length, **shape))
    elif kind == "bigbird":
        network = BigBirdModel(BigBirdConfig(attention_type="block_sparse", block_size=64, **shape))
    else:
        network = BertModel(BertConfig(**shape))
    network = network.to(given.device).eval()

    def read(tokens: int) -> None:
        network(torch.randint(5, VOCAB, (1, tokens), device=given.device))

    return read


@torch.no_grad()
def measure(kind: str, lengths: list[int], given: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """Microseconds a token, and what reading added to the process's memory, in MiB."""
    on_gpu = given.device.startswith("cuda")
    read = ours(kind, given) if kind in OURS else theirs(kind, max(lengths), given)
    before = resident()
    again = 2 * given.at_once * given.length if kind in OURS else 0  # what goes on from a memory
    read(max(min(given.tokens), again))
    spent: dict[int, list[float]] = {tokens: [] for tokens in lengths}
    most = dict.fromkeys(lengths, 0.0)
    pace = 0.0
    for tokens in [*lengths, *lengths[-2::-1]]:
        if pace * tokens > given.seconds:
            continue
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        new: list[float] = []
        while sum(new) < given.again:
            began = time.perf_counter()
            read(tokens)
            if on_gpu:
                torch.cuda.synchronize()
            new.append(time.perf_counter() - began)
        spent[tokens] += new
        pace = mean(new) / tokens
        peak = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else resident() - before
        most[tokens] = max(most[tokens], peak)
    return {
        tokens: {
            "seconds": mean(own),
            "us a token": 1e6 * mean(own) / tokens,
            "peak MiB": most[tokens],
        }
        if own
        else {"left out": f"about {pace * tokens:.0f} s"}
        for tokens, own in spent.items()
    }


def resident() -> float:
    """The most memory that this process ever had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1000, 4000, 16_000])
    parser.add_argument("--kinds", nargs="+", choices=OURS + OTHERS, default=[*OURS, *OTHERS])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--length", type=int, default=128, help="of a segment, or a window")
    parser.add_argument("--at-once", type=int, default=16, help="segments encoded together")
    parser.add_argument("--seconds", type=float, default=60, help="what takes longer is left out")
    parser.add_argument("--again", type=float, default=0.5, help="seconds a length is read for")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", nargs="+", metavar="KIND", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, *lengths = given.one
        print(json.dumps(measure(kind, [int(own) for own in lengths], given)))
        return
    found = {kind: every(kind, given) for kind in given.kinds}
    first = found.get("bert-mass", {})
    for rows in found.values():
        for tokens, row in rows.items():
            if "us a token" in row and "us a token" in first.get(tokens, {}):
                row["times bert-mass"] = round(row["us a token"] / first[tokens]["us a token"], 2)
    print(json.dumps({"settings": vars(given), "rows": found}, indent=1))


def every(kind: str, given: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """One kind at each length, each in a process of its own; ours on a GPU in one for all."""
    lengths = sorted(given.tokens)
    if kind in OURS and given.device.startswith("cuda"):
        return apart(kind, lengths)
    rows: dict[int, dict[str, Any]] = {}
    due, before = 0.0, 0
    for tokens in lengths:
        due *= (tokens / before) ** GROWTH.get(kind, 1) if before else 1
        before = tokens
        if due > given.seconds:
            rows[tokens] = {"left out": f"about {due:.0f} s"}
            continue
        rows |= apart(kind, [tokens])
        if "failed" in rows[tokens]:
            rows |= {own: {"left out": "a shorter one failed"} for own in lengths if own > tokens}
            break
        due = rows[tokens]["seconds"]
    return rows


def apart(kind: str, lengths: list[int]) -> dict[int, dict[str, Any]]:
    """Some lengths in a process of their own."""
    command = [sys.executable, *sys.argv, "--one", kind, *map(str, lengths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        rows: dict[int, dict[str, Any]] = {}
        rows |= {own: {"failed": done.stderr.strip().splitlines()[-1]} for own in lengths}
    else:
        told = json.loads(done.stdout.splitlines()[-1])
        rows = {int(tokens): {n: short(v) for n, v in row.items()} for tokens, row in told.items()}
    print(kind, rows, file=sys.stderr, flush=True)
    return rows


def short(value: Any) -> Any:
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
