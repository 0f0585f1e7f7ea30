"""Recipes with absurd values end in one line, before anything is generated or written."""

from pathlib import Path

import pytest

from mnemic.recipe import ConfigError, load_recipe
from mnemic.train.run import fit

DOCUMENTS = 'data={kind="long-documents"}'
RECALL = 'data={kind="long-recall", length=16, segments=2}'
STORIES = 'data={kind="generated-babi", tasks=[1, 2], count=60}'


@pytest.mark.parametrize(
    ("name", "sets", "message"),
    [
        ("memn2n", [STORIES, "data.count=1000000000000"], "count is a whole number of at most 1,000,000,000"),
        ("memn2n", [STORIES, "data.count=1500000"], "data.count makes 3,000,000 examples; at most 2,000,000"),
        ("memn2n", [STORIES, "data.augment=100000", 'data.interchangeable=[["mary", "john"]]'], "data.augment makes"),
        ("memn2n", [STORIES, "model.width=100000000"], "GB, and this computer has"),
        ("memn2n", [STORIES, "model.memory.hops=1000000"], "hops is at most 1000, not 1,000,000"),
        ("memn2n", [STORIES, "model.memory.slots=1000000000000"], "slots is a whole number of at most"),
        ("memn2n", [STORIES, "train.batch=10000000000000000000000"], "batch is a whole number of at most"),
        ("dmn", [STORIES, "model.memory.passes=1000000"], "passes is at most 1000"),
        ("kv-memnn", ['data={kind="generated-knowledge", films=100000000}'], "data.films makes 100,000,000 examples"),
        ("dates", ["data.test_size=3000000"], "data.test_size makes 3,000,000 examples"),
        ("dates", ["data.count=80", "model.encode.stack.depth=100000"], "depth is at most 1000, not 100,000"),
        ("bert-mass", [DOCUMENTS, "data.count=100000000"], "data.count makes 100,000,000 examples"),
        ("bert-mass", [RECALL, "data.facts=1000000"], "data.facts makes"),
        ("bert-mass", [RECALL, "data.segments=1000000"], "at most 10,000,000 tokens: .* is 16,000,000"),
    ],
)
def test_absurd_values(name: str, sets: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        next(fit(load_recipe(name, sets), tmp_path / "run"))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5000 + "]" * 5000, "x." * 5000 + "y = 1", "a = " + "{b=" * 5000 + "1" + "}" * 5000],
    ids=["lists", "dotted", "tables"],
)
def test_toml_that_is_nested_too_deeply(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"deep.toml is nested too deeply"):
        load_recipe(path)
    with pytest.raises(ConfigError, match=r"is nested too deeply"):
        load_recipe("memn2n", [text.replace("a = ", "data.a=", 1)])


def test_a_number_of_many_digits(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(f"model = {{ width = {'9' * 5000} }}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"long.toml is no valid TOML"):
        load_recipe(tmp_path / "long.toml")
    with pytest.raises(ConfigError, match=r"model.width is no valid TOML"):
        load_recipe("memn2n", [f"model.width={'9' * 5000}"])


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_text("#" * 1_000_001, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"has 1,000,001 bytes; a recipe has at most 1,000,000"):
        load_recipe(tmp_path / "large.toml")


def test_bases_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "circle.toml").write_text('base = "x/../circle.toml"', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"leads back to itself"):
        load_recipe(tmp_path / "circle.toml")
    for number in range(60):
        (tmp_path / f"{number}.toml").write_text(f'base = "{number + 1}.toml"', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"of more than 50 recipes"):
        load_recipe(tmp_path / "0.toml")
