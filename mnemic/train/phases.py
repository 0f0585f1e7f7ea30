"""One phase of a recipe, for one run or for many at once.

A recipe may have ``[[phases]]``: each is a piece of recipe laid over the whole one. MemN2N's
linear start is a phase in which ``model.memory.softmax`` is false. Phases share their data.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.contract import Examples
from mnemic.data.long_context.batches import LongSet
from mnemic.encode.packed import try_kernels
from mnemic.models.ensemble import Many
from mnemic.objectives import OBJECTIVES, Carried, Loss
from mnemic.recipe import ConfigError, Recipe, build, fill, merge
from mnemic.train.distributed import spare_threads
from mnemic.train.loop import Step, TrainSettings, optimiser_of, processes, train
from mnemic.train.optim.clipping import CLIPS
from mnemic.train.optim.schedules import SCHEDULES
from mnemic.train.prefetch import Ahead
from mnemic.train.sampler import Draw, Draws


class Phase(NamedTuple):
    """A phase's own whole recipe."""

    number: int
    recipe: Recipe
    settings: TrainSettings


def phases(recipe: Recipe) -> list[Phase]:
    """The recipe's phases in order; a recipe without any is one phase."""
    whole = {key: value for key, value in recipe.items() if key != "phases"}
    own = [merge(whole, part) for part in recipe.get("phases") or [{}]]
    found = [
        Phase(number, part, fill(TrainSettings, part.get("train", {}), name="train"))
        for number, part in enumerate(own)
    ]
    for phase in found:
        check(phase)
    return found


def check(phase: Phase) -> None:
    """Build what the phase will build, so that a slip in the last one is noticed in the first."""
    if "objective" not in phase.recipe:
        raise ConfigError("the recipe has no [objective]")
    build(OBJECTIVES, phase.recipe["objective"])
    build(SCHEDULES, phase.settings.schedule)
    build(CLIPS, phase.settings.clip)
    optimiser_of(nn.Linear(1, 1), phase.settings)


def draws_of(
    phase: Phase,
    network: nn.Module,
    questions: Examples,
    pools: Sequence[Tensor],
    seeds: Sequence[int],
) -> Draws:
    """What the phase draws. Processes that train together draw the whole batch (see ``share``)."""
    return Draws(
        pools=pools,
        seeds=seeds,
        phase=phase.number,
        batch=phase.settings.batch,
        rolls=bare(network).rolls + questions.rolls,
        replace=phase.settings.replace,
        stacked=isinstance(network, Many),
        device=questions.device,
        lengths=questions.lengths.cpu() if phase.settings.buckets > 1 else None,
        buckets=phase.settings.buckets,
    )


def train_phase(
    phase: Phase,
    network: nn.Module,
    questions: Examples,
    draws: Draws,
    *,
    optimiser: torch.optim.Optimizer,
    start: int = 0,
    carried: Carried | None = None,
    ahead: Ahead | None = None,
) -> Iterator[Step]:
    """Train from step ``start`` to the phase's end, with what the step before it carried on.

    ``ahead`` makes the batches of long documents, where the phase has workers.
    """
    device = next(network.parameters()).device
    on_gpu = device.type == "cuda"
    spare_threads(network)
    if on_gpu:
        exact = phase.settings.matmul != "tf32"
        torch.set_float32_matmul_precision("highest" if exact else "high")
    objective = build(OBJECTIVES, phase.recipe["objective"])
    # A wrapper around the same weights, for these steps alone; masks and losses stay as they are.
    fused: Any = network
    if on_gpu and phase.settings.compile:
        try_kernels(device)
        fused = torch.compile(network, dynamic=False)
    halved = phase.settings.matmul == "bf16"  # of products alone: weights and sums stay as they are
    compact = not on_gpu  # a GPU would rather have equal shapes than fewer texts

    def loss_of(network: nn.Module, draw: Any, carried: Carried | None) -> Loss:
        batch = draw
        if isinstance(draw, Draw):
            batch = questions.batch(draw.rows, draw.rolls, compact=compact, most=draw.most)
        with torch.autocast(device.type, torch.bfloat16, enabled=halved):
            if isinstance(network, Many):
                return network.each(objective, batch, carried)
            return objective(fused, batch, carried)

    drawn: Iterator[Any] = map(share, draws.from_step(start))
    if phase.settings.workers:
        if ahead is None or not isinstance(questions, LongSet):
            raise ConfigError(
                "train.workers make batches of long documents, which are drawn anew each time; "
                "leave it out for other data"
            )
        drawn = ahead.batches(questions, drawn, phase.settings.workers)
    return train(
        network,
        loss_of,
        drawn,
        phase.settings,
        optimiser=optimiser,
        epoch=draws.epoch,
        start=start,
        carried=carried,
    )


def share(draw: Draw) -> Draw:
    """This process's part of a batch that all processes have drawn alike."""
    count = processes()
    return draw if count == 1 else draw.part(torch.distributed.get_rank(), count)


def bare(network: nn.Module) -> Any:
    """The network itself, without the wrapper of parallel training."""
    parallel = isinstance(network, nn.parallel.DistributedDataParallel)
    return network.module if parallel else network
