"""Train many runs of one recipe, each with its seed and its tasks, as one program."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.learn.checkpoint import fill, weights_of
from mnemic.learn.evaluate import wrong
from mnemic.learn.fit import new_network, same_weights
from mnemic.learn.many import Many
from mnemic.learn.phase import Phase, draws_of, phases, train_phase
from mnemic.learn.train import Step, optimiser_of
from mnemic.network import Network
from mnemic.recipe import Recipe


class Watched(NamedTuple):
    """A step of all runs, and where it stands."""

    phase: Phase
    phases: int
    step: Step
    total: int


def new_networks(recipe: Recipe, data: Any, seeds: Sequence[int]) -> list[Network]:
    """One network a seed, each with the weights it would have if it trained alone."""
    return [new_network(recipe["model"], data.sizes, seed) for seed in seeds]


def fit_many(
    recipe: Recipe,
    data: Any,
    networks: list[Network],
    *,
    seeds: Sequence[int],
    pools: Sequence[Tensor],
    device: torch.device,
) -> Iterator[Watched]:
    """Train all ``networks`` in place; ``pools`` are the training questions each may see.

    On a GPU the step is recorded once a phase and replayed as a CUDA graph.
    """
    plan = phases(recipe)
    stories = data.train.to(device)
    graph = device.type == "cuda"
    for phase in plan:
        own = [same_weights(phase.recipe["model"], data.sizes, network) for network in networks]
        group = together(own).to(device)
        optimiser = optimiser_of(group, phase.settings, graph=graph)
        draws = draws_of(phase, group, stories, pools, seeds)
        total = phase.settings.total(draws.epoch)
        for step in train_phase(phase, group, stories, draws, optimiser=optimiser):
            yield Watched(phase, len(plan), step, total)
        if isinstance(group, Many):
            group.put_back(own)
        for network, trained in zip(networks, own):
            fill(network, weights_of(trained), Path("a run's own network"))


def wrong_many(
    recipe: Recipe,
    data: Any,
    networks: Sequence[Network],
    rows: Tensor,
    part: str,
    device: torch.device,
) -> Tensor:
    """Which questions each run gets wrong: ``rows`` (runs q) of the data's ``part``."""
    own = [same_weights(recipe["model"], data.sizes, network) for network in networks]
    asked = (rows if len(own) > 1 else rows[0]).to(device)
    found = wrong(together(own).to(device), getattr(data, part).to(device), asked).cpu()
    return found.view(rows.shape)


def together(networks: Sequence[Network]) -> nn.Module:
    """Many networks as one; a single one as it is."""
    return Many(networks) if len(networks) > 1 else networks[0]
