"""Train many runs of one recipe with different seeds as one stacked network."""

import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_weights, weights_of
from mnemic.checkpoint.tensors import pack_tensors, read_tensors
from mnemic.data.contract import QuestionDataset
from mnemic.evaluate.by_task import mean_error, percent_by_task
from mnemic.evaluate.error_rate import find_wrong_answers
from mnemic.files import ANYONE, replace_file
from mnemic.models import MemoryNetwork
from mnemic.models.contract import BaseNetwork
from mnemic.models.ensemble import StackedNetworks
from mnemic.recipe import Recipe
from mnemic.recipe.migrate import migrate_state
from mnemic.train.early_stopping import BestWeights, check_validation_data
from mnemic.train.initialize import build_network, rebuild_network
from mnemic.train.loop import Step, build_optimizer
from mnemic.train.optim.optimizers import optimizer_tensors_of, restore_optimizer
from mnemic.train.phases import Phase, build_sampler, read_phases, train_phase
from mnemic.train.sampler import make_generator

SAVE_INTERVAL_S = 60.0  # checked at the end of each epoch


class EnsembleStep(NamedTuple):
    """A training step of all runs, with its phase and the total number of steps."""

    phase: Phase
    num_phases: int
    step: Step
    total_steps: int


def create_networks(recipe: Recipe, data: Any, seeds: Sequence[int]) -> list[MemoryNetwork]:
    """Create one network per seed, with the initial weights it would have on its own."""
    return [build_network(recipe["model"], data.sizes, seed) for seed in seeds]


def train_ensemble(
    recipe: Recipe,
    data: Any,
    networks: list[MemoryNetwork],
    *,
    seeds: Sequence[int],
    rows_per_run: Sequence[Tensor],
    device: torch.device,
    progress_path: Path | None = None,
) -> Generator[EnsembleStep, None, None]:
    """Train all ``networks`` in place; ``rows_per_run`` are the training questions of each.

    On a GPU the step is recorded once per phase and replayed as a CUDA graph. All runs share the
    dropout generator of the first seed: only there a run differs from training it alone. Progress
    is saved to ``progress_path`` when the generator is closed, and about once a minute at the end
    of an epoch; the next call resumes from it.
    """
    all_phases = read_phases(recipe)
    check_validation_data(all_phases, data)
    saved = migrate_state(read_tensors(progress_path)) if progress_path is not None else {}
    first, start = (int(saved.pop(name, 0)) for name in ("phase", "step"))
    stories, validation = data.train.to(device), data.validation.to(device)
    tasks = [data.train.task[rows].unique() for rows in rows_per_run]
    cuda_graph = device.type == "cuda"
    for phase in all_phases[first:]:
        models = networks
        if phase.recipe["model"] != recipe["model"]:
            models = [rebuild_network(phase.recipe["model"], data.sizes, network) for network in networks]
        group = stack_networks(models).to(device)
        optimizer = build_optimizer(group, phase.settings, stacked=group.num_runs is not None, cuda_graph=cuda_graph)
        sampler = build_sampler(phase, group, stories, rows_per_run, seeds)
        restore_progress(group, optimizer, saved)
        settings, total_steps = phase.settings, phase.settings.total_steps(sampler.steps_per_epoch)
        best_weights = BestWeights.from_state_dict(saved, device)
        torch.manual_seed(make_generator(seeds[0], "dropout").initial_seed())
        steps = train_phase(phase, group, stories, sampler, optimizer=optimizer, first_step=start)
        saved_at = time.monotonic()
        try:
            for step in () if best_weights.should_stop(settings.patience) else steps:
                start = step.number
                if settings.keep == "best" and settings.evaluates_at(step.number, sampler.steps_per_epoch):
                    best_weights.update(group, compute_mean_errors(group, validation, tasks))
                is_finished = best_weights.should_stop(settings.patience)
                yield EnsembleStep(phase, len(all_phases), step, step.number if is_finished else total_steps)
                if is_finished:
                    break
                is_due = start % sampler.steps_per_epoch == 0 and time.monotonic() - saved_at > SAVE_INTERVAL_S
                if is_due:
                    save_progress(progress_path, group, optimizer, phase.number, start, best_weights)
                    saved_at = time.monotonic()
        except GeneratorExit:
            save_progress(progress_path, group, optimizer, phase.number, start, best_weights)
            raise
        best_weights.copy_to(group)
        if group.num_runs is not None:
            group.copy_weights_to(models)
        if models is not networks:
            for network, model in zip(networks, models):
                load_weights(network, weights_of(model), Path("a run's own network"))
        saved, start = {}, 0
    if progress_path is not None:
        progress_path.unlink(missing_ok=True)


def save_progress(
    path: Path | None, group: nn.Module, optimizer: torch.optim.Optimizer, phase: int, step: int, best: BestWeights
) -> None:
    """Save the position, weights and optimizer state in one file, atomically; None: nowhere."""
    if path is None:
        return
    weights = {f"weights.{name}": weight.detach().cpu() for name, weight in group.named_parameters()}
    path.parent.mkdir(parents=True, exist_ok=True)
    position = {"phase": torch.tensor(phase), "step": torch.tensor(step)}
    with replace_file(path, mode=ANYONE) as file:
        file.write(pack_tensors(weights | optimizer_tensors_of(optimizer) | position | best.state_dict()))


@torch.no_grad()
def restore_progress(group: nn.Module, optimizer: torch.optim.Optimizer, saved: Mapping[str, Tensor]) -> None:
    """Restore weights and optimizer state that ``save_progress`` wrote; do nothing without."""
    if not saved:
        return
    for name, weight in group.named_parameters():
        weight.copy_(saved[f"weights.{name}"])
    restore_optimizer(optimizer, saved)


def find_wrong_answers_per_run(
    networks: Sequence[MemoryNetwork], dataset: QuestionDataset, rows: Tensor, device: torch.device
) -> Tensor:
    """Return a mask of the questions in ``rows`` (runs q) answered wrongly."""
    device_rows = (rows if len(networks) > 1 else rows[0]).to(device)
    is_wrong = find_wrong_answers(stack_networks(networks).to(device), dataset.to(device), device_rows)
    return is_wrong.cpu().view(rows.shape)


def compute_mean_errors(group: BaseNetwork, validation: QuestionDataset, tasks: Sequence[Tensor]) -> Tensor:
    """Compute each run's mean error over its tasks, in percent; a scalar for one run."""
    rows = torch.arange(len(validation), device=validation.device)
    is_stacked = group.num_runs is not None
    rows = rows.expand(len(tasks), -1) if is_stacked else rows
    is_wrong = find_wrong_answers(group, validation, rows).view(len(tasks), -1).cpu()
    task_ids = validation.task.cpu()
    errors = []
    for run, run_tasks in enumerate(tasks):
        is_in_tasks = torch.isin(task_ids, run_tasks)
        errors.append(mean_error(list(percent_by_task(is_wrong[run, is_in_tasks], task_ids[is_in_tasks]).values())))
    return torch.tensor(errors) if is_stacked else torch.tensor(errors[0])


def stack_networks(networks: Sequence[MemoryNetwork]) -> Any:
    """Stack several networks into one module; return a single network unchanged."""
    return StackedNetworks(networks) if len(networks) > 1 else networks[0]
