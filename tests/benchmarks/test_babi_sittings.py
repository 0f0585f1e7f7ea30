"""The table of bAbI on a lent GPU: a sitting that ends is continued on another machine."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from mnemic.data.babi.folder import file_name_of
from mnemic.data.babi.format import format_story
from mnemic.data.babi.generate import generate_stories
from mnemic.files import read_json
from mnemic.reproduce.rows import read_rows

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import babi_sittings as sittings

OPTIONS = "--size 1k --tasks 1 --seeds 2 --at-once 2 --device cpu --set model.width=8 --set model.memory.steps=2"
OPTIONS += " --set train.steps=30 --set train.batch=8 --set train.log=5 --set train.validate=2"


@pytest.fixture
def carry(tmp_path: Path) -> Path:
    """Pack small stories."""
    folder = tmp_path / "data" / "en"
    folder.mkdir(parents=True)
    for number, split in enumerate(("train", "test")):
        text = "".join(format_story(story) for story in generate_stories(1, 40, seed=number))
        (folder / file_name_of(1, split)).write_text(text, encoding="utf-8")
    sittings.pack(Namespace(data=tmp_path / "data", carry=tmp_path / "carry", piece=15))
    return tmp_path / "carry"


def run(carry: Path, out: Path, **settings: Any) -> None:
    parser = ArgumentParser()
    sittings.add_options(parser)
    args = parser.parse_args([str(carry), str(out), *OPTIONS.split()])
    sittings.run(Namespace(**vars(args) | settings))


def test_runs_go_on_in_the_next_sitting(carry: Path, tmp_path: Path) -> None:
    """The second machine has the stories and what the first one brought back, in several pieces."""
    results = tmp_path / "results"
    run(carry, tmp_path / "first", minutes=0.0)  # ends after a step
    sittings.wait(Namespace(out=tmp_path / "first", results=results, seconds=0, piece=0.01))
    assert "the time is over after 1 steps" in (results / "log").read_text(encoding="utf-8")
    pieces = list(results.glob("table-*"))
    assert len(pieces) > 1
    for piece in pieces:
        copytree(piece, carry / piece.name)
    run(carry, tmp_path / "second")
    log = (tmp_path / "second" / "log").read_text(encoding="utf-8")
    assert "resumes" in log
    assert "step 2 of 30, 1 in this sitting" in log
    sittings.wait(Namespace(out=tmp_path / "second", results=results, seconds=0, piece=15))
    assert [path.name for path in results.glob("table-*")] == ["table-0"]
    sittings.join(Namespace(results=results, table=tmp_path / "table"))
    assert [row["seed"] for row in read_rows(tmp_path / "table" / "runs.jsonl")] == [0, 1]
    assert read_json(tmp_path / "table" / "table.json")["ours"]["per_task"].keys() == {"1"}


def test_a_sitting_without_stories_says_what_to_copy(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="stories-0"):
        run(tmp_path / "nothing", tmp_path / "out")
    assert "stories-0" in (tmp_path / "out" / "failed").read_text(encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="neither en nor en-10k"):
        sittings.pack(Namespace(data=tmp_path, carry=tmp_path / "carry", piece=15))
