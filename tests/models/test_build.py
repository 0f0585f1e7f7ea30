"""Checks of a recipe's model on the meta device, and ``evaluating``."""

from typing import Any

import pytest
import torch
from torch import nn

from mnemic.models import build_model, check_model_parts, evaluating
from mnemic.recipe import ConfigError, load_recipe, recipe_names
from mnemic.respond.pretraining.masked import PretrainingHeads

SIZES: dict[str, Any] = {"vocab": 300, "classes": 3, "max_length": 16, "tied_words": [1, 2]}
SIZES |= {"channels": 3, "side": 48, "task_classes": [3, 2, 2, 2], "attributes": 3}  # of pictures


def model_of(recipe: str) -> dict[str, Any]:
    return {key: value for key, value in load_recipe(recipe)["model"].items() if not key.startswith("init_")}


def sizes_of(model: dict[str, Any]) -> dict[str, Any]:
    tied = model.get("memory", {}).get("tied")
    return {key: value for key, value in SIZES.items() if tied or key != "tied_words"}


def test_the_model_of_each_recipe_is_checked_on_the_meta_device() -> None:
    """Recipes that train the same model share a check."""
    models = {name: model_of(name) for name in recipe_names()}
    names = {str(model): name for name, model in models.items()}.values()
    assert len(names) > 50
    for name in names:
        model = models[name]
        rng_state = torch.get_rng_state()
        network = check_model_parts(model, sizes_of(model))
        # Hashes of values choose the shapes of the Reformer, which is built and run for real.
        is_real = name.startswith("reformer")
        assert all(tensor.is_meta != is_real for tensor in network.state_dict().values()), name
        assert network.training, name
        assert torch.equal(torch.get_rng_state(), rng_state), name


@pytest.mark.parametrize("name", ["memn2n", "bert-mass", "bert-tags", "gru-words"])
def test_a_checked_network_has_the_shapes_of_a_real_one(name: str) -> None:
    model = model_of(name) | {"width": 16}
    model.pop("mass", None)
    checked, built = check_model_parts(model, sizes_of(model)), build_model(model, sizes_of(model))
    shapes = {key: tensor.shape for key, tensor in built.state_dict().items()}
    assert {key: tensor.shape for key, tensor in checked.state_dict().items()} == shapes


def test_parts_that_do_not_fit_are_named() -> None:
    positions = {"kind": "sum", "positions": {"kind": "learned", "length": 4}}
    model = {"width": 8, "encode": {"kind": "transformer", "embeddings": positions}, "respond": {"kind": "tags"}}
    with pytest.raises(ConfigError, match=r"the parts of \[model\] do not fit together: there are 4 learned"):
        check_model_parts(model, SIZES)
    with pytest.raises(ConfigError, match=r"model\.width is a whole number"):
        check_model_parts(model | {"width": 0}, SIZES)


def test_a_part_that_needs_values_is_checked_with_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PretrainingHeads, "dummy_inputs", lambda self, tokens: {})
    model = {"width": 8, "encode": {"kind": "transformer"}, "respond": {"kind": "masked"}}
    rng_state = torch.get_rng_state()
    network = check_model_parts(model, SIZES)
    assert not any(weight.is_meta for weight in network.parameters())
    assert torch.equal(torch.get_rng_state(), rng_state)


def test_modes_are_restored_even_after_an_error() -> None:
    training, evaluation = nn.Dropout(), nn.Dropout().eval()
    modes = []

    def fail() -> None:
        with evaluating(training), evaluating(evaluation):
            modes.extend([training.training, evaluation.training])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert modes == [False, False]
    assert training.training
    assert not evaluation.training
