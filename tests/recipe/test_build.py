"""Building parts from recipe tables: accepted options, refused ones, and their messages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from torch import nn

from mnemic.recipe import ConfigError, build, construct, select_kinds


class Engine:
    """A part with an option of each type that recipes support."""

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
    """A module without a constructor: torch's takes anything, a recipe must not."""


PARTS = {"engine": Engine, "sail": Sail, "wheel": Wheel}


def test_build_passes_options_and_sizes() -> None:
    spec = {"kind": "engine", "power": 3, "rate": 2, "fuel": "wood", "gears": [1, 2]}
    built = build(PARTS, spec, width=8, vocab=100)  # vocab: a size this part does not take
    assert isinstance(built, Engine)
    assert (built.width, built.power, built.rate, built.fuel, built.gears) == (8, 3, 2, "wood", [1, 2])
    assert isinstance(build(PARTS, {"kind": "sail"}, width=8), Sail)
    assert isinstance(build(PARTS, {"kind": "wheel"}, width=8), Wheel)


def test_build_leaves_the_spec_as_it_was() -> None:
    spec = {"kind": "engine", "power": 3}
    build(PARTS, spec, width=8)
    assert spec == {"kind": "engine", "power": 3}


@pytest.mark.parametrize(
    ("spec", "messages"),
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
def test_a_wrong_part_is_refused_with_what_would_be_right(spec: Any, messages: list[str]) -> None:
    with pytest.raises(ConfigError) as error_info:
        build(PARTS, spec, width=8)
    for message in messages:
        assert message in str(error_info.value)
    assert "\n" not in str(error_info.value)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
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
def test_a_wrong_type_is_refused(option: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError, match=rf"^engine\.{option} is ") as error_info:
        build(PARTS, {"kind": "engine", "power": 3, option: value}, width=8)
    assert expected in str(error_info.value)
    assert str(error_info.value).endswith(f"not {value!r}")


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
    engine = build(PARTS, {"kind": "engine", "power": 3, option: value}, width=8)
    assert getattr(engine, option) == value


def test_construct_names_its_part_in_errors() -> None:
    with pytest.raises(ConfigError, match="train does not take 'powr'"):
        construct(Engine, {"powr": 3}, name="train", width=8)
    with pytest.raises(ConfigError, match=r"train is a table .*, not 3"):
        construct(Engine, 3, name="train", width=8)  # type: ignore[arg-type]


def test_options_of_a_default_part_are_merged_into_it() -> None:
    class Ship:
        def __init__(self, *, mast: Mapping[str, Any] = {"kind": "tall", "sails": 3}) -> None:
            self.mast = mast

    assert construct(Ship, {"mast": {"sails": 4}}, name="ship").mast == {"kind": "tall", "sails": 4}
    assert construct(Ship, {"mast": {"kind": "low"}}, name="ship").mast == {"kind": "low"}


def test_kinds_are_selected_by_their_attributes() -> None:
    class Oar:
        driven_by, is_quiet = "hand", True

    parts = {**PARTS, "oar": Oar}
    assert list(select_kinds(parts, is_quiet=True)) == ["oar"]
    assert list(select_kinds(parts, is_quiet=False)) == list(PARTS)
    assert list(select_kinds(parts, driven_by=None)) == list(PARTS)
    assert list(select_kinds(parts, driven_by="hand", is_quiet=True)) == ["oar"]
    assert list(select_kinds(parts, driven_by="wind", is_quiet=True)) == []
    assert select_kinds(parts) == parts
