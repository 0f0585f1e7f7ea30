"""The scale of a table of attention: sizes, data, and the training of each column."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mnemic.encode.stacks.block import Norm
from mnemic.recipe import ConfigError, construct, did_you_mean, join_words, override, parse_assignment

SCALES_FILE = Path(__file__).with_name("scales.toml")


@dataclass(frozen=True, kw_only=True)
class SourceSize:
    """How many texts of a source's files are read; 0: all."""

    train: int = 0
    test: int = 0
    vocab: int = 8000

    def __post_init__(self) -> None:
        if min(self.train, self.test) < 0 or self.vocab < 1:
            raise ConfigError("sources have train and test from 0 on and a vocab from 1 on")


@dataclass(frozen=True, kw_only=True)
class ColumnSettings:
    """The sections of a column's recipe, its seeds, and the most tokens of a text."""

    seeds: int = 1
    length: int = 0  # 0: data.length
    data: Mapping[str, Any]
    objective: Mapping[str, Any] | None = None
    train: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.max_tokens < 1:
            raise ConfigError("a column has seeds ≥ 1, and a length or data.length ≥ 1")

    @property
    def max_tokens(self) -> int:
        """The most tokens that a network reads at once."""
        return int(self.length or self.data.get("length", 0))


@dataclass(frozen=True, kw_only=True)
class CostSettings:
    """How time and memory are measured: lengths, repeats and budgets of one pass."""

    width: int
    depth: int
    lengths: Sequence[int]
    repeats: int = 3
    max_seconds: float = 8.0  # of a pass, as predicted from the length before
    max_gb: float = 4.0  # kept for the backward pass, as predicted from the length before
    depths: Sequence[int] = (2, 8)  # that memory is compared at
    depth_length: int = 2048

    def __post_init__(self) -> None:
        if not self.lengths or list(self.lengths) != sorted(set(self.lengths)) or min(self.lengths) < 1:
            raise ConfigError(f"cost.lengths rise from 1 or more, not {list(self.lengths)}")
        if min(self.width, self.depth, self.repeats, self.depth_length, *self.depths) < 1:
            raise ConfigError("cost has a width, depth, repeats, depths and a depth_length from 1 on")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The sizes of all networks, the texts of each source, and all columns."""

    width: int
    depth: int
    heads: int
    norm: Norm
    dropout: float
    sources: Mapping[str, Any]
    columns: Mapping[str, Any]
    cost: Mapping[str, Any]

    def source_size(self, name: str) -> SourceSize:
        """Return how many texts of a source are read."""
        return construct(SourceSize, self.sources.get(name, {}), name=f"sources.{name}")

    def column_settings(self, name: str) -> ColumnSettings:
        """Return the settings of a column."""
        return construct(ColumnSettings, self.columns.get(name, {}), name=f"columns.{name}")

    @property
    def cost_settings(self) -> CostSettings:
        """Return how time and memory are measured."""
        return construct(CostSettings, self.cost, name="cost")

    def describe(self) -> dict[str, Any]:
        """Return all settings, as ``scales.toml`` has them."""
        return asdict(self)


def load_scale(name: str, sets: Sequence[str] = ()) -> Scale:
    """Load a scale with overrides such as ``columns.imdb.train.epochs=2``."""
    scales = tomllib.loads(SCALES_FILE.read_text(encoding="utf-8"))
    if name not in scales:
        raise ConfigError(f"there is no scale {name!r}{did_you_mean(name, scales)}; scales: {join_words(scales)}")
    spec = scales[name]
    for text in sets:
        spec = override(spec, *parse_assignment(text))
    scale = construct(Scale, spec, name=f"scale {name}")
    for known, table, part in (
        (scales[name]["columns"], scale.columns, "columns"),
        (scales[name]["sources"], scale.sources, "sources"),
    ):
        if unknown := [key for key in table if key not in known]:
            hint = did_you_mean(unknown[0], known)
            raise ConfigError(f"{part} has no {unknown[0]!r}{hint}; it has {join_words(known)}")
    _ = scale.cost_settings, *map(scale.column_settings, scale.columns), *map(scale.source_size, scale.sources)
    return scale
