"""Settings of single tasks: tables of a recipe that were separate recipes in version 0.1."""

from pathlib import Path
from typing import Any

import pytest

from mnemic.recipe import ConfigError, load_recipe, load_task_settings
from mnemic.recipe.migrate import RECIPES

INTERCHANGEABLE_WORDS = [
    ["mary", "john", "sandra", "daniel"],
    ["bathroom", "bedroom", "garden", "hallway", "kitchen", "office"],
    ["apple", "football", "milk"],
]
ENTNET = {"train.epochs": 25, "train.schedule.every": 3, "train.validate": 1, "train.patience": 8, "data.augment": 7}
SINGLE_WORDS = {"model.encode.max_n": 1}
# Settings of version 0.1 for one task that differ from the recipe for all tasks.
DIFFERENCES: dict[tuple[str, int], dict[str, Any]] = {
    ("entnet", 3): {"data.sentences": 130},
    ("entnet", 16): {"train.rate": 0.003},
    ("entnet-augmented", 2): {"data.interchangeable": INTERCHANGEABLE_WORDS, **ENTNET},
    ("entnet-augmented", 3): {"data.sentences": 130, "data.interchangeable": INTERCHANGEABLE_WORDS, **ENTNET},
    ("entnet-augmented", 16): {"train.rate": 0.003},
    ("entnet-augmented", 19): {"data.interchangeable": INTERCHANGEABLE_WORDS[1:2], **ENTNET},
    ("dmn-plus-augmented", 3): {
        "data.interchangeable": INTERCHANGEABLE_WORDS,
        "data.augment": 7,
        "train.epochs": 13,
        "train.validate": 1,
        "train.patience": 8,
    },
    ("dmn-plus-augmented", 17): {"train.rate": 0.003},
    ("dmn-sum-augmented", 19): {
        "data.interchangeable": INTERCHANGEABLE_WORDS[1:2],
        "data.augment": 7,
        "train.epochs": 16,
        "train.validate": 1,
        "train.patience": 8,
        "phases": [{"objective": {"answer": 0.0}, "train": {"epochs": 1, "keep": "last", "patience": 0}}, {}],
    },
    ("memnn-am-ng-nl", 2): SINGLE_WORDS,
    ("memnn-am-ng-nl", 3): {**SINGLE_WORDS, "train.optimizer.decay": 0.001},
    ("memnn-am-ng-nl", 8): {"objective.order": "time"},
    ("memnn-am-ng-nl", 10): SINGLE_WORDS,
}


def flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return all values of a recipe by their dotted keys."""
    values = {}
    for key, value in table.items():
        values |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return values


@pytest.mark.parametrize("name", sorted({name for name, _ in DIFFERENCES}))
def test_a_task_differs_from_the_others_in_what_its_recipe_said(name: str) -> None:
    plain = flatten(load_recipe(name))
    for task in range(1, 21):
        settings = flatten(load_recipe(name, task=task))
        assert settings == plain | DIFFERENCES.get((name, task), {})
    assert set(load_task_settings(name)) == {str(task) for recipe_name, task in DIFFERENCES if recipe_name == name}


@pytest.mark.parametrize("old_name", RECIPES)
def test_an_old_name_is_the_recipe_of_today_with_its_task(old_name: str) -> None:
    name, task = RECIPES[old_name]
    assert load_recipe(old_name) == load_recipe(name, task=task)
    assert (task is None) == ("-task" not in old_name)


def test_every_task_that_had_a_recipe_has_its_old_name() -> None:
    assert {pair for pair in RECIPES.values() if pair[1] is not None} == DIFFERENCES.keys()


def test_a_recipe_of_ones_own_has_tasks_and_inherits_those_of_its_base(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('base = "entnet"\n[tasks.3.train]\nrate = 0.5\n[tasks.4.started.train]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tasks\.4 has no section 'pretrained'"):
        load_recipe(path)
    path.write_text('base = "entnet"\n[tasks.3.train]\noptimiser = { decay = 0.5 }\n', encoding="utf-8")
    recipe = load_recipe(path, ["train.rate=0.2"], task=3)
    assert (recipe["data"]["sentences"], recipe["train"]["optimizer"]["decay"], recipe["train"]["rate"]) == (
        130,
        0.5,
        0.2,
    )
    assert load_recipe(path) == load_recipe("entnet")
    path.write_text('base = "entnet-task3"\n', encoding="utf-8")
    assert load_recipe(path)["data"]["sentences"] == 130


@pytest.mark.parametrize("text", ["tasks = 3", "[tasks.third]", "tasks = { 3 = 4 }", "[tasks.3.modle]"])
def test_a_slip_in_the_tasks_is_noticed_even_when_none_is_asked_for(text: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\[tasks\.3\]|'3' is a table|no section 'modle'"):
        load_recipe(tmp_path / "own.toml")
