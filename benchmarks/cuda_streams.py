"""Time a step of a bAbI table on a GPU, with parallel CUDA streams.

    python benchmarks/cuda_streams.py --data DIR [--recipe entnet] [--size 10k] [--seeds 10]
        [--kernels]

The times are of steps that are already recorded as CUDA graphs; the time before is printed as the
start. The ratio says how many times as long the table would take with its runs trained one after
the other. ``--kernels`` lists the kernels that take the most GPU time.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from mnemic.reproduce.babi_table import BabiTable, train_missing_runs
from mnemic.reproduce.streams import STEPS_PER_TURN


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--recipe", default="entnet")
    parser.add_argument("--size", choices=["1k", "10k"], default="10k")
    parser.add_argument("--joint", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tasks", type=int, nargs="+", default=list(range(1, 21)))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--turns", type=int, default=4, help=f"of {STEPS_PER_TURN} steps")
    parser.add_argument("--alone", action="store_true", help="also one run at a time: the ratio")
    parser.add_argument("--kernels", action="store_true")
    args = parser.parse_args(argv)
    table_options = {"recipe": args.recipe, "data": args.data, "size": args.size, "joint": args.joint}
    table_options |= {"sets": args.sets, "device": "cuda"}
    table = BabiTable(seeds=args.seeds, tasks=args.tasks, **table_options)
    num_groups = len(table.task_groups())
    started = time.monotonic()
    together_s = time_step(table, args.turns, kernels=args.kernels)
    print(f"started after {time.monotonic() - started - together_s * args.turns * STEPS_PER_TURN:.1f} s")
    print(f"side by side: {together_s * 1e3:.2f} ms for a step of {num_groups} groups of {args.seeds}")
    if not args.alone:
        return
    task_groups = [[task] for task in args.tasks] if not args.joint else [args.tasks]
    alone_s = sum(time_step(BabiTable(seeds=1, tasks=group, **table_options), args.turns) for group in task_groups)
    print(f"one run at a time: {args.seeds * alone_s * 1e3:.2f} ms for the same steps")
    print(f"ratio: {args.seeds * alone_s / together_s:.1f}")


def time_step(table: BabiTable, num_turns: int, *, kernels: bool = False) -> float:
    """Return the seconds for one step of every group."""
    num_groups = len(table.task_groups())
    with TemporaryDirectory() as folder:
        steps = train_missing_runs(table, Path(folder))
        for _ in range(2 * num_groups * STEPS_PER_TURN):
            next(steps)
        torch.cuda.synchronize()
        started = time.monotonic()
        for _ in range(num_turns * num_groups * STEPS_PER_TURN):
            next(steps)
        torch.cuda.synchronize()
        step_s = (time.monotonic() - started) / num_turns / STEPS_PER_TURN
        if kernels:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                for _ in range(num_groups * STEPS_PER_TURN):
                    next(steps)
                torch.cuda.synchronize()
            rows = sorted(profile.key_averages(), key=lambda row: -row.self_device_time_total)
            for row in rows[:15]:
                step_ms, count = (
                    row.self_device_time_total / 1e3 / STEPS_PER_TURN,
                    row.count / num_groups / STEPS_PER_TURN,
                )
                print(f"{step_ms:9.3f} ms a step of all, {count:6.1f} times a group: {row.key[:90]}")
        steps.close()
    return step_s


if __name__ == "__main__":
    main()
