"""Recipes of version 0.1: old keys and kinds are translated, and nothing else changes."""

import doctest

import pytest

from mnemic.recipe import load_recipe, migrate, recipe_names
from mnemic.recipe.migrate import KEYS, KINDS, migrate_override, migrate_recipe


def test_old_keys_are_translated_wherever_they_stand() -> None:
    old_recipe = {
        "model": {
            "width": 8,
            "encode": {"kind": "ngrams", "most": 2},
            "memory": {"kind": "keeps", "least": 0.1, "alike": True},
            "carry": {"lasts": False, "lessons": 2},
            "takes": ["encode"],
        },
        "data": {"kind": "stories", "retold": 7, "alike": [["a", "b"]]},
        "train": {"optimiser": {"kind": "sgd"}, "clip": {"kind": "norm", "most": 1}},
        "phases": [{"train": {"fixed": ["encode"]}}],
        "started": {"train": {"fixed": ["memory"]}},
    }
    assert migrate_recipe(old_recipe) == {
        "model": {
            "width": 8,
            "encode": {"kind": "ngrams", "max_n": 2},
            "memory": {"kind": "selective", "threshold": 0.1, "similarity_first": True},
            "segments": {"carry_memory": False, "write_probes": 2},
            "init_parts": ["encode"],
        },
        "data": {"kind": "babi", "augment": 7, "interchangeable": [["a", "b"]]},
        "train": {"optimizer": {"kind": "sgd"}, "clip": {"kind": "norm", "limit": 1}},
        "phases": [{"train": {"frozen": ["encode"]}}],
        "pretrained": {"train": {"frozen": ["memory"]}},
    }


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("data.tested", "dev", ("data.test_file", "dev")),
        ("data.kind", "generated", ("data.kind", "generated-babi")),
        ("data", {"kind": "words", "held": "x"},
         ("data", {"kind": "language-modeling", "validation_file": "x"})),
        ("phases.0.train.fixed", ["encode"], ("phases.0.train.frozen", ["encode"])),
        ("phases", [{"train": {"fixed": []}}], ("phases", [{"train": {"frozen": []}}])),
        ("model.carry.lasts", False, ("model.segments.carry_memory", False)),
        ("model.respond.look.depth", 3, ("model.respond.picture_stack.depth", 3)),
        ("train.segments", 3, ("train.segments", 3)),
    ],
)  # fmt: skip
def test_overrides_are_translated(key: str, value: object, expected: tuple[str, object]) -> None:
    assert migrate_override(key, value) == expected


def test_new_names_are_not_translated_again() -> None:
    """No new name is an old name of its table: migrating twice changes nothing."""
    for renames in (KEYS, KINDS):
        for pairs in renames.values():
            assert not set(pairs) & set(pairs.values())
    for name in recipe_names():
        recipe = load_recipe(name)
        assert migrate_recipe(recipe) == recipe


def test_examples() -> None:
    assert doctest.testmod(migrate).failed == 0


def test_losses_of_a_stopped_run_are_renamed() -> None:
    assert migrate.migrate_state({"loss_sums.looks": 1, "parts.words": 2}) == {
        "loss_sums.entropy": 1,
        "loss_sums.words": 2,
    }
