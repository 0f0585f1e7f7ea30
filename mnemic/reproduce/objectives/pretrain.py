"""Pre-train a row of the table of objectives, and keep its network at each budget.

One run has all budgets: a number of tokens, and a number of seconds.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mnemic.checkpoint.atomic_files import write_json
from mnemic.checkpoint.folder import Checkpoint, TrainingProgress, load_checkpoint, save_checkpoint, weights_of
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.files import read_json
from mnemic.recipe import ConfigError, Recipe
from mnemic.reproduce.objectives.rows import HELD_OUT_FORMAT, ObjectiveRow, name_sequences
from mnemic.reproduce.objectives.scale import ObjectivesScale
from mnemic.reproduce.objectives.sequences import load_corpus, measure_mean_length
from mnemic.reproduce.rows import describe_hardware
from mnemic.train.initialize import initialize_network
from mnemic.train.run import StepReport, fit

BUDGETS = ("tokens", "seconds")
SEED = 0  # of all pre-training
WARMUP_STEPS = 10  # of each start, which may compile: they count as much as the later ones
CLOCK_STEPS = 20  # between looks at the clock, which wait for the GPU
PAIR_FORMATS = ("segment-pair", "sentence-pair", "segment-order")
PAIR_METRICS = {"segment-pair": "next sentence", "segment-order": "order"}  # where two texts are compared


class Snapshot(NamedTuple):
    """A network that is kept at a budget."""

    budget: str
    step: int
    tokens: float
    seconds: float  # of training
    metrics: dict[str, float]  # on held-out sequences
    weights: int
    hardware: str


class TrainingClock:
    """The seconds of a run's steps; its file lets a stopped run go on."""

    def __init__(self, path: Path, device: str) -> None:
        self.path, self.on_gpu = path, torch.device(device).type == "cuda"
        stored = read_json(path) if path.is_file() else {}
        self.seconds_by_step = {int(step): float(seconds) for step, seconds in stored.items()}
        self.first_step, self.base, self.started = 0, 0.0, 0.0

    def start(self, step: int) -> None:
        """Go on after ``step``."""
        self.first_step, self.base = step, self.seconds_by_step.get(step, 0.0)

    def read(self, step: int) -> float:
        """Return the seconds of all steps up to ``step``, the last one taken.

        It has to be called after the last step of the warm-up, too.
        """
        count = step - self.first_step
        if count == WARMUP_STEPS:
            self.started = self.now()
        if count <= WARMUP_STEPS:
            return self.base
        return self.base + (self.now() - self.started) * count / (count - WARMUP_STEPS)

    def now(self) -> float:
        """Return the time when the device has done all its work."""
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.monotonic()

    def save(self, step: int) -> None:
        """Save the seconds of the steps so far."""
        self.seconds_by_step[step] = self.read(step)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, {str(number): seconds for number, seconds in self.seconds_by_step.items()})


class Pretraining(NamedTuple):
    """The pre-training of a row: its recipe, its folders, its scale and its device."""

    row: ObjectiveRow
    recipe: Recipe
    root: Path  # of all sequences
    run: Path
    scale: ObjectivesScale
    device: str

    @property
    def step_tokens(self) -> float:
        """The mean number of tokens of a step."""
        batch = self.recipe["train"]["batch"]
        return float(batch) * measure_mean_length(self.root / self.row.sequences)

    @property
    def token_steps(self) -> int:
        """The steps of the budget of tokens."""
        return self.row.count_steps(self.scale.token_steps)

    @property
    def save_steps(self) -> int:
        """The steps between checkpoints."""
        return self.row.count_steps(self.scale.save_steps)

    def has_reached(self, budget: str, step: int, seconds: float) -> bool:
        """Whether a step is at a budget, or beyond it."""
        return step >= self.token_steps if budget == "tokens" else seconds >= self.scale.seconds

    def is_checked(self, step: int) -> bool:
        """Whether the clock is read after a step."""
        clock_steps = self.row.count_steps(CLOCK_STEPS)
        return step % clock_steps == 0 or step % self.save_steps == 0 or step == self.token_steps


