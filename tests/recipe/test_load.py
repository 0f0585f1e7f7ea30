"""Loading recipes from TOML: bases, overrides, and broken or missing files."""

from pathlib import Path

import pytest

from mnemic.recipe import (
    ConfigError,
    load_recipe,
    merge_recipes,
    override,
    parse_assignment,
    recipe_comment,
    recipe_names,
)

# Loading ---------------------------------------------------------------------------------------


def write_recipe(folder: Path, text: str, name: str = "own") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_base_lies_beside_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.toml").write_text("train = { epochs = 3 }\n", encoding="utf-8")
    path = tmp_path / "two.toml"
    path.write_text('base = "one.toml"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path.parent)
    assert load_recipe(path) == {"train": {"epochs": 3}}
    path.write_text("base = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is a recipe's name or path, not 3"):
        load_recipe(path)


def test_a_base_that_leads_back_is_refused(tmp_path: Path) -> None:
    for name, base in (("one", "two"), ("two", "one")):
        (tmp_path / f"{name}.toml").write_text(f'base = "{base}.toml"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="leads back to itself"):
        load_recipe(tmp_path / "one.toml")


def test_a_base_is_merged_and_another_kind_replaces_the_part(tmp_path: Path) -> None:
    base_path = write_recipe(
        tmp_path,
        """
        model = { width = 20, memory = { kind = "memn2n", hops = 2, noise = 0.3 } }
        train = { epochs = 7, clip = { kind = "spectral", most = 40 } }
        """,
        name="base",
    )
    recipe_path = write_recipe(
        tmp_path,
        f"""
        base = {str(base_path)!r}
        model = {{ memory = {{ hops = 3 }} }}
        train = {{ clip = {{ kind = "norm" }} }}
        data = {{ kind = "generated" }}
        """,
    )
    assert load_recipe(recipe_path) == {
        "model": {"width": 20, "memory": {"kind": "memn2n", "hops": 3, "noise": 0.3}},
        "train": {"epochs": 7, "clip": {"kind": "norm"}},
        "data": {"kind": "generated-babi"},
    }


def test_merge_changes_neither_side() -> None:
    base, over = {"a": {"kind": "x", "b": 1}}, {"a": {"b": 2}}
    assert merge_recipes(base, over) == {"a": {"kind": "x", "b": 2}}
    assert merge_recipes(base, {"a": {"kind": "y"}}) == {"a": {"kind": "y"}}
    assert (base, over) == ({"a": {"kind": "x", "b": 1}}, {"a": {"b": 2}})


def test_memn2n_joint_differs_from_memn2n_only_in_its_settings() -> None:
    single, joint = load_recipe("memn2n"), load_recipe("memn2n-joint")
    assert joint["model"] == {**single["model"], "width": 50}
    assert joint["data"] == single["data"]
    assert joint["train"]["schedule"] == {"kind": "halving", "every": 15}
    assert joint["train"]["clip"] == single["train"]["clip"]


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("train.rate=0.5", "train.rate", 0.5),
        ("train.steps=100", "train.steps", 100),
        ("model.tied = true", "model.tied", True),
        ('data.name="x"', "data.name", "x"),
        ("data.folder=~/tasks/en", "data.folder", "~/tasks/en"),
        ("data.folder=a=b", "data.folder", "a=b"),
        ("data.tasks=[1, 2]", "data.tasks", [1, 2]),
        ('data={kind="generated-babi"}', "data", {"kind": "generated-babi"}),
    ],
)
def test_assignments_are_read_as_toml_or_as_text(text: str, key: str, value: object) -> None:
    assert parse_assignment(text) == (key, value)


@pytest.mark.parametrize("text", ["train.rate", "=3", "", " = 1"])
def test_a_set_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="KEY=VALUE"):
        load_recipe("memn2n", [text])


def test_overrides_reach_into_tables_and_lists() -> None:
    plain = load_recipe("memn2n")
    changed = load_recipe("memn2n", ["phases.0.train.epochs=1", "train.rate=0.5", "model.memory.hops=2"])
    assert changed["phases"][0]["train"] == {**plain["phases"][0]["train"], "epochs": 1}
    assert changed["phases"][1] == plain["phases"][1]
    assert changed["train"] == {**plain["train"], "rate": 0.5}
    assert changed["model"]["memory"] == {"kind": "memn2n", "hops": 2}


def test_override_changes_nothing_in_place() -> None:
    before = {"a": {"b": 1}, "c": [{"d": 1}]}
    assert override(override(before, "a.b", 2), "c.0.d", 3) == {"a": {"b": 2}, "c": [{"d": 3}]}
    assert before == {"a": {"b": 1}, "c": [{"d": 1}]}


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"own\.toml is no valid TOML: .*line 2"):
        load_recipe(write_recipe(tmp_path, "model = {}\ntrain = { epochs = \n"))
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.toml is no valid TOML"):
        load_recipe(tmp_path / "latin.toml")
    with pytest.raises(ConfigError, match=r"no recipe file '.*none\.toml'"):
        load_recipe(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="no section 'modle'"):
        load_recipe(write_recipe(tmp_path, "modle = {}\n"))


def test_an_unknown_recipe_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'memn2m' \(did you mean") as error_info:
        load_recipe("memn2m")
    for name in recipe_names():
        assert name in str(error_info.value)


def test_the_comment_of_a_recipe_is_its_first_comment(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, "# A paper (Who 2015).\n# Published: 12.4.\nmodel = {}\n# no\n")
    assert recipe_comment(path) == "A paper (Who 2015).\nPublished: 12.4."
    assert recipe_comment(write_recipe(tmp_path, "model = {}\n")) == ""
