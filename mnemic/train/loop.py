"""The training loop, as a generator that yields after each step.

Its caller logs, evaluates, saves and stops.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemic.models.contract import unwrap_network
from mnemic.objectives import CarriedState, Loss
from mnemic.recipe import ConfigError, build
from mnemic.train.freeze import find_parts
from mnemic.train.optim.clipping import CLIPS
from mnemic.train.optim.optimizers import OPTIMIZERS
from mnemic.train.optim.parameter_groups import RATE_FACTOR, GradualUnfreezing, scale_rates
from mnemic.train.optim.schedules import SCHEDULES
from mnemic.train.optim.towards import StartingWeights

LossFunction = Callable[[nn.Module, Any, CarriedState | None], Loss]
# Called after each step with its batch, its number and its learning rate.
Companion = Callable[[Any, int, float], None]
EAGER_STEPS = 3  # before a CUDA graph is captured: kernels and allocator must be warm


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings of training; none of them changes the model."""

    epochs: int = 10
    steps: int = 0  # end a phase after so many steps; 0: after its epochs
    batch: int = 32
    accumulate: int = 1  # shards of a batch that run one after another, to save memory
    replace: bool = False  # sample with replacement instead of shuffling
    workers: int = 0  # processes that prefetch batches of long documents; 0: none
    segments: int = 0  # of the longest documents of this phase; 0: as in the data
    buckets: int = 1  # groups of examples by length: more of them mean less padding
    rate: float = 1e-3
    frozen: Sequence[str] = ()  # names of frozen modules: "encode.embeddings", …
    unfreeze: int = 0  # epochs until one more layer of the encoder learns, from the top; 0: all learn
    layer_rate: float = 1.0  # rate of each layer of the encoder, as a share of the next one's
    towards: float = 0.0  # decay towards the weights that the phase starts from
    reduce: Literal["mean", "sum"] = "mean"  # sum: the step grows with the batch
    optimizer: Mapping[str, Any] = field(default_factory=lambda: {"kind": "adamw"})
    schedule: Mapping[str, Any] = field(default_factory=lambda: {"kind": "constant"})
    clip: Mapping[str, Any] = field(default_factory=lambda: {"kind": "norm"})
    noise: float = 0.0  # standard deviation of noise added to the clipped gradient
    matmul: Literal["float32", "tf32", "bf16", "bf16-states"] = "float32"  # faster in this order, and less exact
    compile: bool = False  # use torch.compile on a GPU
    log: int = 0  # steps per row of the log; 0: one epoch
    validate: int = 5  # rows of the log per evaluation on the validation set; 0: never
    keep: Literal["last", "best"] = "last"  # best: the weights of the best evaluation
    patience: int = 0  # evaluations in a row without a better one that end a phase; 0: none
    save: int = 2000  # steps between checkpoints

    def __post_init__(self) -> None:
        minimums = dict.fromkeys(("epochs", "steps", "validate", "patience", "log", "segments", "workers"), 0)
        minimums |= {"unfreeze": 0}
        minimums |= dict.fromkeys(("batch", "buckets", "save", "accumulate"), 1)
        for name, minimum in minimums.items():
            if getattr(self, name) < minimum:
                raise ConfigError(f"train.{name} is at least {minimum}, not {getattr(self, name)}")
        if self.batch % self.accumulate:
            raise ConfigError(
                f"train.batch = {self.batch} has no {self.accumulate} equal parts "
                "(train.accumulate): make it a multiple"
            )
        if self.workers and self.accumulate > 1:
            raise ConfigError("train.workers make whole batches: leave out train.accumulate")
        if self.keep == "best" and not self.validate:
            raise ConfigError('train.keep = "best" needs evaluations: set train.validate to 1 or more')
        if self.patience and self.keep != "best":
            raise ConfigError(
                'train.patience waits for better evaluations: set train.keep = "best", or train.patience = 0'
            )
        if not 0 <= self.noise < inf:
            raise ConfigError(f"train.noise is a number from 0 on, not {self.noise}")
        if not 0 < self.layer_rate <= 1 or not 0 <= self.towards < inf:
            values = f"{self.layer_rate} and {self.towards}"
            raise ConfigError(f"train.layer_rate is from above 0 to 1 and train.towards from 0 on, not {values}")
        if not 0 < self.rate < inf:
            raise ConfigError(f"train.rate is a number above 0, not {self.rate}")

    def total_steps(self, steps_per_epoch: int) -> int:
        """The number of steps of a phase with so many steps per epoch."""
        num_steps = self.epochs * steps_per_epoch
        return min(num_steps, self.steps) if self.steps else num_steps

    def steps_per_row(self, steps_per_epoch: int) -> int:
        """The number of steps per row of the log."""
        return self.log or steps_per_epoch

    def evaluates_at(self, step: int, steps_per_epoch: int) -> bool:
        """Whether to evaluate on the validation set after this step of a phase."""
        interval, total_steps = self.validate * self.steps_per_row(steps_per_epoch), self.total_steps(steps_per_epoch)
        return interval > 0 and (step % interval == 0 or step == total_steps)


