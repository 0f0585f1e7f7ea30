"""The columns of the table of attention, and the recipe of each cell."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.data import DATASETS
from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.stacks import DECODERS, STACKS
from mnemic.recipe import (
    Recipe,
    kind_name,
    kind_of,
    load_recipe,
    merge_recipes,
    override,
    parameters_of,
    parse_assignment,
)
from mnemic.reproduce.attention.rows import NO_ENCODER, AttentionRow
from mnemic.reproduce.attention.scale import Scale

FILES = {"validation_file": "validation", "test_file": "test"}  # of all sources
LENGTH = "{length}"  # in a row's spec: the tokens of a column


class TrainedColumn(NamedTuple):
    """A column that networks are trained for; its title may have ``{length}``."""

    title: str
    recipe: str  # whose model and objective it has
    source: str  # of its texts; "": they are generated
    data: Mapping[str, Any]
    is_causal: bool = False
    metric: str = ""  # "": the main one of its data
    unit: str = ""
    decimals: int = 1


COLUMNS = {
    "perplexity": TrainedColumn(
        "perplexity a word at {length}", "transformer-words", "enwiki", {"kind": "language-modeling"}, is_causal=True
    ),
    "masked-words": TrainedColumn(
        "masked words, loss", "bert-pretrain", "enwiki", {**FILES, "kind": "corpus"},
        metric="loss", unit="nats", decimals=3,
    ),
    "imdb": TrainedColumn("IMDB, accuracy", "bert-classes", "imdb", {**FILES, "kind": "classes"}, unit="%"),
    "sst5": TrainedColumn("SST-5, accuracy", "bert-classes", "sentences", {**FILES, "kind": "classes"}, unit="%"),
    "copies-256": TrainedColumn(
        "copies at 256, accuracy", "transformer-words", "", {"kind": "copies"}, is_causal=True, unit="%"
    ),
    "copies-1024": TrainedColumn(
        "copies at 1,024, accuracy", "transformer-words", "", {"kind": "copies"}, is_causal=True, unit="%"
    ),
}  # fmt: skip
COST = "cost"  # the column of time and memory, which trains nothing


class SourceFolders(NamedTuple):
    """The folders that the columns of a table read, below its own."""

    root: Path

    def data_of(self, name: str, scale: Scale) -> dict[str, Any]:
        """Return the keys of ``data`` that say where the texts of a column are."""
        source = COLUMNS[name].source
        folder = self.root / source
        if name == "perplexity":
            return {"folder": str(self.words)}
        if name == "masked-words":
            tokenizer = {"kind": "wordpiece", "vocab": scale.source_size(source).vocab}
            return {"folder": str(self.sequences), "tokenizer": tokenizer}
        return {"folder": str(folder)} if source else {}

    @property
    def words(self) -> Path:
        """The folder of encoded words, of language models."""
        return self.root / "enwiki-words"

    @property
    def sequences(self) -> Path:
        """The folder of sequences, of masked words."""
        return self.root / "enwiki-sequences"


def find_reason(row: AttentionRow, name: str) -> str:
    """Say why a row is not in a column; empty if it is."""
    if name in row.reasons:
        return row.reasons[name]
    if name == COST or not COLUMNS[name].is_causal:
        return row.reasons.get(NO_ENCODER, "")
    return "" if row.decoder is not None or name in row.recipes else "not causal"


def find_missing_data(name: str) -> str:
    """Say which kind of data of a column is not there; empty if none."""
    kind = kind_name(COLUMNS[name].data)
    return "" if kind in DATASETS else f"this version has no data of kind {kind!r}"


def build_cell_recipe(row: AttentionRow, name: str, scale: Scale, folders: SourceFolders) -> Recipe:
    """Build the recipe of a row in a column."""
    column, settings = COLUMNS[name], scale.column_settings(name)
    recipe = load_recipe(row.recipes.get(name, column.recipe))
    data = {**column.data, **settings.data, **folders.data_of(name, scale)}
    recipe = {key: value for key, value in recipe.items() if key != "pretrained"} | {
        "train": merge_recipes(recipe["train"], settings.train),
        # A recipe of a row's own may read its texts in another way, such as one after another.
        "data": merge_recipes(recipe["data"], data) if name in row.recipes else data,
        "objective": merge_recipes(recipe["objective"], settings.objective or {}),
    }
    if name in row.recipes:
        recipe = resize_encoder(recipe, scale)
    else:
        recipe = override(recipe, "model.width", scale.width)
        recipe = override(recipe, "model.encode", build_encode(row, scale, settings.max_tokens, column.is_causal))
    for text in row.settings.get(name, ()):
        recipe = override(recipe, *parse_assignment(text.replace(LENGTH, str(settings.max_tokens))))
    return recipe


def build_encode(row: AttentionRow, scale: Scale, max_tokens: int, is_causal: bool) -> dict[str, Any]:
    """Build the spec of a row's encoder."""
    positions = fill_length(row.positions, max_tokens)
    if kind_name(positions) == "learned":
        positions = {"length": max_tokens} | positions
    return {
        "kind": "causal" if is_causal else "transformer",
        "embeddings": {"kind": "sum", "dropout": scale.dropout, "positions": positions},
        "stack": build_stack_spec(row, scale, max_tokens, is_causal=is_causal),
    }


def build_stack_spec(row: AttentionRow, scale: Scale, max_tokens: int, *, is_causal: bool = False) -> dict[str, Any]:
    """Build the spec of a row's stack, with the scale's sizes that its kind has."""
    spec, stacks = (row.decoder or {}, DECODERS) if is_causal else (row.stack, STACKS)
    common = {"depth": scale.depth, "heads": scale.heads, "norm": scale.norm, "dropout": scale.dropout}
    attention = fill_length(row.attention, max_tokens)
    attention_options = parameters_of(kind_of(ATTENTIONS, attention))
    attention = ({"heads": scale.heads} if "heads" in attention_options else {}) | attention
    options = parameters_of(kind_of(stacks, spec))
    passed = {key: value for key, value in (common | {"attention": attention}).items() if key in options}
    return passed | fill_length(spec, max_tokens)


def resize_encoder(recipe: Recipe, scale: Scale) -> Recipe:
    """Give an encoder the sizes of a scale; without layers it keeps its own."""
    stack = "model.encode.stack"
    if "stack" not in recipe["model"]["encode"]:
        return recipe
    recipe = override(recipe, "model.width", scale.width)
    recipe = override(recipe, f"{stack}.depth", scale.depth)
    recipe = override(recipe, f"{stack}.dropout", scale.dropout)
    return override(recipe, f"{stack}.attention.heads", scale.heads)


def fill_length(spec: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
    """Replace ``{length}`` in a spec by a number of tokens."""
    return {key: max_tokens if value == LENGTH else value for key, value in spec.items()}
