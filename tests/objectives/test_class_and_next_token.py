"""GPT's fine-tuning objective: classes, with the next tokens beside them.

Shapes: w windows, n tokens, v vocabulary.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import text_files
import torch
from learn_runs import finish, stop_after, weights_in

from mnemic.models import WindowBatch, build_model
from mnemic.objectives.class_and_next_token import ClassAndNextTokenLoss
from mnemic.objectives.text_tasks import ClassLoss
from mnemic.recipe import ConfigError, load_recipe

SIZES = {"vocab": 20, "classes": 3, "max_length": 9}


def make_network(**encode: Any) -> Any:
    torch.manual_seed(0)
    respond = {"kind": "classes", "pool": "last", "dropout": 0.0}
    return build_model({"width": 8, "encode": {"kind": "causal"} | encode, "respond": respond}, SIZES)


def make_batch() -> Any:
    """Make three windows of two texts; the last window is padded."""
    tokens = torch.randint(5, 20, (3, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    mask[2, 4:] = False
    inputs = WindowBatch(tokens, mask, torch.zeros_like(tokens), mask)
    return SimpleNamespace(inputs=inputs, owner=torch.tensor([0, 1, 1]), targets=torch.tensor([2, 0]))


def test_the_loss_is_that_of_classes_and_half_that_of_tokens() -> None:
    """Against a plain loop over tokens."""
    network, batch = make_network(), make_batch()
    loss = ClassAndNextTokenLoss()(network, batch)
    classes = ClassLoss()(network, batch)
    states = network.encode(batch.inputs.tokens, batch.inputs.mask)
    ids, words = batch.inputs.tokens, network.encode.embeddings.tokens
    token_losses = [
        -(states[row, position] @ words.T).log_softmax(0)[ids[row, position + 1]]
        for row, length in enumerate((7, 7, 4))
        for position in range(length - 1)
    ]  # fmt: skip
    expected = classes.total / 2 + 0.5 * torch.stack(token_losses).mean()
    torch.testing.assert_close(loss.total / loss.num_targets, expected)
    assert loss.num_targets == 2


def test_without_weight_it_is_the_loss_of_classes() -> None:
    network, batch = make_network(), make_batch()
    torch.testing.assert_close(
        ClassAndNextTokenLoss(next_token=0.0)(network, batch).total, ClassLoss()(network, batch).total
    )


@pytest.mark.parametrize("shards", [1, 2])
def test_the_weight_of_tokens_halves(shards: int) -> None:
    """Every three steps, whose parts all have the same weight."""
    network, batch = make_network().requires_grad_(False), make_batch()
    classes = float(ClassAndNextTokenLoss(next_token=0.0)(network, batch).total)
    tokens = float(ClassAndNextTokenLoss(next_token=1.0)(network, batch).total) - classes
    objective, carried, weights = ClassAndNextTokenLoss(next_token=0.8, half_life=3, shards=shards), None, []
    for _ in range(7 * shards):
        loss = objective(network, batch, carried)
        carried = loss.carried
        weights.append((float(loss.total) - classes) / tokens)
    assert weights[::shards] == pytest.approx([0.8 * 0.5 ** (step / 3) for step in range(7)], rel=1e-4)
    assert weights[shards - 1 :: shards] == pytest.approx(weights[::shards])


def test_every_weight_learns() -> None:
    network = make_network()
    ClassAndNextTokenLoss()(network, make_batch()).total.backward()
    assert not [name for name, weight in network.named_parameters() if weight.grad is None]


def test_an_encoder_that_has_read_the_next_token_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.encode\.kind=causal"):
        ClassAndNextTokenLoss()(make_network(kind="transformer"), make_batch())
    with pytest.raises(ConfigError, match="from 0 on, not -1"):
        ClassAndNextTokenLoss(next_token=-1.0)
    with pytest.raises(ConfigError, match=r"half_life is a number of steps from 0 on, not -3"):
        ClassAndNextTokenLoss(half_life=-3.0)


def test_a_stopped_run_goes_on_with_its_weight(tmp_path: Path) -> None:
    """To the bit: the counter is in the checkpoint."""
    sets = [f"data.folder={text_files.classes(tmp_path / 'files', 60)}", "data.length=24", "data.overlap=4"]
    sets += ["model.width=16", "train.steps=6", "train.validate=0", "train.keep=last", "objective.half_life=2"]
    recipe = load_recipe("gpt-classes", sets)
    finish(recipe, tmp_path / "whole", device="cpu")
    stop_after(3, recipe, tmp_path / "stopped", device="cpu")
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "whole") == weights_in(tmp_path / "stopped")
