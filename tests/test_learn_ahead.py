"""Batches that other processes make ahead are those that this one would have made."""

from pathlib import Path

import pytest
import torch

from mnemic.data import DATASETS
from mnemic.learn.ahead import made_ahead
from mnemic.learn.checkpoint import load, weights_of
from mnemic.learn.draws import Draw
from mnemic.learn.fit import fit
from mnemic.learn.train import TrainSettings
from mnemic.recipe import ConfigError, Recipe, build
from mnemic.recipe import load as load_recipe

SETS = [
    'data={kind="long-recall", count=60, length=16, segments=2}',
    'data.tokenizer={kind="wordpiece", vocab=400}', "model.width=16",
    "model.encode.stack.depth=1", "train.batch=8", 'train.matmul="float32"', "train.validate=0",
]  # fmt: skip


def recipe_of(*sets: str) -> Recipe:
    recipe = load_recipe("keeps", [*SETS, *sets])
    return recipe | {"phases": [{"train": {"segments": 3, "steps": 5}}]}


def test_a_run_with_workers_ends_with_the_same_bits(tmp_path: Path) -> None:
    for workers in (0, 1):
        recipe = recipe_of(f"train.workers={workers}")
        for _ in fit(recipe, tmp_path / str(workers), device="cpu"):
            pass
    alone, helped = (weights_of(load(tmp_path / name).network) for name in ("0", "1"))
    for name, weight in alone.items():
        assert torch.equal(weight, helped[name]), name


def test_batches_come_in_the_order_of_their_draws() -> None:
    documents = build(DATASETS, recipe_of()["data"]).data().train
    rolls = torch.rand(7, 3, 1)
    draws = [Draw(torch.arange(3 * n, 3 * n + 3), rolls[n]) for n in range(7)]
    found = list(made_ahead(documents, iter(draws), 1))
    assert len(found) == 7
    for draw, batch in zip(draws, found):
        own = documents.batch(draw.rows, draw.rolls)
        assert torch.equal(batch.inputs.tokens, own.inputs.tokens)
        assert torch.equal(batch.needed, own.needed)
        assert batch.inputs.counted is not None
        assert own.inputs.counted is not None
        assert batch.inputs.counted.sentences == own.inputs.counted.sentences
        assert batch.proven


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"leave out train\.accumulate"):
        TrainSettings(workers=1, accumulate=2)
    with pytest.raises(ConfigError, match=r"train\.workers is at least 0"):
        TrainSettings(workers=-1)
    recipe = load_recipe("memn2n", ["data.kind=generated", "data.tasks=[1]", "train.workers=1"])
    with pytest.raises(ConfigError, match="batches of long documents"):
        list(fit(recipe, tmp_path / "run", device="cpu"))
