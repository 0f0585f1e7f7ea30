"""Training is a generator: it steps and yields; its caller logs, evaluates, saves and stops."""

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
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_map

from mnemic.models.ensemble import Many
from mnemic.objectives import Carried, Loss
from mnemic.recipe import ConfigError, build
from mnemic.train.freeze import fixed_parts
from mnemic.train.optim.clipping import CLIPS
from mnemic.train.optim.optimizers import OPTIMISERS
from mnemic.train.optim.schedules import SCHEDULES

LossOf = Callable[[nn.Module, Any, Carried | None], Loss]
EAGER = 3  # steps taken before a CUDA graph is captured: kernels and allocator must be warm


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How to train; nothing here changes what the model is."""

    epochs: int = 10
    steps: int = 0  # ends a phase early; 0: after its epochs
    batch: int = 32
    accumulate: int = 1  # parts of a batch that are read one after another, to save memory
    replace: bool = False  # draw each example anew instead of shuffling
    workers: int = 0  # processes that make batches of long documents ahead; 0: none
    segments: int = 0  # of the longest documents of this phase; 0: as long as the data says
    buckets: int = 1  # kinds of batches by length: the more, the less work goes into padding
    rate: float = 1e-3
    fixed: Sequence[str] = ()  # parts whose weights stay as they are: "encode.embeddings", …
    reduce: Literal["mean", "sum"] = "mean"  # sum: the step grows with the batch
    optimiser: Mapping[str, Any] = field(default_factory=lambda: {"kind": "adamw"})
    schedule: Mapping[str, Any] = field(default_factory=lambda: {"kind": "constant"})
    clip: Mapping[str, Any] = field(default_factory=lambda: {"kind": "norm"})
    noise: float = 0.0  # deviation of what is added to the clipped gradient
    matmul: Literal["float32", "tf32", "bf16"] = "float32"  # faster in this order, and less exact
    compile: bool = False  # on a GPU: let torch.compile fuse what the network computes
    log: int = 0  # steps between rows of the log; 0: an epoch
    validate: int = 5  # rows of the log between looks at the validation set; 0: never
    keep: Literal["last", "best"] = "last"  # best: the weights that did best in those looks
    patience: int = 0  # looks in a row that were no better, after which a phase ends; 0: never
    save: int = 2000  # steps between checkpoints

    def __post_init__(self) -> None:
        least = {"epochs": 0, "steps": 0, "batch": 1, "buckets": 1, "validate": 0}
        least |= {"patience": 0, "save": 1, "accumulate": 1, "log": 0, "segments": 0}
        least["workers"] = 0
        for name, number in least.items():
            if getattr(self, name) < number:
                raise ConfigError(f"train.{name} is at least {number}, not {getattr(self, name)}")
        if self.batch % self.accumulate:
            raise ConfigError(
                f"train.batch = {self.batch} has no {self.accumulate} equal parts "
                "(train.accumulate): make it a multiple"
            )
        if self.workers and self.accumulate > 1:
            raise ConfigError("train.workers make whole batches: leave out train.accumulate")
        if self.keep == "best" and not self.validate:
            raise ConfigError('train.keep = "best" needs looks: set train.validate to 1 or more')
        if self.patience and self.keep != "best":
            raise ConfigError(
                'train.patience waits for better looks: set train.keep = "best", or '
                "train.patience = 0"
            )
        if not 0 <= self.noise < inf:
            raise ConfigError(f"train.noise is a number from 0 on, not {self.noise}")
        if not 0 < self.rate < inf:
            raise ConfigError(f"train.rate is a number above 0, not {self.rate}")

    def total(self, epoch: int) -> int:
        """How many steps a phase has, if an epoch has ``epoch``."""
        whole = self.epochs * epoch
        return min(whole, self.steps) if self.steps else whole

    def stride(self, epoch: int) -> int:
        """How many steps a row of the log tells of, if an epoch has ``epoch``."""
        return self.log or epoch

    def looks(self, step: int, epoch: int) -> bool:
        """Whether the validation set is looked at after this step of a phase."""
        if not self.validate:
            return False
        return step % (self.validate * self.stride(epoch)) == 0 or step == self.total(epoch)


class Step(NamedTuple):
    """What one step did. Losses and norms are tensors, one number a run: reading them may wait."""

    number: int  # steps taken in this phase
    loss: Tensor  # mean over the targets of the batch
    norm: Tensor  # of the whole gradient, before clipping
    rate: float
    carried: Carried | None  # what the next step would be handed
    parts: Carried | None = None  # the mean of each loss by name, where there are several


class Stepped(NamedTuple):
    """What an optimiser step gives back."""

    loss: Tensor
    norm: Tensor  # of the gradient
    carried: Carried | None
    parts: Carried | None = None


def train(
    network: nn.Module,
    loss_of: LossOf,
    batches: Iterable[Any],
    settings: TrainSettings,
    *,
    optimiser: torch.optim.Optimizer,
    epoch: int,
    start: int = 0,
    carried: Carried | None = None,
) -> Iterator[Step]:
    """Take one optimiser step a batch, from step ``start`` to the end of the phase.

    ``epoch`` is the number of steps an epoch has. An optimiser made with ``graph`` has its step
    replayed as a CUDA graph, one for each ``most`` of a batch: that needs batches of equal shapes
    on the GPU, and carries no state.
    """
    total = settings.total(epoch)
    schedule = build(SCHEDULES, settings.schedule)
    advance: Any = Advance(network, loss_of, optimiser, settings)
    if isinstance(optimiser.param_groups[0]["lr"], Tensor):
        advance = Graphed(advance, after=EAGER, key=lambda batch: getattr(batch, "most", None))
    network.train()
    fixed = fixed_parts(network, settings.fixed)
    for number, batch in enumerate(islice(batches, max(total - start, 0)), start=start):
        now = settings.rate * schedule(number, epoch, total)
        set_rate(optimiser, now)
        for part in fixed:
            part.eval()  # what does not learn has no dropout; whoever looked may have set it back
        loss, norm, carried, parts = advance(batch, carried)
        yield Step(number + 1, loss, norm, now, carried, parts)


def optimiser_of(
    network: nn.Module, settings: TrainSettings, *, graph: bool = False
) -> torch.optim.Optimizer:
    """The optimiser a recipe names, of all weights that are not fixed.

    With ``graph`` its rate is a tensor that a graph can read.
    """
    rate: Any = torch.zeros((), device="cuda") if graph else settings.rate
    learnt = [p for p in network.parameters() if p.requires_grad]
    given = {"parameters": learnt, "rate": rate, "runs": isinstance(network, Many)}
    return build(OPTIMISERS, settings.optimiser, **given)


class Advance:
    """One optimiser step: loss, gradient, clipping, update."""

    def __init__(
        self,
        network: nn.Module,
        loss_of: LossOf,
        optimiser: torch.optim.Optimizer,
        settings: TrainSettings,
    ) -> None:
        self.network, self.loss_of, self.optimiser = network, loss_of, optimiser
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.clip = build(CLIPS, settings.clip)
        self.mean, self.noise = settings.reduce == "mean", settings.noise
        self.parts = settings.accumulate

    def __call__(self, batch: Any, carried: Carried | None) -> Stepped:
        self.optimiser.zero_grad(set_to_none=True)
        way = self.read_at_once if self.parts == 1 else self.read_in_parts
        read = way(batch, carried)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = self.clip(gradients, runs=read.total.dim() > 0)
        if self.noise:
            noise = [torch.randn_like(gradient) for gradient in gradients]
            torch._foreach_add_(gradients, noise, alpha=self.noise)
        self.optimiser.step()
        return Stepped(read.total / read.targets, norm, cut(read.carried), read.parts)

    def read_at_once(self, batch: Any, carried: Carried | None) -> Loss:
        """The loss over all processes; leaves gradients."""
        loss = self.loss_of(self.network, batch, carried)
        total, count = summed(loss.total.detach()), summed(loss.targets).clamp(min=1)
        (loss.total * self.scale(count)).sum().backward()
        return Loss(total, count, loss.carried, loss.parts)

    def read_in_parts(self, batch: Any, carried: Carried | None) -> Loss:
        """The same, part by part: only when all are read it is known what to divide by."""
        totals, counts = [], []
        for number in range(self.parts):
            last = number == self.parts - 1
            with nullcontext() if last else apart(self.network):
                part = batch.part(number, self.parts)
                loss = self.loss_of(self.network, part, carried)
                loss.total.sum().backward()
            totals.append(loss.total.detach())
            counts.append(loss.targets)
            carried = cut(loss.carried)
        total = summed(torch.stack(totals).sum(0))
        count = summed(torch.stack(counts).sum(0)).clamp(min=1)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        torch._foreach_mul_(gradients, self.scale(count))
        return Loss(total, count, carried)

    def scale(self, count: Tensor) -> Any:
        """Parallel training averages the processes' gradients; here they must add up."""
        return processes() / count if self.mean else processes()


