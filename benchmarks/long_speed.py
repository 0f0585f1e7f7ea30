"""Time a token and peak memory of reading one long text, beside sparse and full attention.

    python benchmarks/long_speed.py --tokens 1000 4000 16000
    python benchmarks/long_speed.py --tokens 1000 10000 100000 1000000 --device cuda

All have random weights, the same width, depth and vocabulary; the others are those of
``transformers``, as wide as they come: Longformer with windows of ``--length`` tokens, BigBird with
blocks of 64. A memory reads segments of ``--length`` tokens, as many at once as ``--at-once``. Each
measurement has a process of its own, in which the smallest size is read once before, of ours no
less than goes on from a memory; short texts are read again for ``--again`` seconds, and their mean
counts, since one reading of a long text is a mean, too. The peak is what reading added to the
memory of the process; on a GPU, all that was allocated there. What would take more than
``--seconds``, by the size before it, is left out and said to be.

A machine's pace changes from minute to minute, and from process to process, by more than 10 %. So
whether ours keep theirs is measured ``in turns``, too: one process reads texts of all lengths, each
for ``--turn`` seconds, then the next, which may be in the middle of a text, until the longest is
read to its end. What disturbs the machine then disturbs all lengths alike.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

import torch

VOCAB, HEADS = 8000, 4
OTHERS = ("longformer", "bigbird", "full")
OURS = ("bert-mass", "keeps")
GROWTH = {"full": 2}  # by which power of the length time grows, if not by the first
Read = Callable[[int], Iterator[int]]  # a text of so many tokens, piece by piece: their sizes


def ours(kind: str, given: argparse.Namespace) -> Read:
    """A network of ours that carries a memory; segments are made when they are read."""
    from mnemic.models import assemble
    from mnemic.models.inputs import Segments

    model = {
        "width": given.width,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": given.depth}},
        "memory": {"kind": kind, "slots": 128},
        "respond": {"kind": "predictor"},
        "carry": {},
    }
    network = assemble(model, {"vocab": VOCAB, "longest": given.length}).to(given.device).eval()

    def read(tokens: int) -> Iterator[int]:
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
            yield count * given.length

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

    def read(tokens: int) -> Iterator[int]:
        network(torch.randint(5, VOCAB, (1, tokens), device=given.device))
        yield tokens

    return read


def prepared(kind: str, lengths: list[int], given: argparse.Namespace) -> tuple[Read, float]:
    """What reads, after a first text, and how much memory the process had before that one."""
    read = ours(kind, given) if kind in OURS else theirs(kind, max(lengths), given)
    before = resident()
    again = 2 * given.at_once * given.length if kind in OURS else 0  # what goes on from a memory
    sum(read(max(min(given.tokens), again)))
    return read, before


@torch.no_grad()
def alone(kind: str, tokens: int, given: argparse.Namespace) -> dict[str, float]:
    """Microseconds a token, and what reading added to the process's memory, in MiB."""
    read, before = prepared(kind, [tokens], given)
    spent: list[float] = []
    waited(given)
    while sum(spent) < given.again:
        began = time.perf_counter()
        sum(read(tokens))
        spent.append(waited(given) - began)
    on_gpu = given.device.startswith("cuda")
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else resident() - before
    return {"seconds": mean(spent), "us a token": 1e6 * mean(spent) / tokens, "peak MiB": peak}


@torch.no_grad()
def in_turns(kind: str, lengths: list[int], given: argparse.Namespace) -> dict[int, float]:
    """Microseconds a token of each length, all read in one process, each for a while in turn."""
    read, _ = prepared(kind, lengths, given)
    going = {tokens: read(tokens) for tokens in lengths}
    spent, done = dict.fromkeys(lengths, 0.0), dict.fromkeys(lengths, 0)
    last = max(lengths)
    while done[last] < last:
        for tokens in lengths:
            now = began = waited(given)
            while now - began < given.turn and done[last] < last:
                size = next(going[tokens], 0)
                done[tokens] += size
                if not size:
                    going[tokens] = read(tokens)
                    waited(given)  # a text is read when all of it is
                now = time.perf_counter()
            spent[tokens] += waited(given) - began
    return {tokens: 1e6 * spent[tokens] / done[tokens] for tokens in lengths}


def waited(given: argparse.Namespace) -> float:
    """The time, when all work is done."""
    if given.device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


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
    parser.add_argument("--turn", type=float, default=1.0, help="seconds of a length's turn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", nargs="+", metavar="KIND", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        kind, *told = given.one
        lengths = [int(own) for own in told]
        several = len(lengths) > 1
        found = in_turns(kind, lengths, given) if several else alone(kind, lengths[0], given)
        print(json.dumps(found))
        return
    rows = {kind: every(kind, given) for kind in given.kinds}
    first = rows.get("bert-mass", {})
    for own in rows.values():
        for tokens, row in own.items():
            if "us a token" in row and "us a token" in first.get(tokens, {}):
                row["times bert-mass"] = short(row["us a token"] / first[tokens]["us a token"])
    settings = vars(given) | {"threads": torch.get_num_threads()}
    print(json.dumps({"settings": settings, "rows": rows}, indent=1))


def every(kind: str, given: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """One kind at each length, each in a process of its own; ours then also in turns."""
    rows: dict[int, dict[str, Any]] = {}
    due, before, lengths = 0.0, 0, sorted(given.tokens)
    for tokens in lengths:
        due *= (tokens / before) ** GROWTH.get(kind, 1) if before else 1
        before = tokens
        if due > given.seconds:
            rows[tokens] = {"left out": f"about {due:.0f} s"}
            continue
        rows[tokens] = apart(kind, [tokens])
        if "failed" in rows[tokens]:
            rows |= {own: {"left out": "a shorter one failed"} for own in lengths if own > tokens}
            break
        due = rows[tokens]["seconds"]
    read = [tokens for tokens, row in rows.items() if "seconds" in row]
    if kind in OURS and len(read) > 1:
        for tokens, own in apart(kind, read).items():
            rows[int(tokens)]["us a token in turns"] = own
    return rows


def apart(kind: str, lengths: list[int]) -> dict[str, Any]:
    """One length, or several in turns, in a process of their own."""
    command = [sys.executable, *sys.argv, "--one", kind, *map(str, lengths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        found: dict[str, Any] = {"failed": done.stderr.strip().splitlines()[-1]}
    else:
        told = json.loads(done.stdout.splitlines()[-1])
        found = {name: short(value) for name, value in told.items()}
    print(kind, lengths, found, file=sys.stderr, flush=True)
    return found


def short(value: Any) -> Any:
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