class Step(NamedTuple):
    """The result of one training step.

    Losses and norms are tensors, one number per run: reading them may wait for the GPU.
    """

    loss: Tensor  # mean over the targets of the batch
    norm: Tensor  # of all gradients, before clipping
    carried: CarriedState | None = None  # for the next step
    means: CarriedState | None = None  # of each loss by name, where there are several
    number: int = 0  # of steps taken in this phase
    rate: float = 0.0  # of learning


def train(
    network: nn.Module,
    compute_loss: LossFunction,
    batches: Iterable[Any],
    settings: TrainSettings,
    *,
    optimizer: torch.optim.Optimizer,
    steps_per_epoch: int,
    first_step: int = 0,
    carried: CarriedState | None = None,
    companions: Sequence[Companion] = (),
) -> Iterator[Step]:
    """Take one optimizer step per batch, from ``first_step`` to the end of the phase.

    ``companions`` learn from the same batches, each after the step of the network.

    The step of an optimizer built with ``cuda_graph`` is replayed as a CUDA graph, one per
    ``max_length`` of batches: that needs batches of equal shapes on the GPU, and carries no state.
    """
    total_steps = settings.total_steps(steps_per_epoch)
    schedule = build(SCHEDULES, settings.schedule)
    take_step: Any = OptimizerStep(network, compute_loss, optimizer, settings)
    if isinstance(optimizer.param_groups[0]["lr"], Tensor):
        take_step = GraphedStep(take_step)
    unfreezing = GradualUnfreezing(network, settings.unfreeze) if settings.unfreeze else None
    if unfreezing is not None and (isinstance(take_step, GraphedStep) or world_size() > 1):
        raise ConfigError("train.unfreeze is for one run at a time, in one process: leave it out")
    network.train()
    frozen_modules = [module for module in find_parts(network, settings.frozen) if isinstance(module, nn.Module)]
    for number, batch in enumerate(islice(batches, max(total_steps - first_step, 0)), start=first_step):
        rate = settings.rate * schedule(number, steps_per_epoch, total_steps)
        set_learning_rate(optimizer, rate)
        if unfreezing is not None:
            unfreezing.start_step(number, steps_per_epoch)
        for module in frozen_modules:
            module.eval()  # no dropout in frozen modules; an evaluation may have set it back
        step = take_step(batch, carried)._replace(number=number + 1, rate=rate)
        carried = step.carried
        for companion in companions:
            companion(batch, number, rate)
        yield step
    if unfreezing is not None:
        unfreezing.unfreeze()


def build_optimizer(
    network: nn.Module,
    settings: TrainSettings,
    *,
    objective: Any = None,
    stacked: bool = False,
    cuda_graph: bool = False,
) -> torch.optim.Optimizer:
    """Build the optimizer of a recipe for all weights that are not frozen.

    An ``objective`` that is a module has weights, too. ``stacked`` networks are optimized each by
    itself. With ``cuda_graph`` the learning rate is a tensor that a CUDA graph can read.
    """
    rate: Any = torch.zeros((), device="cuda") if cuda_graph else settings.rate
    parameters = [p for p in network.parameters() if p.requires_grad]
    if isinstance(objective, nn.Module):
        parameters += objective.parameters()
    optimizer = build(OPTIMIZERS, settings.optimizer, parameters=parameters, rate=rate, runs=stacked)
    if settings.layer_rate < 1:
        scale_rates(optimizer, network, settings.layer_rate)
    if settings.towards:
        StartingWeights(optimizer, settings.towards)
    return optimizer


