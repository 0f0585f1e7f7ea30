"""Measure time per token and peak memory of reading one long text.

    python benchmarks/long_speed.py --tokens 1000 4000 16000
    python benchmarks/long_speed.py --tokens 1000 10000 100000 1000000 --device cuda

Our memories are compared with sparse and full attention. All have random weights and the same
width, depth and vocabulary; the others are those of ``transformers``: Longformer with windows of
``--length`` tokens, BigBird with blocks of 64, and full attention. A memory reads segments of
``--length`` tokens, ``--at-once`` at a time. Each measurement runs in its own process, after a
warm-up text of the smallest size (for a memory, at least one that continues from a memory); short
texts are read again for ``--again`` seconds and averaged, since one reading of a long text is an
average, too. The peak is the memory that reading added to the process; on a GPU, all memory
allocated there. Lengths that would take more than ``--seconds``, extrapolated from the length
before, are skipped, and the report says so.

The speed of a machine varies by more than 10 % between minutes and between processes. So whether
our time per token stays constant is also measured ``in turns``: one process reads texts of all
lengths, each for ``--turn`` seconds, possibly stopping in the middle of a text, until the longest
one is finished. Disturbances of the machine then affect all lengths equally.
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
TRANSFORMERS_KINDS = ("longformer", "bigbird", "full")
MNEMIC_KINDS = ("blended", "selective")  # memories
GROWTH = {"full": 2}  # the power of the length by which time grows, if not 1
ReadText = Callable[[int], Iterator[int]]  # reads so many tokens; yields the tokens per step


def make_memory_reader(kind: str, args: argparse.Namespace) -> ReadText:
    """Make a function that reads random text with one of our segment models."""
    from mnemic.models import build_model
    from mnemic.models.inputs import SegmentBatch

    model = {
        "width": args.width,
        "encode": {"kind": "transformer", "stack": {"kind": "encoder", "depth": args.depth}},
        "memory": {"kind": kind, "slots": 128},
        "respond": {"kind": "predictor"},
        "segments": {},
    }
    network = build_model(model, {"vocab": VOCAB, "max_length": args.length}).to(args.device).eval()

    def read(tokens: int) -> Iterator[int]:
        """Read a random text of so many tokens."""
        state, num_remaining = None, -(-tokens // args.length)
        while num_remaining:
            count = min(num_remaining, args.at_once)
            ids = torch.randint(5, VOCAB, (1, count, args.length), device=args.device)
            mask = torch.ones_like(ids, dtype=torch.bool)
            inputs = SegmentBatch(ids, mask, mask, ids[:, 0], mask[:, 0], ids[:, 0, :0])
            encoded = network.encode_segments(inputs)
            state = network.empty_memory(1, encoded.items[:, 0]) if state is None else state
            state, _, _ = network.write_segments(state, encoded)
            num_remaining -= count
            yield count * args.length

    return read


def make_transformers_reader(kind: str, max_tokens: int, args: argparse.Namespace) -> ReadText:
    """Make a function that reads random text with an encoder of ``transformers``."""
    from transformers import BertConfig, BertModel, BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

    shape: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": args.width,
        "num_hidden_layers": args.depth,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * args.width,
        "max_position_embeddings": max_tokens + 2 * args.length + 2,
    }
    if kind == "longformer":
        network: Any = LongformerModel(LongformerConfig(attention_window=args.length, **shape))
    elif kind == "bigbird":
        network = BigBirdModel(BigBirdConfig(attention_type="block_sparse", block_size=64, **shape))
    else:
        network = BertModel(BertConfig(**shape))
    network = network.to(args.device).eval()

    def read(tokens: int) -> Iterator[int]:
        """Read a random text of so many tokens."""
        network(torch.randint(5, VOCAB, (1, tokens), device=args.device))
        yield tokens

    return read


def prepare_reader(kind: str, lengths: list[int], args: argparse.Namespace) -> tuple[ReadText, float]:
    """Make a reader and warm it up; return also the memory before the warm-up."""
    read = (
        make_memory_reader(kind, args) if kind in MNEMIC_KINDS else make_transformers_reader(kind, max(lengths), args)
    )
    memory_before = measure_peak_memory()
    warmup_tokens = 2 * args.at_once * args.length if kind in MNEMIC_KINDS else 0  # continues from a memory
    sum(read(max(min(args.tokens), warmup_tokens)))
    return read, memory_before


@torch.no_grad()
def time_alone(kind: str, tokens: int, args: argparse.Namespace) -> dict[str, float]:
    """Measure time per token and peak memory of reading one length."""
    read, memory_before = prepare_reader(kind, [tokens], args)
    seconds: list[float] = []
    synchronize(args)
    while sum(seconds) < args.again:
        started = time.perf_counter()
        sum(read(tokens))
        seconds.append(synchronize(args) - started)
    on_gpu = args.device.startswith("cuda")
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else measure_peak_memory() - memory_before
    return {"seconds": mean(seconds), "us a token": 1e6 * mean(seconds) / tokens, "peak MiB": peak}


@torch.no_grad()
def time_in_turns(kind: str, lengths: list[int], args: argparse.Namespace) -> dict[int, float]:
    """Measure microseconds per token of several lengths, read in turns in one process."""
    read, _ = prepare_reader(kind, lengths, args)
    texts = {tokens: read(tokens) for tokens in lengths}
    seconds, num_read = dict.fromkeys(lengths, 0.0), dict.fromkeys(lengths, 0)
    longest = max(lengths)
    while num_read[longest] < longest:
        for tokens in lengths:
            now = started = synchronize(args)
            while now - started < args.turn and num_read[longest] < longest:
                size = next(texts[tokens], 0)
                num_read[tokens] += size
                if not size:
                    texts[tokens] = read(tokens)
                    synchronize(args)  # a text is read when all of it is
                now = time.perf_counter()
            seconds[tokens] += synchronize(args) - started
    return {tokens: 1e6 * seconds[tokens] / num_read[tokens] for tokens in lengths}


def synchronize(args: argparse.Namespace) -> float:
    """Wait for the device, and return the time."""
    if args.device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter()


def measure_peak_memory() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1000, 4000, 16_000])
    parser.add_argument(
        "--kinds", nargs="+", choices=MNEMIC_KINDS + TRANSFORMERS_KINDS, default=[*MNEMIC_KINDS, *TRANSFORMERS_KINDS]
    )
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--length", type=int, default=128, help="of a segment, or a window")
    parser.add_argument("--at-once", type=int, default=16, help="segments encoded together")
    parser.add_argument("--seconds", type=float, default=60, help="what takes longer is left out")
    parser.add_argument("--again", type=float, default=0.5, help="seconds a length is read for")
    parser.add_argument("--turn", type=float, default=1.0, help="seconds of a length's turn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", nargs="+", metavar="KIND", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        kind, *arguments = args.one
        lengths = [int(argument) for argument in arguments]
        is_several = len(lengths) > 1
        times = time_in_turns(kind, lengths, args) if is_several else time_alone(kind, lengths[0], args)
        print(json.dumps(times))
        return
    rows = {kind: measure_kind(kind, args) for kind in args.kinds}
    blended_rows = rows.get("blended", {})
    for kind_rows in rows.values():
        for tokens, row in kind_rows.items():
            if "us a token" in row and "us a token" in blended_rows.get(tokens, {}):
                row["times blended"] = round_value(row["us a token"] / blended_rows[tokens]["us a token"])
    settings = vars(args) | {"threads": torch.get_num_threads()}
    print(json.dumps({"settings": settings, "rows": rows}, indent=1))


def measure_kind(kind: str, args: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """Measure one kind of network at each length, each in its own process."""
    rows: dict[int, dict[str, Any]] = {}
    expected_s, previous_tokens, lengths = 0.0, 0, sorted(args.tokens)
    for tokens in lengths:
        expected_s *= (tokens / previous_tokens) ** GROWTH.get(kind, 1) if previous_tokens else 1
        previous_tokens = tokens
        if expected_s > args.seconds:
            rows[tokens] = {"left out": f"about {expected_s:.0f} s"}
            continue
        rows[tokens] = run_process(kind, [tokens])
        if "failed" in rows[tokens]:
            rows |= {longer: {"left out": "a shorter one failed"} for longer in lengths if longer > tokens}
            break
        expected_s = rows[tokens]["seconds"]
    read_lengths = [tokens for tokens, row in rows.items() if "seconds" in row]
    if kind in MNEMIC_KINDS and len(read_lengths) > 1:
        for tokens, us_per_token in run_process(kind, read_lengths).items():
            rows[int(tokens)]["us a token in turns"] = us_per_token
    return rows


def run_process(kind: str, lengths: list[int]) -> dict[str, Any]:
    """Measure one length, or several in turns, in a separate process."""
    command = [sys.executable, *sys.argv, "--one", kind, *map(str, lengths)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        result: dict[str, Any] = {"failed": process.stderr.strip().splitlines()[-1]}
    else:
        values = json.loads(process.stdout.splitlines()[-1])
        result = {name: round_value(value) for name, value in values.items()}
    print(kind, lengths, result, file=sys.stderr, flush=True)
    return result


def round_value(value: Any) -> Any:
    """Round a float to three significant digits."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