def apart(network: nn.Module) -> Any:
    """Within it, processes that train together do not tell each other their gradients."""
    if isinstance(network, DistributedDataParallel):
        return network.no_sync()
    return nullcontext()


class Graphed:
    """A step that is recorded once and then replayed by the GPU alone, without Python.

    Batches of each shape have a recording of their own; ``key(batch)`` tells them apart.
    """

    def __init__(self, advance: Advance, *, after: int, key: Callable[[Any], Any]) -> None:
        self.advance, self.after, self.key = advance, after, key
        self.taken = Counter[Any]()
        self.recorded: dict[Any, Recorded] = {}
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()  # recordings never run at once: one memory

    def __call__(self, batch: Any, carried: Carried | None) -> Stepped:
        shape = self.key(batch)
        self.taken[shape] += 1
        if self.taken[shape] <= self.after:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                result = self.advance(batch, None)
            torch.cuda.current_stream().wait_stream(self.stream)
            return result
        if shape not in self.recorded:
            self.recorded[shape] = self.record(batch)
        graph, kept, loss, norm = self.recorded[shape]
        tree_map(lambda new, old: old.copy_(new) if isinstance(new, Tensor) else None, batch, kept)
        graph.replay()
        return Stepped(loss.clone(), norm.clone(), None)

    def record(self, batch: Any) -> "Recorded":
        kept = tree_map(lambda part: part.clone() if isinstance(part, Tensor) else part, batch)
        self.advance.optimiser.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            loss, norm, *_ = self.advance(kept, None)
        return Recorded(graph, kept, loss, norm)


class Recorded(NamedTuple):
    """A recorded step, the batch it reads and what it writes."""

    graph: torch.cuda.CUDAGraph
    batch: Any
    loss: Tensor
    norm: Tensor


def cut(carried: Carried | None) -> Carried | None:
    """What is carried, without the graph that made it: gradients end at a step's border."""
    return None if carried is None else {name: part.detach() for name, part in carried.items()}


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def processes() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def summed(number: Tensor) -> Tensor:
    """The sum over all processes."""
    if processes() > 1:
        number = number.clone()
        dist.all_reduce(number)
    return number
