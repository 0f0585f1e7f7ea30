"""From TOML to parts: what is refused and how it is said, and that every shipped recipe trains."""

import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import pytest
import text_files
from torch import nn

from mnemic.data import LONG, RESPONSE_OF
from mnemic.learn.checkpoint import load as load_checkpoint
from mnemic.learn.fit import fit
from mnemic.recipe import (
    ConfigError,
    about,
    assignment,
    build,
    fill,
    load,
    merge,
    names,
    override,
)


class Engine:
    """A part with an option of every type a recipe knows."""

    def __init__(
        self,
        width: int,
        power: int,
        *,
        rate: float = 1.0,
        loud: bool = False,
        name: str = "engine",
        fuel: Literal["wood", "coal"] = "coal",
        gears: list[int] | None = None,
        limits: tuple[float, float] = (0.0, 1.0),
        cooling: Mapping[str, Any] | None = None,
        out: Path | None = None,
    ) -> None:
        self.width, self.power, self.rate, self.loud, self.name = width, power, rate, loud, name
        self.fuel, self.gears, self.limits = fuel, gears, limits
        self.cooling, self.out = cooling, out


class Sail:
    """A part without options."""


class Wheel(nn.Module):
    """A module without a constructor of its own: torch's takes anything, a recipe may not."""


PARTS = {"engine": Engine, "sail": Sail, "wheel": Wheel}


def test_build_hands_over_options_and_facts() -> None:
    spec = {"kind": "engine", "power": 3, "rate": 2, "fuel": "wood", "gears": [1, 2]}
    part = build(PARTS, spec, width=8, vocab=100)  # vocab: a fact this part does not name
    assert isinstance(part, Engine)
    assert (part.width, part.power, part.rate, part.fuel, part.gears) == (8, 3, 2, "wood", [1, 2])
    assert isinstance(build(PARTS, {"kind": "sail"}, width=8), Sail)
    assert isinstance(build(PARTS, {"kind": "wheel"}, width=8), Wheel)


def test_build_leaves_the_spec_as_it_was() -> None:
    spec = {"kind": "engine", "power": 3}
    build(PARTS, spec, width=8)
    assert spec == {"kind": "engine", "power": 3}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"kind": "motor"}, ["no kind 'motor'", "known kinds: engine, sail, wheel"]),
        ({"kind": "engin"}, ["did you mean 'engine'?", "known kinds: engine, sail, wheel"]),
        ({"power": 3}, ["no kind None", "known kinds: engine, sail, wheel"]),
        ({"kind": ["engine"]}, ["no kind ['engine']", "known kinds: engine, sail, wheel"]),
        ("engine", ["'engine'", 'kind = "engine"', "table"]),
        (7, ["7", "table"]),
        ({"kind": "engine", "power": 3, "colour": 1}, ["does not take 'colour'", "it takes power"]),
        ({"kind": "engine", "power": 3, "fule": 1}, ["'fule' (did you mean 'fuel'?)"]),
        ({"kind": "sail", "colour": 1}, ["sail does not take 'colour'; it takes no options"]),
        ({"kind": "wheel", "args": 1}, ["wheel does not take 'args'; it takes no options"]),
        ({"kind": "engine"}, ["engine needs power"]),
        ({"kind": "engine", "power": 3, "width": 9}, ["engine does not take 'width'"]),
    ],
)
def test_a_wrong_part_is_refused_with_what_would_be_right(spec: Any, says: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        build(PARTS, spec, width=8)
    for words in says:
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("power", "3", "a whole number"),
        ("power", 3.0, "a whole number"),
        ("power", True, "a whole number"),
        ("rate", "fast", "a number"),
        ("rate", False, "a number"),
        ("loud", 1, "true or false"),
        ("loud", "true", "true or false"),
        ("name", 3, "a text"),
        ("fuel", "oil", "one of 'wood', 'coal'"),
        ("fuel", 1, "one of 'wood', 'coal'"),
        ("gears", 3, "a list, each item a whole number or nothing"),
        ("gears", [1, "2"], "a list, each item a whole number or nothing"),
        ("gears", [1, True], "a list, each item a whole number or nothing"),
        ("limits", [0.1], "a list of 2, each item a number"),
        ("limits", [0.1, "b"], "a list of 2, each item a number"),
        ("cooling", "water", "a table"),
        ("out", 3, "a path"),
    ],
)
def test_a_wrong_type_is_refused(option: str, value: object, wanted: str) -> None:
    with pytest.raises(ConfigError, match=rf"^engine\.{option} is ") as caught:
        build(PARTS, {"kind": "engine", "power": 3, option: value}, width=8)
    assert wanted in str(caught.value)
    assert str(caught.value).endswith(f"not {value!r}")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rate", 3),
        ("rate", 0.5),
        ("loud", True),
        ("fuel", "wood"),
        ("gears", []),
        ("limits", [0, 0.5]),
        ("cooling", {"kind": "air"}),
        ("out", "here/there"),
    ],
)
def test_a_right_type_is_taken(option: str, value: object) -> None:
    part = build(PARTS, {"kind": "engine", "power": 3, option: value}, width=8)
    assert getattr(part, option) == value


