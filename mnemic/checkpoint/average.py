"""Average the weights of several fine-tuned networks into one: model soups (Wortsman et al. 2022).

Runs that start from the same trained encoder, with different seeds or settings, end in the same
valley of the loss. Its middle often does better than any of them, and costs no more to use than
one network.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from mnemic.checkpoint.folder import Checkpoint, load_checkpoint, load_weights, save_checkpoint, weights_of
from mnemic.recipe import ConfigError

STARTS: dict[str, Any] = {"init_from": None, "init_vectors": None}  # in which models may differ
UNMEASURED: dict[str, Any] = {"validation": None, "figures": {}}  # set in each row of the log


def average_checkpoints(runs: Sequence[Path], out: Path) -> Checkpoint:
    """Average the weights of finished ``runs`` and save them to the folder ``out``.

    Recipe and seed are those of the first run. The log has the rows of all runs, so that their
    times add up, but without their validation metrics, which do not hold for the mean.
    """
    if len(runs) < 2:
        raise ConfigError(f"an average needs at least two runs, not {len(runs)}")
    if out.exists():
        raise ConfigError(f"{out} exists already; give a new folder for the average")
    checkpoints = [load_checkpoint(run) for run in runs]
    for run, checkpoint in zip(runs, checkpoints):
        check_compatible(runs[0], checkpoints[0], run, checkpoint)
    weights_by_run = [weights_of(checkpoint.network) for checkpoint in checkpoints]
    mean = {name: average_tensors([weights[name] for weights in weights_by_run]) for name in weights_by_run[0]}
    load_weights(checkpoints[0].network, mean, out)
    history = [row | UNMEASURED for checkpoint in checkpoints for row in checkpoint.progress.history]
    averaged = replace(checkpoints[0], progress=replace(checkpoints[0].progress, history=history), state={})
    save_checkpoint(out, averaged)
    return averaged


def check_compatible(first_path: Path, first: Checkpoint, second_path: Path, second: Checkpoint) -> None:
    """Raise an error if two runs have different models, sizes, labels or tokenizers."""
    if not second.progress.done:
        raise ConfigError(f"{second_path} is not trained to the end; finish it first")
    for aspect, first_value, second_value in (
        ("models", *(checkpoint.recipe["model"] | STARTS for checkpoint in (first, second))),
        ("sizes", first.sizes, second.sizes),
        ("labels", first.labels, second.labels),
    ):
        if first_value != second_value:
            raise ConfigError(f"{first_path} and {second_path} differ in their {aspect}: {first_value}, {second_value}")
    if first.tokenizer != second.tokenizer:
        raise ConfigError(f"{first_path} and {second_path} have different tokenizers")


def average_tensors(weights: Sequence[torch.Tensor]) -> torch.Tensor:
    """Average one weight over all runs; integer tensors must be equal in all of them."""
    if weights[0].is_floating_point():
        return torch.stack([weight.double() for weight in weights]).mean(0).to(weights[0].dtype)
    if any(not torch.equal(weights[0], weight) for weight in weights[1:]):
        raise ConfigError("the runs differ in an integer tensor, which cannot be averaged")
    return weights[0]
