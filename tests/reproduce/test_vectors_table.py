"""``mnemic table vectors``: rows of kinds, resuming, and what is measured."""

from pathlib import Path

import pytest
import text_files
from app_runs import run
from vector_files import ANIMALS, CITIES, write_documents

from mnemic.checkpoint.vectors import load_vectors
from mnemic.recipe import ConfigError
from mnemic.reproduce import vectors_table
from mnemic.reproduce.vectors_table import DEFAULT_KINDS, VectorsTable, read_sets
from mnemic.train.vectors import VECTOR_LEARNERS

SMALL = ("--width", 6, "--epochs", 3)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("documents"))


def write_classes(folder: Path) -> Path:
    rows = [f"the {name} is here\tanimal" for name in ANIMALS] + [f"the {name} is here\tcity" for name in CITIES]
    text_files.write(folder / "train.tsv", ["text\tlabel", *rows * 5])
    text_files.write(folder / "dev.tsv", ["text\tlabel", *rows])
    return folder


def test_rows_are_measured_kept_and_not_learned_again(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = write_classes(tmp_path / "classes")
    command = ("table", "vectors", "--data", documents, "--classes", classes, *SMALL, "--out", tmp_path / "table")
    kinds = ("--kind", "svd", "--kind", "cbow-hierarchical")
    done = run(*command, *kinds, "--json")
    assert done.code == 0, done.err
    rows = done.json["rows"]
    assert [row["kind"] for row in rows] == ["svd", "cbow-hierarchical"]
    assert rows[0]["classes"] == 100
    assert rows[0]["covered"] == {"wordsim": [0, 353], "simlex": [3, 999], "analogies": [0, 19544]}
    table = load_vectors(tmp_path / "table" / "cbow-hierarchical-0")
    assert table.card["options"]["hierarchical"]
    assert table.card["options"]["epochs"] == 3
    assert table.width == 6
    printed = run(*command, *kinds)
    assert "WordSim-353" in printed.out
    assert "classes %" in printed.out
    monkeypatch.setattr(vectors_table, "train_vectors", lambda *args, **kwargs: pytest.fail("learned again"))
    again = run(*command, *kinds, "--json").json
    assert again["rows"] == rows
    monkeypatch.undo()
    more = run(*command, "--kind", "svd", "--seeds", 2, "--json").json
    assert [row["seed"] for row in more["rows"]] == [0, 1]
    assert more["rows"][0] == rows[0]


def test_the_sets_are_those_that_were_published(documents: Path) -> None:
    sets = read_sets(VectorsTable(data=str(documents)))
    assert [len(pairs) for pairs in sets.similarity.values()] == [353, 999]
    assert len(sets.analogies) == 19_544
    assert ("tiger", "cat", 7.35) in sets.similarity["wordsim"]
    assert sets.analogies[0] == ("athens", "greece", "baghdad", "iraq")
    assert sets.classes == {}


def test_every_kind_is_in_the_table_by_default() -> None:
    assert {name.removesuffix("-hierarchical") for name in DEFAULT_KINDS} == VECTOR_LEARNERS.keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ("bow",)}, "no kind 'bow' here"),
        ({"kinds": ("svd-hierarchical",)}, "svd does not take 'hierarchical'"),
        ({"seeds": 0}, "seeds ≥ 1, not 0"),
        ({"width": 0}, "from 1 on, not 0"),
    ],
)
def test_mistakes_are_found_before_anything_is_learned(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        VectorsTable(data="none", **options)  # type: ignore[arg-type]