def test_fill_names_what_it_fills() -> None:
    with pytest.raises(ConfigError, match="train does not take 'powr'"):
        fill(Engine, {"powr": 3}, name="train", width=8)
    with pytest.raises(ConfigError, match=r"train is a table .*, not 3"):
        fill(Engine, 3, name="train", width=8)  # type: ignore[arg-type]


# Loading ---------------------------------------------------------------------------------------


def write(folder: Path, text: str, name: str = "own") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_base_lies_beside_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.toml").write_text("train = { epochs = 3 }\n", encoding="utf-8")
    over = tmp_path / "two.toml"
    over.write_text('base = "one.toml"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path.parent)
    assert load(over) == {"train": {"epochs": 3}}
    over.write_text("base = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is a recipe's name or path, not 3"):
        load(over)


def test_a_base_that_leads_back_is_refused(tmp_path: Path) -> None:
    for name, base in (("one", "two"), ("two", "one")):
        (tmp_path / f"{name}.toml").write_text(f'base = "{base}.toml"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="leads back to itself"):
        load(tmp_path / "one.toml")


def test_a_base_is_merged_and_another_kind_replaces_the_part(tmp_path: Path) -> None:
    base = write(
        tmp_path,
        """
        model = { width = 20, memory = { kind = "memn2n", hops = 2, noise = 0.3 } }
        train = { epochs = 7, clip = { kind = "spectral", most = 40 } }
        """,
        name="base",
    )
    own = write(
        tmp_path,
        f"""
        base = {str(base)!r}
        model = {{ memory = {{ hops = 3 }} }}
        train = {{ clip = {{ kind = "norm" }} }}
        data = {{ kind = "generated" }}
        """,
    )
    assert load(own) == {
        "model": {"width": 20, "memory": {"kind": "memn2n", "hops": 3, "noise": 0.3}},
        "train": {"epochs": 7, "clip": {"kind": "norm"}},
        "data": {"kind": "generated"},
    }


def test_merge_changes_neither_side() -> None:
    base, over = {"a": {"kind": "x", "b": 1}}, {"a": {"b": 2}}
    assert merge(base, over) == {"a": {"kind": "x", "b": 2}}
    assert merge(base, {"a": {"kind": "y"}}) == {"a": {"kind": "y"}}
    assert (base, over) == ({"a": {"kind": "x", "b": 1}}, {"a": {"b": 2}})


def test_memn2n_joint_is_memn2n_but_for_what_it_says() -> None:
    alone, joint = load("memn2n"), load("memn2n-joint")
    assert joint["model"] == {**alone["model"], "width": 50}
    assert joint["data"] == alone["data"]
    assert joint["train"]["schedule"] == {"kind": "halving", "every": 15}
    assert joint["train"]["clip"] == alone["train"]["clip"]


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
        ('data={kind="generated"}', "data", {"kind": "generated"}),
    ],
)
def test_assignments_are_read_as_toml_or_as_text(text: str, key: str, value: object) -> None:
    assert assignment(text) == (key, value)


