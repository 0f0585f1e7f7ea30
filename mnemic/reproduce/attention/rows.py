"""The rows of the table of attention: kinds of attention and stacks of layers."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.positions import POSITIONS
from mnemic.encode.stacks import DECODERS, STACKS
from mnemic.recipe import ConfigError, construct, did_you_mean, join_words, kind_name, kind_of, recipe_names

ROWS_FILE = Path(__file__).with_name("rows.toml")
BASELINE = "full"  # the row that the others are compared with
NO_ENCODER = "encoder"  # key of the reason why a row has no encoder
DEFAULT_DECODER = "transformer"
EXCEPTIONS = {
    "query-layer": "a full attention whose last layer asks by position, for language models alone",
    "masked": "its queries are the masked positions alone, so it is no layer of an encoder by itself",
    "two-stream": "a stack whose attention is of kind transformer-xl, which is a row",
}
ABILITIES = ("supports_causal", "supports_context", "supports_cross", "supports_packing", "supports_scores")


@dataclass(frozen=True, kw_only=True)
class AttentionRow:
    """A row of the table; ``rows.toml`` says what its keys mean."""

    name: str
    title: str
    attention: Mapping[str, Any] = field(default_factory=lambda: {"kind": BASELINE})
    stack: Mapping[str, Any] = field(default_factory=lambda: {"kind": "encoder"})
    positions: Mapping[str, Any] = field(default_factory=lambda: {"kind": "learned"})
    recipes: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    has_attention: bool = True  # False: a baseline that none of its parts describes
    cannot: str = ""

    @property
    def decoder(self) -> Mapping[str, Any] | None:
        """The spec of its causal stack; None if no decoder has this stack or attention."""
        if kind_name(self.stack) != "encoder":
            return self.stack if kind_name(self.stack) in DECODERS else None
        is_causal = getattr(kind_of(ATTENTIONS, self.attention), "supports_causal", False)
        return {**self.stack, "kind": DEFAULT_DECODER} if is_causal else None

    def list_missing_parts(self) -> list[str]:
        """List the kinds and recipes of this row that are not there."""
        tables: dict[str, Mapping[str, Any]] = {"attention": ATTENTIONS, "stack": STACKS, "positions": POSITIONS}
        specs = {"attention": self.attention, "stack": self.stack, "positions": self.positions}
        missing = [
            f"{key} of kind {kind_name(spec)!r}" for key, spec in specs.items() if kind_name(spec) not in tables[key]
        ]
        return missing + [f"the recipe {name!r}" for name in self.recipes.values() if name not in recipe_names()]

    def list_abilities(self) -> dict[str, bool]:
        """List what its attention can do, or whether its own stack is causal."""
        if not self.has_attention:
            return {"causal": False}
        if kind_name(self.stack) not in ("encoder", "reversible"):
            return {"causal": self.decoder is not None}
        attention = kind_of(ATTENTIONS, self.attention)
        # What depends on an option is a property: the default option has it.
        return {name.removeprefix("supports_"): bool(getattr(attention, name, False)) for name in ABILITIES}


@cache
def load_rows() -> dict[str, AttentionRow]:
    """Load all rows by name, in their order."""
    specs = tomllib.loads(ROWS_FILE.read_text(encoding="utf-8"))
    return {name: construct(AttentionRow, {"name": name, **spec}, name=f"row {name}") for name, spec in specs.items()}


def select_rows(names: Sequence[str]) -> dict[str, AttentionRow]:
    """Select rows by name, all without names; raise if their parts are missing."""
    rows = load_rows()
    if unknown := [name for name in names if name not in rows]:
        hint = did_you_mean(unknown[0], rows)
        raise ConfigError(f"there is no row {unknown[0]!r}{hint}; rows: {join_words(rows)}")
    selected = {name: row for name, row in rows.items() if name in (names or rows)}
    parts_by_row = {name: row.list_missing_parts() for name, row in selected.items()}
    missing = [f"{name} needs {join_words(parts)}" for name, parts in parts_by_row.items() if parts]
    if missing:
        raise ConfigError(
            f"rows whose parts this version does not have: {'; '.join(missing)}; leave them out with --rows"
        )
    return selected
