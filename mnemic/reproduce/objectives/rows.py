"""The rows of the table of objectives, and the recipe that each is pre-trained with."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, Literal

from mnemic.recipe import (
    ConfigError,
    Recipe,
    construct,
    did_you_mean,
    join_words,
    load_recipe,
    merge_recipes,
    override,
    parse_assignment,
)
from mnemic.reproduce.objectives.scale import ObjectivesScale

ROWS_FILE = Path(__file__).with_name("rows.toml")
BASELINE = "mlm"  # the row that others are compared with
ALL = "objectives"  # the group of rows that a table has without --rows
BATCHES = "batches"  # that of rows with larger batches
HELD_OUT_FORMAT = "full-sentences"  # of the sequences that all rows are measured on
MAX_BUDGETS = 20  # as many times the steps of equal tokens end a row, whatever the seconds
ENDLESS = 1_000_000  # epochs: budgets end a row
LOG_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class ObjectiveRow:
    """A row of the table; ``rows.toml`` says what its keys mean."""

    name: str
    title: str
    recipe: str
    sets: Sequence[str] = ()
    format: str = HELD_OUT_FORMAT
    words: Literal["text", "entities"] = "text"
    fine_tuning: Sequence[str] = ()
    loss: str = "masked tokens"
    trained: bool = True
    group: str = ALL
    batch: int = 1
    rate: float = 1.0

    @property
    def sequences(self) -> str:
        """The name of the folder of its sequences."""
        return name_sequences(self.format, self.words)

    def count_steps(self, steps: int) -> int:
        """Count the steps that have as many tokens as ``steps`` of most rows."""
        return ceil(steps / self.batch)


def name_sequences(format: str, words: str = "text") -> str:
    """Name the folder of sequences of a format."""
    return format if words == "text" else f"{format}-{words}"


@cache
def load_rows() -> dict[str, ObjectiveRow]:
    """Load all rows by name, in their order."""
    specs = tomllib.loads(ROWS_FILE.read_text(encoding="utf-8"))
    return {name: construct(ObjectiveRow, {"name": name, **spec}, name=f"row {name}") for name, spec in specs.items()}


def select_rows(names: Sequence[str]) -> dict[str, ObjectiveRow]:
    """Select rows by their names or groups; without any those of all objectives."""
    rows = load_rows()
    groups = dict.fromkeys(row.group for row in rows.values())
    if unknown := [name for name in names if name not in rows and name not in groups]:
        hint = did_you_mean(unknown[0], rows)
        raise ConfigError(
            f"there is no row {unknown[0]!r}{hint}; rows: {join_words(rows)}; groups of them: {join_words(groups)}"
        )
    selected = names or [ALL]
    return {name: row for name, row in rows.items() if name in selected or row.group in selected}


def build_pretraining_recipe(row: ObjectiveRow, scale: ObjectivesScale, folder: Path, mean_length: float) -> Recipe:
    """Build the recipe of a row whose sequences are in ``folder``.

    They have ``mean_length`` tokens on average. All rows learn from as many tokens a step, at the
    same rate, but those that compare batches: a larger one is read in parts, and has fewer steps.
    """
    recipe = load_recipe(row.recipe, row.sets)
    recipe = {key: value for key, value in recipe.items() if key not in ("pretrained", "phases")}
    data = {key: recipe["data"][key] for key in ("copies", "rare_words") if key in recipe["data"]}
    recipe["data"] = data | build_data_spec(row.format, scale.length, folder, words=row.words)
    train = {
        "epochs": ENDLESS, "steps": MAX_BUDGETS * row.count_steps(scale.token_steps),
        "batch": row.batch * scale.count_sequences(mean_length),
        "schedule": {"kind": "inverse-root", "warmup": scale.warmup / (MAX_BUDGETS * scale.token_steps)},
        "log": LOG_STEPS, "validate": 0, "save": row.count_steps(scale.save_steps),
    }  # fmt: skip
    if row.batch > 1:
        train["accumulate"] = row.batch
    recipe["train"] = merge_recipes(recipe["train"], train)
    recipe = resize_encoder(override(recipe, "model.width", scale.width), scale)
    for text in scale.pretraining:
        recipe = override(recipe, *parse_assignment(text))
    if row.rate != 1:
        recipe = override(recipe, "train.rate", row.rate * recipe["train"]["rate"])
    return recipe


def build_data_spec(format: str, length: int, folder: Path, *, words: str = "text") -> dict[str, Any]:
    """Build the data of sequences in a folder, with their vocabulary."""
    tokenizer = {"kind": "stored", "folder": str(folder)}
    spec = {"kind": "corpus", "folder": str(folder), "length": length, "format": {"kind": format}}
    return spec | {"tokenizer": tokenizer, "words": words}


def resize_encoder(recipe: Recipe, scale: ObjectivesScale) -> Recipe:
    """Give the encoder of a recipe the depth, heads and dropout of a scale."""
    stack = recipe["model"]["encode"]["stack"]
    heads = "attention.heads" if "attention" in stack else "heads"
    settings = {"embeddings.dropout": scale.dropout, "stack.depth": scale.depth, "stack.dropout": scale.dropout}
    for key, value in (settings | {f"stack.{heads}": scale.heads}).items():
        recipe = override(recipe, f"model.encode.{key}", value)
    if "dropout" in stack.get("attention", {}):
        recipe = override(recipe, "model.encode.stack.attention.dropout", 0.0)  # as all others
    return recipe