@pytest.mark.parametrize("text", ["train.rate", "=3", "", " = 1"])
def test_a_set_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="KEY=VALUE"):
        load("memn2n", [text])


def test_overrides_reach_into_tables_and_lists() -> None:
    plain = load("memn2n")
    changed = load("memn2n", ["phases.0.train.epochs=1", "train.rate=0.5", "model.memory.hops=2"])
    assert changed["phases"][0]["train"] == {**plain["phases"][0]["train"], "epochs": 1}
    assert changed["phases"][1] == plain["phases"][1]
    assert changed["train"] == {**plain["train"], "rate": 0.5}
    assert changed["model"]["memory"] == {"kind": "memn2n", "hops": 2}


def test_override_changes_nothing_in_place() -> None:
    before = {"a": {"b": 1}, "c": [{"d": 1}]}
    assert override(override(before, "a.b", 2), "c.0.d", 3) == {"a": {"b": 2}, "c": [{"d": 3}]}
    assert before == {"a": {"b": 1}, "c": [{"d": 1}]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("phases.2.train.epochs=1", "'phases' has items 0 to 1"),
        ("phases.first.train=1", "'phases' has items 0 to 1"),
        ("train.rate.fast=1", "'rate' holds 0.005, which has no parts"),
        ("trian.rate=1", "no section 'trian' (did you mean 'train'?)"),
        ("train=3", "'train' is a table"),
        ("phases=3", "'phases' is a list"),
        ("model.memory=memn2n", 'kind = "memn2n"'),
        ("model.width=wide", "model.width is a whole number"),
        ("model.memory.slots=0", "slots"),
        ("model.memory.hops=three", "memn2n.hops is a whole number, not 'three'"),
        ("model.memory.hops=-1", "hops"),
        ("model.memory.kind=memn2m", "did you mean 'memn2n'?"),
        ("model.hops=3", "[model] does not take 'hops'"),
        ("data.kind=story", "known kinds: stories, generated"),
        ("data.count=0", "count"),
        ("train.batch=0", "batch"),
        ("train.save=0", "save"),
        ("train.optimiser.kind=adanw", "did you mean 'adamw'?"),
        ("train.schedule.every=0", "every"),
        ("train.clip.most=big", "spectral.most is a number, not 'big'"),
        ("phases.0.modle.width=3", "no section 'modle' (did you mean 'model'?)"),
        ("phases.0.data.count=3", "data"),
        ("phases.0.model.memory.slots=3", "slots"),
        ("objective.kind=anser", "did you mean 'answer'?"),
    ],
)
def test_a_mistake_in_a_recipe_is_one_line_that_helps(text: str, says: str, tmp_path: Path) -> None:
    """Whatever is wrong is said before a step is taken, wherever in the library it is noticed."""
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        next(fit(load("memn2n", [*TOY, text]), tmp_path / "run"))
    assert "\n" not in str(caught.value)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"own\.toml is no valid TOML: .*line 2"):
        load(write(tmp_path, "model = {}\ntrain = { epochs = \n"))
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.toml is no valid TOML"):
        load(tmp_path / "latin.toml")
    with pytest.raises(ConfigError, match=r"no recipe file '.*none\.toml'"):
        load(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="no section 'modle'"):
        load(write(tmp_path, "modle = {}\n"))