def list_parameters(network: nn.Module, optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    """List the weights to train: the network's in its order, then others of the optimizer."""
    parameters = {id(p): p for p in network.parameters() if p.requires_grad}
    parameters |= {id(p): p for group in optimizer.param_groups for p in group["params"]}
    return list(parameters.values())


class OptimizerStep:
    """One step of training: loss, gradients, clipping, update."""

    def __init__(
        self, network: nn.Module, compute_loss: LossFunction, optimizer: torch.optim.Optimizer, settings: TrainSettings
    ) -> None:
        self.network, self.compute_loss, self.optimizer = network, compute_loss, optimizer
        self.parameters = list_parameters(network, optimizer)
        self.clip = build(CLIPS, settings.clip)
        self.use_mean, self.noise = settings.reduce == "mean", settings.noise
        self.num_shards = settings.accumulate

    def __call__(self, batch: Any, carried: CarriedState | None) -> Step:
        self.optimizer.zero_grad(set_to_none=True)
        backward = self.backward_batch if self.num_shards == 1 else self.backward_shards
        loss = backward(batch, carried)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = self.clip(gradients, runs=loss.total.dim() > 0)
        if self.noise:
            noise = [torch.randn_like(gradient) for gradient in gradients]
            torch._foreach_add_(gradients, noise, alpha=self.noise)
        self.optimizer.step()
        return Step(loss.total / loss.num_targets, norm, detach_state(loss.carried), loss.means)

    def backward_batch(self, batch: Any, carried: CarriedState | None) -> Loss:
        """Compute gradients and return the loss over all processes."""
        loss = self.compute_loss(self.network, batch, carried)
        total = sum_over_processes(loss.total.detach())
        num_targets = sum_over_processes(loss.num_targets).clamp(min=1)
        (loss.total * self.gradient_scale(num_targets)).sum().backward()
        return Loss(total, num_targets, loss.carried, loss.means)

    def backward_shards(self, batch: Any, carried: CarriedState | None) -> Loss:
        """Accumulate gradients shard by shard and return the loss over all processes.

        The number of targets to divide by is only known after the last shard.
        """
        network: Any = self.network
        totals, counts, means = [], [], list[CarriedState]()
        for number in range(self.num_shards):
            is_last = number == self.num_shards - 1  # only then processes exchange gradients
            with network.no_sync() if unwrap_network(network) is not network and not is_last else nullcontext():
                loss = self.compute_loss(network, batch.select_shard(number, self.num_shards), carried)
                loss.total.sum().backward()
            totals.append(loss.total.detach())
            counts.append(loss.num_targets)
            means.append({name: mean * loss.num_targets for name, mean in (loss.means or {}).items()})
            carried = detach_state(loss.carried)
        total = sum_over_processes(torch.stack(totals).sum(0))
        count = torch.stack(counts).sum(0)
        num_targets = sum_over_processes(count).clamp(min=1)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        torch._foreach_mul_(gradients, self.gradient_scale(num_targets))
        sums = {name: torch.stack([shard[name] for shard in means]).sum(0) for name in means[0]}
        return Loss(
            total, num_targets, carried, {name: weighted / count.clamp(min=1) for name, weighted in sums.items()}
        )

    def gradient_scale(self, num_targets: Tensor) -> Any:
        """Compute the factor of the gradients.

        Distributed training averages the gradients of the processes; here they must add up.
        """
        return world_size() / num_targets if self.use_mean else world_size()


class GraphedStep:
    """An optimizer step that is captured as a CUDA graph and then replayed.

    There is one recording per ``max_length`` of batches: a graph, the batch it reads, its result.
    """

    def __init__(self, step: OptimizerStep) -> None:
        self.step = step
        self.step_counts = Counter[Any]()
        self.recordings: dict[Any, tuple[torch.cuda.CUDAGraph, Any, Step]] = {}
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()  # shared: recordings never run concurrently

    def __call__(self, batch: Any, carried: CarriedState | None) -> Step:
        shape = getattr(batch, "max_length", None)
        self.step_counts[shape] += 1
        if self.step_counts[shape] <= EAGER_STEPS:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                result = self.step(batch, None)
            torch.cuda.current_stream().wait_stream(self.stream)
            return result
        if shape not in self.recordings:
            self.recordings[shape] = self.record_step(batch)
        graph, static_batch, result = self.recordings[shape]
        tree_map(lambda new, old: old.copy_(new) if isinstance(new, Tensor) else None, batch, static_batch)
        graph.replay()
        return Step(result.loss.clone(), result.norm.clone())

    def record_step(self, batch: Any) -> tuple[torch.cuda.CUDAGraph, Any, Step]:
        """Capture one step on a copy of the batch."""
        static_batch = tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, batch)
        self.step.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            result = self.step(static_batch, None)
        return graph, static_batch, result


def detach_state(carried: CarriedState | None) -> CarriedState | None:
    """Detach carried state from the graph: gradients do not cross steps."""
    return None if carried is None else {name: tensor.detach() for name, tensor in carried.items()}


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all parameter groups, in place if it is a tensor."""
    for group in optimizer.param_groups:
        group_rate = rate * group.get(RATE_FACTOR, 1.0)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group_rate)
        else:
            group["lr"] = group_rate


def world_size() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def sum_over_processes(number: Tensor) -> Tensor:
    """Sum a tensor over all processes."""
    if world_size() > 1:
        number = number.clone()
        dist.all_reduce(number)
    return number
