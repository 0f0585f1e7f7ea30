"""``mnemic table pictures``: rows, resuming, the gaze of its networks."""

from pathlib import Path

import pytest
from app_runs import run

from mnemic.recipe import ConfigError
from mnemic.reproduce.pictures import table as pictures_table
from mnemic.reproduce.pictures.encoder_rows import ALL_ROWS as ROWS
from mnemic.reproduce.pictures.table import PicturesTable

SETS = ("model.width=8", "data.count=24", "data.validation_size=2", "data.test_size=12", "train.batch=8")
SMALL = [option for text in (*SETS, "train.steps=2") for option in ("--set", text)]


def test_rows_are_trained_once_and_plotted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("table", "pictures", *SMALL, "--out", tmp_path / "table", "--row", "soft", "--row", "mlbl-b")
    done = run(*command, "--json", "--plot", tmp_path / "gaze.png")
    assert done.code == 0, done.err
    assert [row["row"] for row in done.json["rows"]] == ["soft", "mlbl-b"]
    soft, biased = (row["metrics"] for row in done.json["rows"])
    assert {"exact", "perplexity", "gaze", "uniform gaze", "exact, new pairs"} == soft.keys()
    assert {"picture R@1", "text R@1", "R@1 by chance"} <= biased.keys()
    assert (tmp_path / "gaze.png").read_bytes()[:4] == b"\x89PNG"
    printed = run(*command)
    assert "mlbl-b" in printed.out
    monkeypatch.setattr(pictures_table, "fit", lambda *args, **kwargs: pytest.fail("trained again"))
    assert run(*command, "--json").json["rows"] == done.json["rows"]
    refused = run(*command[:-4], "--row", "mlbl-b", "--plot", tmp_path / "gaze.png")
    assert "this table has none" in refused.err


def test_every_row_has_a_recipe_that_loads() -> None:
    table = PicturesTable()
    assert table.names == list(ROWS)
    assert len({table.key_of(name, seed) for name in ROWS for seed in (0, 1)}) == 2 * len(ROWS)


def test_mistakes_are_found_before_anything_is_trained() -> None:
    with pytest.raises(ConfigError, match="there is no row 'sofd' \\(did you mean 'soft'"):
        PicturesTable(rows=("sofd",))
    with pytest.raises(ConfigError, match="seeds ≥ 1"):
        PicturesTable(seeds=0)
    with pytest.raises(ConfigError, match="does not take 'cuont' \\(did you mean 'count'"):
        PicturesTable(sets=("data.cuont=5",))
    with pytest.raises(ConfigError, match="digits does not take 'count'"):
        PicturesTable(rows=("digits, mixer",), sets=("data.count=5",))


def test_options_of_scenes_leave_digits_as_they_are() -> None:
    table = PicturesTable(sets=("data.count=24", "train.batch=8"))
    assert table.build_recipe("soft")["data"]["count"] == 24
    assert table.build_recipe("unit, shared")["data"]["count"] == 24
    digits = table.build_recipe("digits, mixer")
    assert digits["data"] == {"kind": "digits"}
    assert digits["train"]["batch"] == 8
