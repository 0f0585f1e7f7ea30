"""What many runs as one program cost: the time of N seeds at once, as a ratio to one seed.

python benchmarks/many_at_once.py --data DIR --device cuda --runs 1 10
"""

import argparse
import json
import time
from collections.abc import Sequence

import torch

from mnemic.data.contract import Data
from mnemic.recipe import Recipe, load
from mnemic.reproduce.train_ensemble import fit_many, new_networks
from mnemic.train.run import data_of

WARM = 50  # steps of each phase that are not timed: a graph is recorded, caches fill


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the official files; without it, generated ones")
    parser.add_argument("--recipe", default="memn2n-joint")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--steps", type=int, default=300, help="timed steps of each phase")
    given = parser.parse_args(words)
    kind = f"data.folder={given.data}" if given.data else "data.kind=generated"
    recipe = load(given.recipe, [kind, f"train.steps={given.steps + WARM}"])
    data = data_of(recipe)
    device = torch.device(given.device)
    seconds = {runs: step_seconds(recipe, data, runs, device) for runs in given.runs}
    one = seconds[given.runs[0]]
    rows = [
        {"runs": runs, "milliseconds a step": round(1000 * took, 3), "ratio": round(took / one, 2)}
        for runs, took in seconds.items()
    ]
    print(json.dumps({"recipe": given.recipe, "device": str(device), "rows": rows}, indent=1))


def step_seconds(recipe: Recipe, data: Data, runs: int, device: torch.device) -> float:
    """The mean time of a step, over all phases."""
    seeds = list(range(runs))
    networks = new_networks(recipe, data, seeds)
    pools = [torch.arange(len(data.train))] * runs
    spent, counted, began = 0.0, 0, 0.0
    for watched in fit_many(recipe, data, networks, seeds=seeds, pools=pools, device=device):
        number = watched.step.number
        if number in (WARM, watched.total):
            if device.type == "cuda":
                torch.cuda.synchronize()
            now = time.perf_counter()
            if number == watched.total:
                spent, counted = spent + now - began, counted + number - WARM
            began = now
    return spent / counted


if __name__ == "__main__":
    main()
