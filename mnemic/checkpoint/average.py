"""One network from several that began alike: the mean of their weights (Wortsman et al. 2022).

Runs that start from the same trained encoder, with other seeds or settings, end in one valley; its
middle often does better than any of them, and costs no more to use than one.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from mnemic.checkpoint.folder import Checkpoint, Progress, fill, load, save, weights_of
from mnemic.recipe import ConfigError

UNMEASURED: dict[str, Any] = {"validation": None, "figures": {}}  # a line of a log without them


def average(runs: Sequence[Path], out: Path) -> Checkpoint:
    """Write the mean of finished ``runs`` to the folder ``out``; recipe and seed are the first's.

    Its log has the lines of all of them, so that their time adds up, without what was measured on
    the way: that is not said of the mean.
    """
    if len(runs) < 2:
        raise ConfigError(f"an average is of two runs or more, not of {len(runs)}")
    if out.exists():
        raise ConfigError(f"{out} is there already; give the average a folder of its own")
    found = [load(run) for run in runs]
    for run, own in zip(runs, found):
        check_alike(runs[0], found[0], run, own)
    each = [weights_of(own.network) for own in found]
    mean = {name: mean_of([own[name] for own in each]) for name in each[0]}
    fill(found[0].network, mean, out)
    history = [row | UNMEASURED for own in found for row in own.progress.history]
    progress = Progress(phase=found[0].progress.phase, done=True, history=history)
    whole = replace(found[0], progress=progress, state={})
    save(out, whole)
    return whole


def check_alike(first: Path, one: Checkpoint, second: Path, other: Checkpoint) -> None:
    """Only weights that mean the same thing can be averaged."""
    if not other.progress.done:
        raise ConfigError(f"{second} is not trained to the end; finish it first")
    for what, mine, yours in (
        ("models", *(own.recipe["model"] | {"start": None} for own in (one, other))),
        ("sizes", one.sizes, other.sizes),
        ("labels", one.labels, other.labels),
    ):
        if mine != yours:
            raise ConfigError(f"{first} and {second} differ in their {what}: {mine}, {yours}")
    if one.tokenizer != other.tokenizer:
        raise ConfigError(f"{first} and {second} have different tokenizers")


def mean_of(weights: Sequence[torch.Tensor]) -> torch.Tensor:
    """The mean of one weight in all runs; counts and the like have to be equal."""
    if weights[0].is_floating_point():
        return torch.stack([own.double() for own in weights]).mean(0).to(weights[0].dtype)
    if any(not torch.equal(weights[0], own) for own in weights[1:]):
        raise ConfigError("the runs differ in a weight of whole numbers, which has no mean")
    return weights[0]
