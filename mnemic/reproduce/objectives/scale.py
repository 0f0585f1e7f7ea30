"""The scale of a table of objectives: sizes, budgets of pre-training, and fine-tuning."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from mnemic.recipe import ConfigError, construct, did_you_mean, join_words, override, parse_assignment
from mnemic.reproduce.student_tasks import TASKS

SCALES_FILE = Path(__file__).with_name("scales.toml")
MAX_SAVE_STEPS = 2000  # between checkpoints
BATCH_MULTIPLE = 8  # of sequences


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """How often a task is fine-tuned, and the settings of its recipe."""

    seeds: int = 1
    sets: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"a task has seeds ≥ 1, not {self.seeds}")


@dataclass(frozen=True, kw_only=True)
class ObjectivesScale:
    """The sizes and budgets of all rows; ``scales.toml`` says what the keys mean."""

    width: int
    depth: int
    heads: int
    dropout: float
    vocab: int
    length: int
    tokens: int
    seconds: float
    batch_tokens: int
    warmup: int
    pretraining: Sequence[str] = ()
    tasks: Mapping[str, Any]

    def __post_init__(self) -> None:
        if min(self.tokens, self.batch_tokens, self.length, self.vocab) < 1 or self.seconds <= 0 or self.warmup < 0:
            raise ConfigError("a scale has tokens, seconds, batch_tokens, length and vocab above 0")

    @property
    def save_steps(self) -> int:
        """The steps between checkpoints, one of which is at equal tokens."""
        steps = self.tokens / self.batch_tokens
        return ceil(steps / ceil(steps / MAX_SAVE_STEPS))

    @property
    def token_steps(self) -> int:
        """The steps of the budget of tokens."""
        return self.save_steps * ceil(self.tokens / self.batch_tokens / self.save_steps)

    def count_sequences(self, mean_length: float) -> int:
        """Count the sequences of a batch, of so many tokens on average."""
        return max(round(self.batch_tokens / mean_length / BATCH_MULTIPLE), 1) * BATCH_MULTIPLE

    def task_settings(self, name: str) -> TaskSettings:
        """Return the settings of a task."""
        return construct(TaskSettings, self.tasks[name], name=f"tasks.{name}")

    def describe(self) -> dict[str, Any]:
        """Return all settings, as ``scales.toml`` has them."""
        return asdict(self)


def load_scale(name: str, sets: Sequence[str] = ()) -> ObjectivesScale:
    """Load a scale with overrides such as ``tasks.sst2.seeds=1``."""
    scales = tomllib.loads(SCALES_FILE.read_text(encoding="utf-8"))
    if name not in scales:
        raise ConfigError(f"there is no scale {name!r}{did_you_mean(name, scales)}; scales: {join_words(scales)}")
    spec = scales[name]
    for text in sets:
        spec = override(spec, *parse_assignment(text))
    scale = construct(ObjectivesScale, spec, name=f"scale {name}")
    if unknown := [task for task in scale.tasks if task not in TASKS]:
        raise ConfigError(
            f"there is no task {unknown[0]!r}{did_you_mean(unknown[0], TASKS)}; tasks: {join_words(TASKS)}"
        )
    for task in scale.tasks:
        scale.task_settings(task)
    return scale
