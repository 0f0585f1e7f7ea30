"""Read and train the phases of a recipe, for one or several runs.

A recipe may have ``[[phases]]``: each overrides some settings of the recipe. MemN2N's linear start
is a phase in which ``model.memory.softmax`` is false. Phases share their data.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from mnemic.data.contract import Dataset
from mnemic.encode.packed import probe_kernels
from mnemic.models.contract import unwrap_network
from mnemic.objectives import OBJECTIVES, CarriedState, Loss
from mnemic.recipe import (
    ConfigError,
    Recipe,
    build,
    construct,
    join_words,
    kind_name,
    kind_of,
    merge_recipes,
    select_kinds,
)
from mnemic.train.distributed import limit_threads
from mnemic.train.loop import Companion, Step, TrainSettings, build_optimizer, train, world_size
from mnemic.train.optim.clipping import CLIPS
from mnemic.train.optim.schedules import SCHEDULES
from mnemic.train.prefetch import Prefetcher
from mnemic.train.rounded import RoundedNetwork
from mnemic.train.sampler import BatchIndices, BatchSampler, make_generator


class Learner(Protocol):
    """A network that learns from the batches of another one, such as its teacher."""

    def start_phase(self, phase: "Phase", load_batch: Callable[[Any], Any]) -> Companion:
        """Return what takes its steps; ``load_batch`` makes the batch of a step."""
        ...


class Phase(NamedTuple):
    """One phase of training, with its complete recipe."""

    number: int
    recipe: Recipe
    settings: TrainSettings


def read_phases(recipe: Recipe) -> list[Phase]:
    """Read the phases of a recipe in order; a recipe without any is one phase."""
    base = {key: value for key, value in recipe.items() if key != "phases"}
    recipes = [merge_recipes(base, overrides) for overrides in recipe.get("phases") or [{}]]
    plan = [
        Phase(number, phase_recipe, construct(TrainSettings, phase_recipe.get("train", {}), name="train"))
        for number, phase_recipe in enumerate(recipes)
    ]
    for phase in plan:
        check_phase(phase)
    if "teacher" in recipe and not any(needs_teacher(phase) for phase in plan):
        known = join_words(select_kinds(OBJECTIVES, needs_teacher=True))
        raise ConfigError(f"[teacher] is for objectives of kind {known}: set objective.kind, or leave it out")
    return plan


def needs_teacher(phase: Phase) -> bool:
    """Whether the objective of a phase learns from the networks of ``[teacher]``."""
    return kind_name(phase.recipe["objective"]) in select_kinds(OBJECTIVES, needs_teacher=True)


def check_phase(phase: Phase) -> None:
    """Build the objective, schedule, clipping and optimizer of a phase to find errors early."""
    if "objective" not in phase.recipe:
        raise ConfigError("the recipe has no [objective]")
    objective = phase.recipe["objective"]
    soft_weight = getattr(build_objective(phase), "soft_weight", None)
    if soft_weight is not None and soft_weight.counts_steps and phase.settings.accumulate > 1:
        raise ConfigError("objective.delay and ramp_up count steps, which train.accumulate divides: leave it out")
    if needs_teacher(phase) and "teacher" not in phase.recipe:
        raise ConfigError(
            f"objective.kind is {kind_name(objective)!r}, which learns from a trained network: "
            "set teacher.folder=DIR to its folder, or teacher.learns=true"
        )
    if world_size() > 1 and getattr(kind_of(OBJECTIVES, objective), "single_process", False):
        raise ConfigError(
            f"objective.kind is {kind_name(objective)!r}, which trains in one process: start it without torchrun"
        )
    build(SCHEDULES, phase.settings.schedule)
    build(CLIPS, phase.settings.clip)
    build_optimizer(nn.Linear(1, 1), phase.settings)


def build_objective(phase: Phase, network: Any = None, *, teachers: Sequence[nn.Module] = (), seed: int = 0) -> Any:
    """Build the objective of a phase.

    The seed alone decides the weights that it may have. The global generator is unchanged.
    """
    context = {"teachers": teachers, "shards": phase.settings.accumulate, "batch": phase.settings.batch}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(make_generator(seed, "objective", phase.number).initial_seed())
        return build(OBJECTIVES, phase.recipe["objective"], network=network, **context)


def build_sampler(
    phase: Phase, network: Any, dataset: Dataset, pools: Sequence[Tensor], seeds: Sequence[int]
) -> BatchSampler:
    """Build the batch sampler of a phase.

    Processes that train together all sample the whole batch (see ``select_rank_shard``).
    """
    if dataset.is_stream and phase.settings.accumulate > 1:
        raise ConfigError(
            "a stream has one memory per row of a batch: leave out train.accumulate, and lower train.batch"
        )
    return BatchSampler(
        pools=pools,
        seeds=seeds,
        phase=phase.number,
        batch_size=phase.settings.batch,
        num_uniforms=network.num_uniforms + dataset.num_uniforms,
        replace=phase.settings.replace,
        in_order=dataset.is_stream,
        stacked=unwrap_network(network).num_runs is not None,
        device=dataset.device,
        lengths=dataset.lengths.cpu() if phase.settings.buckets > 1 else None,
        num_buckets=phase.settings.buckets,
        weights=None if dataset.weights is None else dataset.weights.cpu(),
        groups=None if dataset.groups is None else dataset.groups.cpu(),
    )


def train_phase(
    phase: Phase,
    network: nn.Module,
    dataset: Any,
    sampler: BatchSampler,
    *,
    optimizer: torch.optim.Optimizer,
    first_step: int = 0,
    carried: CarriedState | None = None,
    prefetcher: Prefetcher | None = None,
    objective: Any = None,
    learners: Sequence[Learner] = (),
) -> Iterator[Step]:
    """Train from ``first_step`` to the end of a phase.

    ``carried`` is the state of the step before. ``prefetcher`` makes the batches of long
    documents, if the phase has workers. ``objective`` is that of the phase, if it is built.
    ``learners`` learn from the same batches, by themselves.
    """
    device = next(network.parameters()).device
    on_gpu = device.type == "cuda"
    limit_threads(network)
    if on_gpu:
        torch.set_float32_matmul_precision("high" if phase.settings.matmul == "tf32" else "highest")
    objective, settings = build_objective(phase) if objective is None else objective, phase.settings
    if getattr(objective, "contrasts_batch", False):
        settings = replace(settings, accumulate=1)  # it divides the batch itself
    # A wrapper around the same weights, for these steps alone; masks and losses are not compiled.
    compiled: Any = network
    if phase.settings.matmul == "bf16-states":
        if world_size() > 1 or unwrap_network(network).num_runs is not None:
            raise ConfigError('train.matmul = "bf16-states" is for one run in one process: take "bf16"')
        compiled = RoundedNetwork(network)
    if on_gpu and phase.settings.compile:
        probe_kernels(device)
        compiled = torch.compile(compiled, dynamic=False)
    use_bf16 = phase.settings.matmul == "bf16"  # for products; weights and sums stay float32
    compact = not on_gpu  # a GPU prefers equal shapes to fewer texts
    is_stacked = unwrap_network(network).num_runs is not None

    def load_batch(indices_or_batch: Any) -> Any:
        if not isinstance(indices_or_batch, BatchIndices):
            return indices_or_batch
        rows, uniforms, max_length = indices_or_batch
        return dataset.batch(rows, uniforms, compact=compact, max_length=max_length)

    def compute_loss(network: Any, indices_or_batch: Any, carried: CarriedState | None) -> Loss:
        batch = load_batch(indices_or_batch)
        with torch.autocast(device.type, torch.bfloat16, enabled=use_bf16):
            if is_stacked:
                return network.map_networks(objective, batch, carried)
            return objective(compiled, batch, carried)

    batches: Iterator[Any] = map(select_rank_shard, sampler.iterate_from(first_step))
    if phase.settings.workers:
        if prefetcher is None:
            raise ConfigError(
                "train.workers make batches of long documents, which are generated anew each time; "
                "leave it out for other data"
            )
        batches = prefetcher.iterate_batches(dataset, batches, phase.settings.workers)
    return train(
        network,
        compute_loss,
        batches,
        settings,
        optimizer=optimizer,
        steps_per_epoch=sampler.steps_per_epoch,
        first_step=first_step,
        carried=carried,
        companions=[learner.start_phase(phase, load_batch) for learner in learners],
    )


def select_rank_shard(indices: BatchIndices) -> BatchIndices:
    """Select this process's shard of a batch that all processes have sampled alike."""
    num_shards = world_size()
    return indices if num_shards == 1 else indices.select_shard(torch.distributed.get_rank(), num_shards)
