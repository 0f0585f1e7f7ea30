"""Train a recipe through the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app_runs import run

from mnemic.recipe.to_toml import format_toml


def write_recipe(folder: Path, recipe: Mapping[str, Any]) -> Path:
    """Write a recipe as a file."""
    (folder / "new.toml").write_text(format_toml(recipe))
    return folder / "new.toml"


def train(folder: Path, recipe: Mapping[str, Any], *arguments: object) -> Path:
    """Train three steps of a recipe through the command line, and evaluate the network."""
    path = write_recipe(folder, {**recipe, "train": recipe.get("train", {}) | {"steps": 3, "batch": 8}})
    trained = run("train", path, "--out", folder / "run", "--device", "cpu", "--json", *arguments)
    assert trained.code == 0, trained.err
    assert trained.json["steps"] == 3
    evaluated = run("evaluate", folder / "run", "--device", "cpu", "--json", "--split", "validation")
    assert evaluated.code == 0, evaluated.err
    assert {"mean_error", "figures"} & evaluated.json.keys()
    return folder / "run"
