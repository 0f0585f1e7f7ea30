"""Train many runs of one recipe, each with its seed and its tasks, as one program."""

import time
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from mnemic.checkpoint.folder import fill, weights_of
from mnemic.checkpoint.tensors import write_tensors
from mnemic.data.contract import Questions
from mnemic.evaluate.error_rate import by_task, mean, wrong
from mnemic.models import Network
from mnemic.models.ensemble import Many
from mnemic.recipe import Recipe
from mnemic.train.early_stopping import Best, check_keep
from mnemic.train.initialize import new_network, same_weights
from mnemic.train.loop import Step, optimiser_of
from mnemic.train.optim.optimizers import optimiser_state, restore_optimiser
from mnemic.train.phases import Phase, draws_of, phases, train_phase
from mnemic.train.sampler import dice_of

SAVE_AFTER = 60.0  # seconds, at the next look at the clock


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
    going: Path | None = None,
) -> Generator[Watched, None, None]:
    """Train all ``networks`` in place; ``pools`` are the training questions each may see.

    On a GPU the step is recorded once a phase and replayed as a CUDA graph. Dropout has the dice
    of the first seed, which all runs share: only there a run is not what it would be alone.
    ``going`` is a file for what stands when the generator is closed, and once a minute before, at
    the end of an epoch; the next call goes on there.
    """
    plan = phases(recipe)
    check_keep(plan, data)
    saved = load_file(going) if going is not None and going.is_file() else {}
    first, start = (int(saved.pop(name, 0)) for name in ("phase", "step"))
    stories, held = data.train.to(device), data.validation.to(device)
    tasks = [data.train.task[pool].unique() for pool in pools]
    graph = device.type == "cuda"
    for phase in plan[first:]:
        own = [same_weights(phase.recipe["model"], data.sizes, network) for network in networks]
        group = together(own).to(device)
        optimiser = optimiser_of(group, phase.settings, graph=graph)
        draws = draws_of(phase, group, stories, pools, seeds)
        restore(group, optimiser, saved)
        settings, total = phase.settings, phase.settings.total(draws.epoch)
        best = Best.restored(saved, device)
        torch.manual_seed(dice_of(seeds[0], "dropout").initial_seed())
        steps = train_phase(phase, group, stories, draws, optimiser=optimiser, start=start)
        saving = partial(store, going, group, optimiser) if going is not None else None
        saved_at = time.monotonic()
        try:
            for step in () if best.stale(settings.patience) else steps:
                start = step.number
                if settings.keep == "best" and settings.looks(step.number, draws.epoch):
                    best.offer(group, mean_errors(group, held, tasks))
                stale = best.stale(settings.patience)
                yield Watched(phase, len(plan), step, step.number if stale else total)
                if stale:
                    break
                due = start % draws.epoch == 0 and time.monotonic() - saved_at > SAVE_AFTER
                if saving and due:
                    saving(where(phase, start) | best.state())
                    saved_at = time.monotonic()
        except GeneratorExit:
            if saving:
                saving(where(phase, start) | best.state())
            raise
        best.put_back(group)
        if isinstance(group, Many):
            group.put_back(own)
        for network, trained in zip(networks, own):
            fill(network, weights_of(trained), Path("a run's own network"))
        saved, start = {}, 0
    if going is not None:
        going.unlink(missing_ok=True)


def where(phase: Phase, step: int) -> dict[str, Tensor]:
    """How far a training is, as tensors for its file."""
    return {"phase": torch.tensor(phase.number), "step": torch.tensor(step)}


def store(
    path: Path, group: nn.Module, optimiser: torch.optim.Optimizer, more: dict[str, Tensor]
) -> None:
    """Weights, optimiser and ``more`` in one file, written beside its place and put there."""
    weights = {
        f"weights.{name}": weight.detach().cpu() for name, weight in group.named_parameters()
    }
    beside = path.with_name(f".{path.name}.new")
    beside.parent.mkdir(parents=True, exist_ok=True)
    whole = weights | optimiser_state(optimiser) | more
    write_tensors(beside, whole)
    beside.rename(path)


@torch.no_grad()
def restore(
    group: nn.Module, optimiser: torch.optim.Optimizer, saved: Mapping[str, Tensor]
) -> None:
    """The inverse of ``store``; where nothing was saved, nothing changes."""
    if not saved:
        return
    for name, weight in group.named_parameters():
        weight.copy_(saved[f"weights.{name}"])
    restore_optimiser(optimiser, saved)


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


def mean_errors(group: nn.Module, held: Questions, tasks: Sequence[Tensor]) -> Tensor:
    """Each run's mean error in percent over its own tasks: one number a run, or one number."""
    rows = torch.arange(len(held), device=held.device)
    rows = rows.expand(len(tasks), -1) if isinstance(group, Many) else rows
    found = wrong(group, held, rows).view(len(tasks), -1).cpu()
    told = held.task.cpu()
    errors = []
    for run, own in enumerate(tasks):
        asked = torch.isin(told, own)
        errors.append(mean(list(by_task(found[run, asked], told[asked]).values())))
    return torch.tensor(errors) if isinstance(group, Many) else torch.tensor(errors[0])


def together(networks: Sequence[Network]) -> nn.Module:
    """Many networks as one; a single one as it is."""
    return Many(networks) if len(networks) > 1 else networks[0]
