"""Checkpoints that claim absurd sizes are refused before anything is allocated."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from mnemic.checkpoint import folder as checkpoints
from mnemic.checkpoint.atomic_files import hash_file
from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.models import build_within
from mnemic.recipe import ConfigError
from mnemic.recipe.load import override


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy a small network."""
    return Path(shutil.copytree(WEIGHTS / "wmn-babi", tmp_path / "network"))


def update_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"] = {name: hash_file(folder / name) for name in manifest["files"]}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def load_message(folder: Path) -> str:
    """Load a checkpoint, which must fail; return the message."""
    update_manifest(folder)
    with pytest.raises(ValueError, match=r".") as caught:
        checkpoints.load_checkpoint(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("recipe.model.width", 200_000, r"no network has such sizes: .*asks for a tensor of \d+ × 200000"),
        ("recipe.model.width", 60, r"has shape \(.*\), its recipe wants \(.*60"),
        ("recipe.model.width", 10**12, "model.width is a whole number of at most 1,000,000,000"),
        ("recipe.model.width", 999_999_999, "no network has such sizes: .*asks for a tensor of"),
        ("recipe.model.width", -5, "model.width is a whole number from 1 on, not -5"),
        ("recipe.model.memory.hops", 10**8, "hops is at most 1000, not 100,000,000"),
        ("recipe.model.memory.slots", 10**12, "slots is a whole number of at most"),
        ("sizes.vocab", 10**12, "the size 'vocab' is a whole number from 0 to .*, not 1000000000000"),
        ("sizes.vocab", -5, "the size 'vocab' is a whole number from 0 to .*, not -5"),
        ("sizes.vocab", 900_000, "no network has such sizes: .*asks for a tensor of 900000"),
        ("sizes.spelled", [[10**12, 1]], "the size 'spelled' is a whole number"),
        ("sizes.max_length", 10**15, "the size 'max_length' is a whole number"),
    ],
)
def test_absurd_sizes(copy: Path, key: str, value: Any, message: str) -> None:
    path = copy / "recipe.json"
    path.write_text(json.dumps(override(json.loads(path.read_text(encoding="utf-8")), key, value)), encoding="utf-8")
    assert re.search(message, load_message(copy))


def test_a_tensor_over_the_limit_is_not_made() -> None:
    for make in (
        lambda: torch.empty(2, 10**15),
        lambda: torch.zeros((2, 10**15)),
        lambda: torch.full((2, 10**15), 0.5),
        lambda: torch.arange(10**15),
        lambda: [torch.randn(40) for _ in range(3)],  # all together
        lambda: nn.Linear(10**8, 10**8),
    ):
        with pytest.raises(ConfigError, match="its weights are 100 numbers at most"):
            build_within(make, 100)
    assert build_within(lambda: nn.Linear(9, 9), 100).weight.shape == (9, 9)


@pytest.mark.parametrize("depth", [150, 100_000])
def test_a_recipe_that_is_nested_too_deeply(copy: Path, depth: int) -> None:
    text = (copy / "recipe.json").read_text(encoding="utf-8").rstrip()
    nested = '{"a":' * depth + "1" + "}" * depth
    (copy / "recipe.json").write_text(text[:-1] + f', "more": {nested}}}', encoding="utf-8")
    assert "recipe.json is nested too deeply" in load_message(copy)


@pytest.mark.parametrize("num_scales", [0, 1_000_000])
def test_scales_that_would_repeat_a_row(copy: Path, num_scales: int) -> None:
    """One row of 8 bits times a million scales would be a million rows."""
    weights = load_file(copy / "weights.safetensors")
    name = next(iter(weights))
    weights[name] = torch.zeros(1, 1000, dtype=torch.int8)
    if num_scales:
        weights[f"{name}.scale"] = torch.ones(num_scales)
    save_file(weights, copy / "weights.safetensors")
    assert f"the weight {name!r} of 8 bits has no scale for each of its rows" in load_message(copy)
