"""Carry the teachers of a run: networks for objectives, and tensors of a stopped run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import load_weights, weights_of
from mnemic.checkpoint.tensors import select_tensors
from mnemic.data import DATASETS
from mnemic.data.contract import Data
from mnemic.objectives import OBJECTIVES, CarriedState, Loss
from mnemic.objectives.distillation.soft_labels import select_teacher_batch
from mnemic.recipe import ConfigError, Recipe, build, kind_name, kind_of, merge_recipes
from mnemic.train.loop import Companion, OptimizerStep, build_optimizer, set_learning_rate
from mnemic.train.optim.optimizers import optimizer_tensors_of, restore_optimizer
from mnemic.train.phases import Phase
from mnemic.train.sampler import make_generator
from mnemic.train.teacher import TeacherSettings, build_learning_teacher, load_teachers, read_settings

# Of the names of a run's tensors.
DIGESTS, WEIGHTS_PREFIX, TEACHER_PREFIX = "teacher.digests", "teacher.weights.", "teacher."
CPU = torch.device("cpu")


class Teachers:
    """The teachers of a run: frozen ones, or one that learns beside the student.

    ``state`` is that of a stopped run: the weights and the optimizer of a teacher that learns, and
    the digests of frozen ones, which must be what they were.
    """

    def __init__(
        self, recipe: Recipe, data: Data, device: torch.device, seed: int, state: Mapping[str, Tensor] | None = None
    ) -> None:
        self.networks: tuple[nn.Module, ...] = ()
        self.learners: tuple[LearningTeacher, ...] = ()
        self.dataset: Any = None  # the training examples as teachers read them, if they read more
        settings, state = read_settings(recipe), state or {}
        if settings is None:
            return
        max_length = data.sizes["max_length"]
        if settings.data:
            self.dataset, max_length = read_teacher_data(settings, recipe, data)
        if not settings.learns:
            self.networks = load_teachers(recipe, data, device, max_length)
            self.digests = compute_digests(self.networks)
            check_digests(self.digests, settings.folders, state)
            return
        network = build_learning_teacher(settings, recipe, data, seed, max_length).to(device)
        if weights := select_tensors(state, WEIGHTS_PREFIX, CPU):
            load_weights(network, weights, Path("the teacher of the stopped run"))
        self.networks = (network,)
        self.learners = (LearningTeacher(network, settings.rate, seed, select_tensors(state, TEACHER_PREFIX, CPU)),)

    def extend(self, dataset: Any) -> Any:
        """Add to a training set what teachers read of its examples."""
        return dataset if self.dataset is None else replace(dataset, teacher=self.dataset)

    def state_dict(self, *, in_phase: bool) -> dict[str, Tensor]:
        """Return the tensors that a stopped run needs of its teachers, between phases or within."""
        if self.learners:
            return self.learners[0].state_dict(in_phase=in_phase)
        return {DIGESTS: self.digests} if self.networks else {}


class LearningTeacher:
    """A teacher that learns beside its student, from right labels (Xu et al. 2020).

    It has its own optimizer and its own dropout, so that nothing of the student changes it: neither
    the loss of the student's soft labels nor the clipping of its gradient. ``state`` has the state
    of the optimizer.
    """

    def __init__(self, network: nn.Module, rate: float, seed: int, state: Mapping[str, Tensor]) -> None:
        self.network, self.rate, self.seed, self.state = network, rate, seed, state
        self.optimizer: torch.optim.Optimizer | None = None  # of the current phase

    def start_phase(self, phase: Phase, load_batch: Callable[[Any], Any]) -> Companion:
        """Return what takes its steps; the first phase goes on where a stopped run was."""
        network, settings = self.network.train(), phase.settings
        device = next(network.parameters()).device
        objective = build(OBJECTIVES, find_hard_objective(phase.recipe["objective"]))
        self.optimizer = build_optimizer(network, settings)
        restore_optimizer(self.optimizer, self.state)
        self.state = {}

        def compute_loss(network: nn.Module, indices: Any, carried: CarriedState | None) -> Loss:
            batch = select_teacher_batch(load_batch(indices))
            with torch.autocast(device.type, torch.bfloat16, enabled=settings.matmul == "bf16"):
                loss: Loss = objective(network, batch, carried)
            return loss

        wrapped = DistributedDataParallel(network) if dist.is_initialized() else network
        take_step = OptimizerStep(wrapped, compute_loss, self.optimizer, settings)
        rate_ratio = self.rate / settings.rate if self.rate else 1.0

        def take_teacher_step(batch: Any, number: int, rate: float) -> None:
            assert self.optimizer is not None
            set_learning_rate(self.optimizer, rate * rate_ratio)
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
                torch.manual_seed(make_generator(self.seed, "teacher", phase.number, number).initial_seed())
                take_step(batch, None)

        return take_teacher_step

    def state_dict(self, *, in_phase: bool) -> dict[str, Tensor]:
        """Return the weights, and within a phase the state of the optimizer."""
        optimizer = optimizer_tensors_of(self.optimizer) if in_phase and self.optimizer is not None else {}
        weights = {f"{WEIGHTS_PREFIX}{name}": weight for name, weight in weights_of(self.network).items()}
        return weights | {f"{TEACHER_PREFIX}{name}": tensor for name, tensor in optimizer.items()}


def find_hard_objective(objective: Mapping[str, Any]) -> Mapping[str, Any]:
    """Find the objective of right labels inside those that learn from teachers."""
    while (wrapped := getattr(kind_of(OBJECTIVES, objective), "wraps", None)) is not None:
        objective = objective[wrapped]
    return objective


def read_teacher_data(settings: TeacherSettings, recipe: Recipe, data: Data) -> tuple[Any, int]:
    """Read the training examples as teachers read them, and their window's length.

    They are the student's, in the same order: only what is read of them may differ.
    """
    spec = merge_recipes(recipe["data"], settings.data)
    for kind in (recipe["data"], spec):
        if kind_of(DATASETS, kind).response != "classes":
            raise ConfigError(
                "teacher.data is for texts and pairs with classes or numbers, not for data of kind "
                f"{kind_name(kind)!r}: leave it out"
            )
    if "tokenizer" in settings.data:
        raise ConfigError(
            "teachers read the student's tokens: set data.tokenizer, and leave out teacher.data.tokenizer"
        )
    source = build(DATASETS, spec)
    dataset, examples = source.dataset("train", data.tokenizer, data.labels), data.train
    if len(dataset) != len(examples) or not torch.equal(dataset.targets, examples.targets):  # type: ignore[attr-defined]
        raise ConfigError(
            f"teacher.data has {len(dataset)} training examples, data has {len(examples)}, or they have other labels: "
            "both are the same rows, of which the teacher reads more, as with teacher.data.columns"
        )
    return dataset, source.length


def compute_digests(networks: Sequence[nn.Module]) -> Tensor:
    """Compute the SHA-256 of each network's weights, m 32."""
    rows = []
    for network in networks:
        digest = sha256()
        for name, weight in sorted(weights_of(network).items()):
            digest.update(name.encode())
            digest.update(weight.numpy().tobytes())
        rows.append(list(digest.digest()))
    return torch.tensor(rows, dtype=torch.uint8)


def check_digests(digests: Tensor, folders: Sequence[str], state: Mapping[str, Tensor]) -> None:
    """Raise an error if a frozen teacher has changed since the run stopped."""
    if DIGESTS not in state:
        return
    for folder, digest, previous in zip(folders, digests, state[DIGESTS], strict=True):
        if not torch.equal(digest, previous):
            raise CheckpointError(
                f"the teacher {folder} has changed since this run was stopped: restore it from a copy, or start "
                "anew with --fresh"
            )
