"""Train one network from its recipe: data, phases, log, checkpoints, resuming.

``fit`` is the caller that the training generator expects: it logs, validates, saves and stops.
It yields a ``Report`` a step and knows no screen.
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
from mnemic.checkpoint.folder import Checkpoint, Progress, check_foreign, load, locate, remove, save
from mnemic.checkpoint.lock import lock
from mnemic.data import DATASETS
from mnemic.data.contract import Data, Examples
from mnemic.data.long_context.batches import LongSet
from mnemic.evaluate.calibration import calibrate
from mnemic.evaluate.error_rate import look
from mnemic.models import check_model
from mnemic.objectives import Carried
from mnemic.recipe import ConfigError, Recipe, build
from mnemic.train.distributed import start_processes
from mnemic.train.early_stopping import Best, check_keep
from mnemic.train.freeze import fix
from mnemic.train.initialize import begun, check_kinds, check_phases, new_network, same_weights
from mnemic.train.logger import Log
from mnemic.train.loop import Step, optimiser_of
from mnemic.train.optim.optimizers import optimiser_state, restore_optimiser
from mnemic.train.phases import Phase, bare, draws_of, phases, train_phase
from mnemic.train.prefetch import Ahead
from mnemic.train.sampler import dice_of
from mnemic.train.tied import with_tied_words

__all__ = ["Report", "Run", "data_of", "fit", "new_network", "same_weights"]

CARRIED, PARTS = "carried.", "parts."  # before the names of what steps hand on, and of losses


class Report(NamedTuple):
    """Where a run stands, for whoever watches."""

    phase: int
    phases: int
    step: int
    total: int  # steps of this phase
    rate: float
    row: dict[str, Any] | None  # the log's new row, at the end of an epoch


def data_of(recipe: Recipe) -> Data:
    """The data set a recipe names."""
    for section in ("model", "data", "objective"):
        if section not in recipe:
            raise ConfigError(f"the recipe has no [{section}]")
    check_model(recipe["model"])
    check_kinds(recipe)
    return with_tied_words(build(DATASETS, recipe["data"]).data(), recipe)


def fit(
    recipe: Recipe, folder: str | Path, *, seed: int = 0, device: str = "auto",
    fresh: bool = False, looking: Callable[[int], None] = lambda count: None,
) -> Generator[Report, None, None]:  # fmt: skip
    """Train ``recipe`` into ``folder``, or go on with the run that stands there.

    A run that was stopped, even by a kill, goes on from its last checkpoint and ends with the
    same bits. Closing the generator saves first; an interrupt within a step does not, since
    the weights may then be half stepped. ``looking`` hears of each look at the validation set,
    which may take minutes, before it: how many examples are looked at.
    """
    place = start_processes(device)
    leads = not dist.is_initialized() or dist.get_rank() == 0
    with lock(Path(folder)) if leads else nullcontext():
        run = Run(recipe, Path(folder), seed, place, fresh)
        run.looking = looking
        try:
            for phase in run.plan[run.progress.phase :]:
                yield from run.train(phase)
            run.finish()
        finally:
            run.close()


class Run:
    """A run in the making: its network, its data and where it stands."""

    def __init__(
        self, recipe: Recipe, folder: Path, seed: int, device: torch.device, fresh: bool
    ) -> None:
        self.recipe, self.folder, self.seed, self.device = recipe, folder, seed, device
        self.plan = phases(recipe)
        self.carried: Carried | None = None
        self.sums = torch.zeros(2, dtype=torch.float64)  # of loss and norm, in this epoch so far
        self.parts: dict[str, Tensor] = {}  # the same of each loss by name, where there are several
        self.best = Best()
        self.looking: Callable[[int], None] = lambda count: None
        before = None if fresh else found(folder, recipe, seed)
        if before is None:
            check_foreign(folder)
        self.leads = not dist.is_initialized() or dist.get_rank() == 0
        if not self.leads:
            dist.barrier()  # the first process makes what is kept on disk, the others read it
        self.data = data_of(recipe)
        if self.leads and dist.is_initialized():
            dist.barrier()
        check_phases(self.plan, recipe, self.data.sizes)
        check_keep(self.plan, self.data)
        if before is None:
            self.network: nn.Module = begun(self.plan[0].recipe["model"], self.data.sizes, seed)
            self.progress = Progress()
            self.state: Mapping[str, Tensor] = {}
        else:
            self.network, self.progress, self.state = before.network, before.progress, before.state
            if (dict(before.sizes), before.labels) != (self.data.sizes, self.data.labels):
                raise CheckpointError(
                    f"the data is not what {folder} was trained on (sizes {self.data.sizes}, "
                    f"then {dict(before.sizes)}); give the same data, or --fresh to start anew"
                )
        if before is None and self.leads:  # from here on the folder is this run's
            remove(folder)
        self.log = Log(folder, self.progress.history) if self.leads else None
        long = self.data.train
        self.ahead = Ahead(long) if isinstance(long, LongSet) else None

    def train(self, phase: Phase) -> Iterator[Report]:
        """One phase, from where it stands to its end."""
        network = same_weights(phase.recipe["model"], self.data.sizes, self.network)
        self.network = network = network.to(self.device)
        fix(network, phase.settings.fixed)
        stories = self.examples(phase)
        pools = [torch.arange(len(stories))]
        trained: nn.Module = DistributedDataParallel(network) if dist.is_initialized() else network
        optimiser = optimiser_of(trained, phase.settings)
        draws = draws_of(phase, trained, stories, pools, [self.seed])
        self.restore(optimiser)
        start, total = self.progress.step, phase.settings.total(draws.epoch)
        steps = train_phase(
            phase, trained, stories, draws,
            optimiser=optimiser, start=start, carried=self.carried, ahead=self.ahead,
        )  # fmt: skip
        self.began, patience = time.monotonic(), phase.settings.patience
        try:
            while not self.best.stale(patience) and (step := next(steps, None)) is not None:
                self.carried = step.carried
                row = self.row(phase, step, draws.epoch, total)
                self.progress = self.after(phase, step.number, row)
                if step.number % phase.settings.save == 0:
                    self.save(optimiser)
                yield Report(phase.number, len(self.plan), step.number, total, step.rate, row)
        except GeneratorExit:
            self.save(optimiser)
            raise
        self.best.put_back(network)
        self.progress = Progress(phase=phase.number + 1, history=self.progress.history)
        self.save(None)

    def examples(self, phase: Phase) -> Examples:
        """What the phase trains on: documents as long as it says, where they can be of any."""
        own = self.data.train
        if phase.settings.segments and isinstance(own, LongSet):
            own = own.upto(phase.settings.segments)
        return own.to(self.device)

    def row(self, phase: Phase, step: Step, epoch: int, total: int) -> dict[str, Any] | None:
        """Add a step to its row of the log, an epoch or less; the row if it ends with it."""
        self.sums = self.sums + torch.stack([step.loss, step.norm])
        for name, part in (step.parts or {}).items():
            self.parts[name] = self.parts.get(name, torch.zeros_like(part)) + part
        stride = phase.settings.stride(epoch)
        if step.number % stride and step.number != total:
            return None
        number = -(-step.number // epoch)
        count = 1 + (step.number - 1) % stride
        loss, norm = (self.sums / count).tolist()
        if not isfinite(loss):
            raise ConfigError(
                f"the loss is {loss} in epoch {number} of phase {phase.number + 1}: training has "
                "come apart; lower train.rate or train.clip (--fresh starts anew)"
            )
        earlier = [row["steps"] for row in self.progress.history if row["phase"] <= phase.number]
        looked = phase.settings.looks(step.number, epoch)
        validation, figures = self.validate() if looked else (None, {})
        if validation is not None and phase.settings.keep == "best":
            self.best.offer(bare(self.network), torch.tensor(validation))
        now = time.monotonic()
        row = {
            "phase": phase.number + 1,
            "epoch": number,
            "step": step.number,
            "steps": step.number + (earlier[-1] if earlier else 0),
            "loss": loss,
            "norm": norm,
            "rate": step.rate,
            "validation": validation,
            "seconds": round(now - self.began, 2),
        } | ({"figures": figures} if figures else {})
        if self.parts:
            row["losses"] = {name: float(part) / count for name, part in self.parts.items()}
        self.sums, self.began, self.parts = torch.zeros_like(self.sums), now, {}
        return row

    def after(self, phase: Phase, step: int, row: dict[str, Any] | None) -> Progress:
        history = self.progress.history
        if row is not None:
            history = [*history, row]
            if self.log is not None:
                self.log.add(row)
        return Progress(phase=phase.number, step=step, history=history)

    def validate(self) -> tuple[float | None, dict[str, float]]:
        """The error in percent on what was held back of the training set, and its figures."""
        if not len(self.data.validation):
            return None, {}
        self.looking(len(self.data.validation))
        return look(self.network, self.data.validation.to(self.device))

    def restore(self, optimiser: torch.optim.Optimizer) -> None:
        """Go on as saved: optimiser, sums, what is carried, best weights, dice of dropout."""
        restore_optimiser(optimiser, self.state)
        self.carried = named_by(CARRIED, self.state, self.device) or None
        self.parts = named_by(PARTS, self.state, self.device)
        self.best = Best.restored(self.state, self.device)
        self.sums = self.state.get("sums", torch.zeros_like(self.sums)).to(self.device)
        if "dice" in self.state:
            torch.set_rng_state(self.state["dice"])
        else:
            torch.manual_seed(dice_of(self.seed, "dropout").initial_seed())
        self.state = {}

    def save(self, optimiser: torch.optim.Optimizer | None) -> None:
        if not self.leads:
            return
        state: dict[str, Tensor] = {}
        if optimiser is not None:  # in the middle of a phase
            state = {"dice": torch.get_rng_state(), "sums": self.sums.cpu()}
            state |= optimiser_state(optimiser) | self.best.state()
            state |= {f"{CARRIED}{name}": part.cpu() for name, part in (self.carried or {}).items()}
            state |= {f"{PARTS}{name}": part.cpu() for name, part in self.parts.items()}
        checkpoint = Checkpoint(
            recipe=self.recipe,
            seed=self.seed,
            sizes=self.data.sizes,
            tokenizer=self.data.words,
            labels=self.data.labels,
            network=bare(self.network),
            progress=self.progress,
            state=state,
        )
        save(self.folder / "checkpoint", checkpoint)

    def finish(self) -> None:
        """The last save holds the recipe's own model, not the last phase's.

        A network that finds and reads is calibrated by what was held back, once.
        """
        if self.progress.done:
            return
        self.network = same_weights(self.recipe["model"], self.data.sizes, self.network)
        if self.recipe["data"]["kind"] == "reading" and len(self.data.validation):
            held: Any = self.data.validation
            calibrate(self.network.to(self.device), held.to(self.device))
        self.progress = Progress(phase=len(self.plan), done=True, history=self.progress.history)
        self.save(None)

    def close(self) -> None:
        if self.ahead is not None:
            self.ahead.close()
        if self.log is not None:
            self.log.close()


def named_by(start: str, state: Mapping[str, Tensor], device: torch.device) -> Carried:
    """What a checkpoint holds of the state whose names begin so."""
    own = {name: part for name, part in state.items() if name.startswith(start)}
    return {name.removeprefix(start): part.to(device) for name, part in own.items()}


def found(folder: Path, recipe: Recipe, seed: int) -> Checkpoint | None:
    """The checkpoint of a stopped run of the same recipe, if there is one."""
    try:
        locate(folder)
    except CheckpointError:
        return None
    before = load(folder)
    if before.recipe != recipe or before.seed != seed:
        raise ConfigError(
            f"{folder} holds a run of another recipe or seed; give another --out, or --fresh to "
            "replace it"
        )
    return before
