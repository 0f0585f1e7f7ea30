"""Time a training step of N seeds as one program, relative to one seed.

python benchmarks/ensemble_speed.py --data DIR --device cuda --runs 1 10
"""

import argparse
import json
import time
from collections.abc import Sequence

import torch

from mnemic.data.contract import Data
from mnemic.recipe import Recipe, load_recipe
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble
from mnemic.train.run import load_data

NUM_WARMUP_STEPS = 50  # per phase, not timed: a graph is recorded, caches fill


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the official files; without it, generated ones")
    parser.add_argument("--recipe", default="memn2n-joint")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--steps", type=int, default=300, help="timed steps of each phase")
    args = parser.parse_args(argv)
    kind = f"data.folder={args.data}" if args.data else "data.kind=generated"
    recipe = load_recipe(args.recipe, [kind, f"train.steps={args.steps + NUM_WARMUP_STEPS}"])
    data = load_data(recipe)
    device = torch.device(args.device)
    seconds = {runs: time_step(recipe, data, runs, device) for runs in args.runs}
    first_s = seconds[args.runs[0]]
    rows = [
        {"runs": runs, "milliseconds a step": round(1000 * step_s, 3), "ratio": round(step_s / first_s, 2)}
        for runs, step_s in seconds.items()
    ]
    print(json.dumps({"recipe": args.recipe, "device": str(device), "rows": rows}, indent=1))


def time_step(recipe: Recipe, data: Data, num_runs: int, device: torch.device) -> float:
    """Return the mean seconds of a step, over all phases."""
    seeds = list(range(num_runs))
    networks = create_networks(recipe, data, seeds)
    pools = [torch.arange(len(data.train))] * num_runs
    total_s, num_steps, started = 0.0, 0, 0.0
    for report in train_ensemble(recipe, data, networks, seeds=seeds, rows_per_run=pools, device=device):
        number = report.step.number
        if number in (NUM_WARMUP_STEPS, report.total_steps):
            if device.type == "cuda":
                torch.cuda.synchronize()
            now = time.perf_counter()
            if number == report.total_steps:
                total_s, num_steps = total_s + now - started, num_steps + number - NUM_WARMUP_STEPS
            started = now
    return total_s / num_steps


if __name__ == "__main__":
    main()