def test_an_unknown_recipe_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'memn2m' \(did you mean") as caught:
        load("memn2m")
    for name in names():
        assert name in str(caught.value)


def test_about_is_the_first_comment_only(tmp_path: Path) -> None:
    path = write(tmp_path, "# A paper (Who 2015).\n# Published: 12.4.\nmodel = {}\n# no\n")
    assert about(path) == "A paper (Who 2015).\nPublished: 12.4."
    assert about(write(tmp_path, "model = {}\n")) == ""


# The shipped recipes ---------------------------------------------------------------------------

KNOWLEDGE = 'data={kind="generated-knowledge", films=20}'
TOY = ['data={kind="generated", tasks=[1], count=80}', "train.validate=0", "train.keep=last"]
TOY += ["train.patience=0"]
FEW = ["data.articles=2", "data.passages=3", "data.length=64", "model.encode.stack.depth=1"]
SMALL_BERT = ["model.width=16", "model.encode.stack.depth=1", "train.matmul=float32"]
SMALL_BERT += ['data.tokenizer={kind="wordpiece", vocab=200}', "data.length=32"]
SEGMENTS = ["data.count=60", "data.length=24", "data.segments=2", "model.width=32"]
SEGMENTS += ['data.tokenizer={kind="wordpiece", vocab=600}', 'train.matmul="float32"']
LITTLE = ["segments=2", "batch=4"]


def toy(name: str, folder: Path) -> dict[str, Any]:
    """A shipped recipe with four steps a phase on a few generated stories, or texts."""
    phases = load(name).get("phases", [])
    short = [f"phases.{n}.train.steps=4" for n in range(len(phases))]
    short += ["train.steps=4", "train.batch=8"]
    kind = load(name)["data"]["kind"]
    if kind == "dates":
        return load(name, ["data.count=80", "data.held=8", "data.tested=8", *TOY[1:], *short])
    if kind in RESPONSE_OF:
        numbers = {"numbers": True} if "numbers" in name else {}
        getattr(text_files, kind)(folder, 40, **numbers)
        few = {"reading": FEW, "corpus": ["train.log=0", *SMALL_BERT]}.get(kind, [])
        return load(name, [f"data.folder={folder}", *TOY[1:], *short, *few])
    if kind in LONG:
        short += [f"phases.{n}.train.{key}" for n in range(len(phases)) for key in LITTLE]
        few = SEGMENTS
        if kind == "long-articles":
            text_files.reading(folder, 40)
            few = [f"data.folder={folder}", *SEGMENTS[1:]]
        if kind == "long-stories":
            short += ["data.tasks=[1]", "model.encode.stack.depth=1"]
        return load(name, [*TOY[1:], *few, *short])
    known = [KNOWLEDGE] if kind == "knowledge" else []
    return load(name, [*TOY, *known, *short])


def test_recipes_are_shipped() -> None:
    assert {"memn2n", "memn2n-joint"} <= set(names())


@pytest.mark.parametrize("name", names())
def test_a_recipe_says_whose_it_is_and_what_was_published(name: str) -> None:
    """A paper is a name with a year; a score is a number in a sentence with "published"."""
    said = about(name)
    assert re.search(r"[A-Z]\w+ .*\b(19|20)\d\d\b", said)
    assert re.search(r"[Pp]ublished.*\d", said)


@pytest.mark.parametrize("name", names())
def test_a_recipe_builds_and_takes_a_step_in_every_phase(name: str, tmp_path: Path) -> None:
    recipe = toy(name, tmp_path / "data")
    reports = list(fit(recipe, tmp_path / "run"))
    count = len(recipe.get("phases", [{}]))
    every = [(phase, step) for phase in range(count) for step in (1, 2, 3, 4)]
    assert [(report.phase, report.step) for report in reports] == every
    rows = [report.row for report in reports if report.row is not None]
    assert rows
    assert all(isfinite(row["loss"]) and row["loss"] > 0 for row in rows)
    assert all(isfinite(row["norm"]) and row["norm"] > 0 for row in rows)
    done = load_checkpoint(tmp_path / "run")
    assert done.progress.done
    assert done.recipe == recipe
    assert all(bool(weight.isfinite().all()) for weight in done.network.parameters())