def pretrain(work: Pretraining, snapshots: Mapping[str, Path]) -> Iterator[StepReport | Snapshot]:
    """Train until all budgets of ``snapshots`` are reached; save a network to each path.

    Yields steps, and each snapshot after it is saved.
    """
    if not work.row.trained:
        yield from keep_untrained(work, snapshots)
        return
    missing = list(snapshots)
    clock = TrainingClock(work.run.with_name(f"{work.run.name}.clock.json"), work.device)
    while missing:
        reached = missing  # if the longest run that a scale allows has ended
        run = fit(work.recipe, work.run, seed=SEED, device=work.device)
        with closing(run), closing(time_steps(run, clock, work)) as steps:
            for report, seconds in steps:
                yield report
                reached_now = [budget for budget in missing if work.has_reached(budget, report.step, seconds)]
                if reached_now and work.is_checked(report.step):
                    reached = reached_now
                    break
        checkpoint = load_checkpoint(work.run)
        progress = checkpoint.progress
        step = progress.history[-1]["step"] if progress.done else progress.step
        for budget in reached:
            yield save_snapshot(checkpoint, work, snapshots[budget], budget, step, clock.seconds_by_step[step])
        missing = [budget for budget in missing if budget not in reached]


def time_steps(
    steps: Iterator[StepReport], clock: TrainingClock, work: Pretraining
) -> Generator[tuple[StepReport, float], None, None]:
    """Yield steps with the seconds so far; save the clock with each checkpoint."""
    step, seconds = -1, 0.0
    try:
        for report in steps:
            if step < 0:
                clock.start(report.step - 1)
            step = report.step
            if work.is_checked(step) or step - clock.first_step == WARMUP_STEPS:
                seconds = clock.read(step)
            if step % work.save_steps == 0:
                clock.save(step)
            yield report, seconds
    finally:
        if step >= 0:
            clock.save(step)


def keep_untrained(work: Pretraining, snapshots: Mapping[str, Path]) -> Iterator[Snapshot]:
    """Save the network of a recipe as it is built."""
    data = load_corpus(work.row.format, work.scale.length, work.root / work.row.sequences).load()
    checkpoint = Checkpoint(
        recipe=work.recipe,
        seed=SEED,
        sizes=data.sizes,
        tokenizer=data.tokenizer,
        network=initialize_network(work.recipe["model"], data.sizes, SEED),
        progress=TrainingProgress(),
        state={},
    )
    for budget, path in snapshots.items():
        yield save_snapshot(checkpoint, work, path, budget, 0, 0.0)


def save_snapshot(
    checkpoint: Checkpoint, work: Pretraining, path: Path, budget: str, step: int, seconds: float
) -> Snapshot:
    """Measure a network on held-out sequences, and save it without the state of its training."""
    metrics = measure_held_out(checkpoint, work)
    if not isfinite(metrics["loss"]):
        raise ConfigError(f"the held-out loss is {metrics['loss']}: training diverged; lower train.rate in pretraining")
    path.parent.mkdir(parents=True, exist_ok=True)
    progress = TrainingProgress(phase=1, done=True, history=checkpoint.progress.history)
    checkpoint.network.cpu()
    save_checkpoint(path / "checkpoint", replace(checkpoint, state={}, progress=progress))
    num_weights = sum(weight.numel() for weight in weights_of(checkpoint.network).values())
    hardware = describe_hardware(torch.device(work.device))
    return Snapshot(budget, step, step * work.step_tokens, seconds, metrics, num_weights, hardware)


def measure_held_out(checkpoint: Checkpoint, work: Pretraining) -> dict[str, float]:
    """Measure a network on held-out sentences, and one of pairs on pairs, too."""
    network: Any = checkpoint.network.to(work.device)
    metrics = compute_on(network, checkpoint, work, HELD_OUT_FORMAT)
    if work.row.format in PAIR_FORMATS:
        for format in find_formats(work.root, list(PAIR_METRICS)):
            follows = compute_on(network, checkpoint, work, format).get("follows")
            metrics |= {} if follows is None else {PAIR_METRICS[format]: follows}
    return {name: value for name, value in metrics.items() if name != "follows"}


def compute_on(network: Any, checkpoint: Checkpoint, work: Pretraining, format: str) -> dict[str, float]:
    """Compute the metrics of a network on the held-out sequences of a format."""
    data = load_corpus(format, work.scale.length, work.root / name_sequences(format))
    return compute_metrics(network, data.dataset("validation", checkpoint.tokenizer).to(work.device))


def find_formats(root: Path, formats: Sequence[str]) -> list[str]:
    """Find the formats whose sequences are there."""
    return [format for format in formats if (root / name_sequences(format)).is_dir()]
