"""Train one network from its recipe: data, phases, log, checkpoints, resuming.

``fit`` drives the training loop: it logs, validates, saves and stops. It yields one ``StepReport``
per step and prints nothing.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import nullcontext
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import (
    Checkpoint,
    TrainingProgress,
    check_replaceable,
    find_checkpoint,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from mnemic.checkpoint.lock import lock_folder
from mnemic.checkpoint.tensors import select_tensors
from mnemic.data import DATASETS
from mnemic.data.contract import Data, Dataset
from mnemic.evaluate.calibration import calibrate_no_answer
from mnemic.evaluate.error_rate import evaluate_network
from mnemic.evaluate.pretraining_metrics import attach_noises
from mnemic.models import check_model, check_parts_fit
from mnemic.objectives import CarriedState
from mnemic.recipe import ConfigError, Recipe, build, kind_of
from mnemic.train.distributed import init_distributed
from mnemic.train.early_stopping import BestWeights, check_validation_data
from mnemic.train.freeze import freeze
from mnemic.train.initialize import check_kinds, check_phases, initialize_network, rebuild_network
from mnemic.train.logger import RunLogger
from mnemic.train.loop import Step, build_optimizer
from mnemic.train.optim.optimizers import optimizer_tensors_of, restore_optimizer
from mnemic.train.phases import Phase, build_objective, build_sampler, read_phases, train_phase
from mnemic.train.prefetch import Prefetcher
from mnemic.train.sampler import make_generator
from mnemic.train.start.fill_embeddings import FilledRows, fill_embeddings
from mnemic.train.start.tied_words import resolve_tied_words
from mnemic.train.teaching import Teachers

# Of the names of carried tensors and of sums of losses in a checkpoint.
CARRIED_PREFIX, MEANS_PREFIX = "carried.", "loss_sums."
OBJECTIVE_PREFIX = "objective."  # of weights that belong to an objective
OnValidate = Callable[[int], None]  # is told the number of examples
OnFill = Callable[[FilledRows], None]  # is told what ``model.init_vectors`` filled


class StepReport(NamedTuple):
    """The progress of a run after one step."""

    phase: int
    num_phases: int
    step: int
    total_steps: int  # of this phase
    rate: float
    row: dict[str, Any] | None  # the log's new row, at the end of an epoch


def load_data(recipe: Recipe) -> Data:
    """Check a recipe and load its data."""
    for section in ("model", "data", "objective"):
        if section not in recipe:
            raise ConfigError(f"the recipe has no [{section}]")
    check_model(recipe["model"])
    check_kinds(recipe)
    return resolve_tied_words(build(DATASETS, recipe["data"]).load(), recipe)


def fit(
    recipe: Recipe, folder: str | Path, *, seed: int = 0, device: str = "auto",
    fresh: bool = False, on_validate: OnValidate = lambda count: None, on_fill: OnFill = lambda rows: None,
) -> Generator[StepReport, None, None]:  # fmt: skip
    """Train ``recipe`` in ``folder``, or resume the run that is there.

    A run that was stopped or killed resumes from its last checkpoint and ends with exactly the
    same weights. Closing the generator saves first; an interrupt within a step does not, since
    the weights may then be partly updated. ``on_validate`` is called before each validation,
    which may take minutes, with the number of examples; ``on_fill`` once, if the recipe names word
    vectors and the run starts, with the number of rows that they filled.

    >>> sets = ["data.kind=generated-babi", "data.tasks=[1]", "data.count=500", "train.epochs=3"]
    >>> recipe = mnemic.load_recipe("memn2n", [*sets, "phases.0.train.epochs=2"])
    >>> losses = []
    >>> for report in mnemic.fit(recipe, "runs/rooms", device="cpu"):
    ...     if report.row is not None:  # at the end of an epoch
    ...         losses.append(report.row["loss"])
    >>> len(losses), losses[-1] < losses[0]
    (5, True)
    >>> mnemic.load("runs/rooms").methods
    ('ask_story',)
    """
    torch_device = init_distributed(device)
    is_main = not dist.is_initialized() or dist.get_rank() == 0
    with lock_folder(Path(folder)) if is_main else nullcontext():
        run = Run(recipe, Path(folder), seed, torch_device, fresh, on_validate, on_fill)
        try:
            for phase in run.phases[run.progress.phase :]:
                yield from run.train(phase)
            run.finish()
            if dist.is_initialized():
                dist.barrier()  # whoever looks for the checkpoint now finds it
        finally:
            run.close()


class Run:
    """The state of a run: its network, its data and its progress."""

    def __init__(
        self, recipe: Recipe, folder: Path, seed: int, device: torch.device, fresh: bool,
        on_validate: OnValidate, on_fill: OnFill,
    ) -> None:  # fmt: skip
        self.recipe, self.folder, self.seed, self.device = recipe, folder, seed, device
        self.on_validate = on_validate
        self.phases = read_phases(recipe)
        self.carried: CarriedState | None = None
        self.sums = torch.zeros(2, dtype=torch.float64)  # of loss and norm, in this row of the log
        self.loss_sums: dict[str, Tensor] = {}  # of each loss by name, where there are several
        self.best = BestWeights()
        previous = None if fresh else load_previous_run(folder, recipe, seed)
        if previous is None:
            check_replaceable(folder)
        self.is_main = not dist.is_initialized() or dist.get_rank() == 0
        if not self.is_main:
            dist.barrier()  # the main process writes files of the data, the others read them
        self.data = load_data(recipe)
        if self.is_main and dist.is_initialized():
            dist.barrier()
        check_phases(self.phases, recipe, self.data.sizes)
        check_validation_data(self.phases, self.data)
        if previous is None:
            self.model = self.phases[0].recipe["model"]  # that the network was built from
            self.network: nn.Module = initialize_network(self.model, self.data.sizes, seed)
            if "init_vectors" in self.model:
                on_fill(fill_embeddings(self.network, self.model, self.data.tokenizer))
            self.progress = TrainingProgress()
            self.state: Mapping[str, Tensor] = {}
        else:
            self.model, self.network = recipe["model"], previous.network
            self.progress, self.state = previous.progress, previous.state
            if (dict(previous.sizes), previous.labels) != (self.data.sizes, self.data.labels):
                raise CheckpointError(
                    f"the data is not what {folder} was trained on (sizes {self.data.sizes}, "
                    f"then {dict(previous.sizes)}); give the same data, or --fresh to start anew"
                )
        check_parts_fit(self.network, self.data.sizes)
        is_trained = self.progress.phase >= len(self.phases)
        self.teachers = Teachers({} if is_trained else recipe, self.data, device, seed, self.state)
        self.objectives = {  # all at once: mistakes are found before the first step
            phase.number: build_objective(phase, self.network, teachers=self.teachers.networks, seed=seed)
            for phase in self.phases[self.progress.phase :]
        }
        if previous is None and self.is_main:  # from here on the folder belongs to this run
            remove_checkpoint(folder)
        self.logger = RunLogger(folder, self.progress.history) if self.is_main else None
        dataset: Any = self.data.train
        has_segments = kind_of(DATASETS, recipe["data"]).layout == "segments"
        self.prefetcher = Prefetcher(dataset) if has_segments else None

    def train(self, phase: Phase) -> Iterator[StepReport]:
        """Train one phase from its current step to its end."""
        network: Any = self.use_model(phase.recipe["model"])
        if not self.progress.step:
            network.start_phase()
        freeze(network, phase.settings.frozen)
        dataset = self.select_dataset(phase)
        pools = [torch.arange(len(dataset))]
        wrapped: nn.Module = DistributedDataParallel(network) if dist.is_initialized() else network
        objective = self.objectives[phase.number]
        if isinstance(objective, nn.Module):
            objective.to(self.device)
        optimizer = build_optimizer(wrapped, phase.settings, objective=objective)
        sampler = build_sampler(phase, network, dataset, pools, [self.seed])
        self.restore_state(optimizer, objective)
        total_steps = phase.settings.total_steps(sampler.steps_per_epoch)
        steps = train_phase(
            phase, wrapped, dataset, sampler, optimizer=optimizer, first_step=self.progress.step,
            carried=self.carried, prefetcher=self.prefetcher, objective=objective,
            learners=self.teachers.learners,
        )  # fmt: skip
        self.row_start, patience = time.monotonic(), phase.settings.patience
        try:
            while not self.best.should_stop(patience) and (step := next(steps, None)) is not None:
                self.carried = step.carried
                row = self.add_to_row(phase, step, sampler.steps_per_epoch, total_steps)
                history = self.progress.history if row is None else [*self.progress.history, row]
                self.progress = TrainingProgress(phase=phase.number, step=step.number, history=history)
                if step.number % phase.settings.save == 0:
                    self.save_checkpoint(optimizer)
                yield StepReport(phase.number, len(self.phases), step.number, total_steps, step.rate, row)
        except GeneratorExit:
            self.save_checkpoint(optimizer)
            raise
        self.best.copy_to(network)
        self.progress = TrainingProgress(phase=phase.number + 1, history=self.progress.history)
        self.save_checkpoint(None)

    def use_model(self, model: dict[str, Any]) -> nn.Module:
        """Move the network to its device; rebuild it if ``model`` uses its weights otherwise."""
        if model != self.model:
            self.network, self.model = rebuild_network(model, self.data.sizes, self.network), model
        self.network = self.network.requires_grad_().to(self.device)
        return self.network

    def select_dataset(self, phase: Phase) -> Dataset:
        """Select the training set of a phase, with its number of segments."""
        dataset: Any = self.data.train
        if phase.settings.segments:  # ``check_phases`` has seen that the data has segments
            dataset = dataset.with_segments(phase.settings.segments)
        return self.teachers.extend(dataset).to(self.device)

    def add_to_row(self, phase: Phase, step: Step, steps_per_epoch: int, total_steps: int) -> dict[str, Any] | None:
        """Add a step to the current log row; log and return a complete row.

        The last step of a row may evaluate on the validation set.
        """
        self.sums = self.sums + torch.stack([step.loss, step.norm])
        for name, mean in (step.means or {}).items():
            self.loss_sums[name] = self.loss_sums.get(name, torch.zeros_like(mean)) + mean
        steps_per_row = phase.settings.steps_per_row(steps_per_epoch)
        if step.number % steps_per_row and step.number != total_steps:
            return None
        epoch_number = -(-step.number // steps_per_epoch)
        num_steps = 1 + (step.number - 1) % steps_per_row
        loss, norm = (self.sums / num_steps).tolist()
        if not isfinite(loss):
            raise ConfigError(
                f"the loss is {loss} in epoch {epoch_number} of phase {phase.number + 1}: training "
                "diverged; lower train.rate or train.clip (--fresh starts anew)"
            )
        earlier_steps = (row["steps"] for row in self.progress.history if row["phase"] <= phase.number)
        is_due = phase.settings.evaluates_at(step.number, steps_per_epoch)
        validation, metrics = self.validate() if is_due else (None, {})
        if validation is not None and phase.settings.keep == "best":
            self.best.update(self.network, torch.tensor(validation))
        now = time.monotonic()
        row = {
            "phase": phase.number + 1,
            "epoch": epoch_number,
            "step": step.number,
            "steps": step.number + max(earlier_steps, default=0),
            "loss": loss,
            "norm": norm,
            "rate": step.rate,
            "validation": validation,
            "seconds": round(now - self.row_start, 2),
        } | ({"figures": metrics} if metrics else {})
        if self.loss_sums:
            row["losses"] = {name: float(mean) / num_steps for name, mean in self.loss_sums.items()}
        self.sums, self.row_start, self.loss_sums = torch.zeros_like(self.sums), now, {}
        if self.logger is not None:
            self.logger.add_row(row)
        return row

    def validate(self) -> tuple[float | None, dict[str, float]]:
        """Evaluate on the validation set: the error in percent, and other metrics."""
        if not len(self.data.validation):
            return None, {}
        self.on_validate(len(self.data.validation))
        objective = self.phases[self.progress.phase].recipe["objective"]
        return evaluate_network(self.network, attach_noises(self.data.validation.to(self.device), objective))

    def restore_state(self, optimizer: torch.optim.Optimizer, objective: Any) -> None:
        """Restore all that a step needs from a checkpoint, dropout's random state included."""
        restore_optimizer(optimizer, self.state)
        if weights := select_tensors(self.state, OBJECTIVE_PREFIX, self.device):
            objective.load_state_dict(weights)
        self.carried = select_tensors(self.state, CARRIED_PREFIX, self.device) or None
        self.loss_sums = select_tensors(self.state, MEANS_PREFIX, self.device)
        self.best = BestWeights.from_state_dict(self.state, self.device)
        self.sums = self.state.get("sums", torch.zeros_like(self.sums)).to(self.device)
        if "rng_state" in self.state:
            torch.set_rng_state(self.state["rng_state"])
        else:
            torch.manual_seed(make_generator(self.seed, "dropout").initial_seed())
        self.state = {}

    def save_checkpoint(self, optimizer: torch.optim.Optimizer | None) -> None:
        """Save the run; with an ``optimizer``, so that its phase can be resumed."""
        if not self.is_main:
            return
        state: dict[str, Tensor] = {}
        if self.progress.phase < len(self.phases):
            state |= self.teachers.state_dict(in_phase=optimizer is not None)
        if optimizer is not None:  # in the middle of a phase
            state |= {"rng_state": torch.get_rng_state(), "sums": self.sums.cpu()}
            state |= optimizer_tensors_of(optimizer) | self.best.state_dict()
            state |= {f"{CARRIED_PREFIX}{name}": tensor.cpu() for name, tensor in (self.carried or {}).items()}
            state |= {f"{MEANS_PREFIX}{name}": tensor.cpu() for name, tensor in self.loss_sums.items()}
            objective = self.objectives[self.progress.phase]
            if isinstance(objective, nn.Module):
                state |= {f"{OBJECTIVE_PREFIX}{name}": tensor.cpu() for name, tensor in objective.state_dict().items()}
        checkpoint = Checkpoint(
            recipe=self.recipe,
            seed=self.seed,
            sizes=self.data.sizes,
            tokenizer=self.data.tokenizer,
            labels=self.data.labels,
            network=self.network,
            progress=self.progress,
            state=state,
        )
        save_checkpoint(self.folder / "checkpoint", checkpoint)

    def finish(self) -> None:
        """Save the finished network as the recipe's model, which may differ from the last phase's.

        A network that retrieves and reads is calibrated on the validation set first.
        """
        if self.progress.done:
            return
        network = self.use_model(self.recipe["model"])
        if kind_of(DATASETS, self.recipe["data"]).calibrates_no_answer and len(self.data.validation):
            validation: Any = self.data.validation
            calibrate_no_answer(network, validation.to(self.device))
        self.progress = TrainingProgress(phase=len(self.phases), done=True, history=self.progress.history)
        self.save_checkpoint(None)

    def close(self) -> None:
        """Stop worker processes and close the log."""
        if self.prefetcher is not None:
            self.prefetcher.close()
        if self.logger is not None:
            self.logger.close()


def load_previous_run(folder: Path, recipe: Recipe, seed: int) -> Checkpoint | None:
    """Load the checkpoint of a stopped run of the same recipe, if there is one."""
    try:
        find_checkpoint(folder)
    except CheckpointError:
        return None
    previous = load_checkpoint(folder)
    if previous.recipe != recipe or previous.seed != seed:
        raise ConfigError(
            f"{folder} holds a run of another recipe or seed; give another --out, or --fresh to replace it"
        )
    return previous
