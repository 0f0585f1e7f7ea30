"""What a step of a table costs on a GPU: all groups side by side, against one run at a time.

    python benchmarks/lanes.py --data DIR [--recipe entnet] [--size 10k] [--seeds 10] [--kernels]

The times are of steps that are already recorded as CUDA graphs; what comes before them is printed
as the start. The ratio says how many times as long the table would take with its runs trained one
after the other. ``--kernels`` lists where the GPU's time goes.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from mnemic.reproduce.babi_table import BabiTable, rebuild
from mnemic.reproduce.streams import TURN


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--recipe", default="entnet")
    parser.add_argument("--size", choices=["1k", "10k"], default="10k")
    parser.add_argument("--joint", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tasks", type=int, nargs="+", default=list(range(1, 21)))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="sets")
    parser.add_argument("--turns", type=int, default=4, help=f"of {TURN} steps")
    parser.add_argument("--alone", action="store_true", help="also one run at a time: the ratio")
    parser.add_argument("--kernels", action="store_true")
    asked = parser.parse_args(words)
    given = {"recipe": asked.recipe, "data": asked.data, "size": asked.size, "joint": asked.joint}
    given |= {"sets": asked.sets, "device": "cuda"}
    table = BabiTable(seeds=asked.seeds, tasks=asked.tasks, **given)
    groups = len(table.groups())
    began = time.monotonic()
    together = round_of(table, asked.turns, kernels=asked.kernels)
    print(f"started after {time.monotonic() - began - together * asked.turns * TURN:.1f} s")
    print(f"side by side: {together * 1e3:.2f} ms for a step of {groups} groups of {asked.seeds}")
    if not asked.alone:
        return
    each = [[task] for task in asked.tasks] if not asked.joint else [asked.tasks]
    alone = sum(round_of(BabiTable(seeds=1, tasks=own, **given), asked.turns) for own in each)
    print(f"one run at a time: {asked.seeds * alone * 1e3:.2f} ms for the same steps")
    print(f"ratio: {asked.seeds * alone / together:.1f}")


def round_of(table: BabiTable, turns: int, *, kernels: bool = False) -> float:
    """Seconds in which every group takes one step."""
    groups = len(table.groups())
    with TemporaryDirectory() as folder:
        steps = rebuild(table, Path(folder))
        for _ in range(2 * groups * TURN):
            next(steps)
        torch.cuda.synchronize()
        began = time.monotonic()
        for _ in range(turns * groups * TURN):
            next(steps)
        torch.cuda.synchronize()
        took = (time.monotonic() - began) / turns / TURN
        if kernels:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
                for _ in range(groups * TURN):
                    next(steps)
                torch.cuda.synchronize()
            rows = sorted(seen.key_averages(), key=lambda row: -row.self_device_time_total)
            for row in rows[:15]:
                spent, count = row.self_device_time_total / 1e3 / TURN, row.count / groups / TURN
                print(f"{spent:9.3f} ms a step of all, {count:6.1f} times a group: {row.key[:90]}")
        steps.close()
    return took


if __name__ == "__main__":
    main()
