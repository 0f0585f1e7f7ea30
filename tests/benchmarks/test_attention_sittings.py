"""The table of attention on a lent GPU: pieces, the order of cells, and sittings that go on."""

import json
import sys
import time
from argparse import Namespace
from pathlib import Path
from random import Random
from shutil import copytree

import pytest
import text_files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import attention_sittings as sittings  # noqa: E402
from attention_effects import EFFECTS_FILE, load_effects, measure_effect  # noqa: E402

from mnemic.reproduce.attention.columns import COLUMNS  # noqa: E402
from mnemic.reproduce.attention.table import CELLS_FILE, load_cells  # noqa: E402
from mnemic.reproduce.rows import append_rows, read_rows  # noqa: E402


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack a tiny table in pieces of less than an archive."""
    root = tmp_path_factory.mktemp("sittings")
    text_files.language_modeling(root / "enwiki")
    text_files.classes(root / "imdb")
    for name in ("train", "dev", "test"):
        rng = Random(name)
        lines = [f"{rng.randrange(5)} {' '.join(text_files.filler(rng, 6))}" for _ in range(30)]
        text_files.write(root / "sentences" / f"stsa.fine.{name}", lines)
    settings = Namespace(data=root, table=root / "table", carry=root / "carry", scale="small", sets=[], tiny=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sittings, "MIB", 1000)
        sittings.pack(Namespace(**vars(settings), piece=2))
    return root


def make_sitting(packed: Path, out: Path, minutes: float = 5.0) -> Namespace:
    out.mkdir()
    args = Namespace(carry=packed / "carry", out=out, device="cpu", rate=sittings.BASE_RATE, processes=1)
    args.deadline = time.monotonic() + 60 * minutes
    sittings.unpack_archives(args)
    return args


def keep_rows(folder: Path, **selection: list[str]) -> None:
    """Leave only some rows and columns in the plan of a sitting."""
    path = folder / sittings.PLAN_FILE
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | selection), encoding="utf-8")


def test_pieces_are_waited_for_and_put_together(packed: Path, tmp_path: Path) -> None:
    carry = tmp_path / "carry"
    assert len(list((packed / "carry").glob("words-*"))) > 1
    copytree(packed / "carry", carry)
    (carry / "texts-0").rename(tmp_path / "texts-0")
    args = make_sitting(tmp_path, tmp_path / "out")
    assert not (args.out / "data" / "imdb" / "train.jsonl").exists()
    plan = sittings.load_plan(args.out, "cpu")
    assert {job.column for job in sittings.list_jobs(plan, args.out)} & {"imdb", "sst5"} == set()
    (tmp_path / "texts-0").rename(carry / "texts-0")
    sittings.unpack_archives(args)
    jobs = sittings.list_jobs(plan, args.out)
    assert {job.column for job in jobs} == {*COLUMNS, sittings.EFFECTS}
    for path in (packed / "table" / "data").rglob("*"):
        if path.is_file() and path.parent.name != "enwiki":
            assert (args.out / path.relative_to(packed / "table")).read_bytes() == path.read_bytes()


def test_cells_are_those_of_the_table_in_the_order_of_the_stages(packed: Path, tmp_path: Path) -> None:
    args = make_sitting(packed, tmp_path / "out")
    plan = sittings.load_plan(args.out, "cpu")
    jobs = sittings.list_jobs(plan, args.out)
    cells = {job.name: job.content.fingerprint for job in jobs if job.column != sittings.EFFECTS}
    here = sittings.list_cells(plan.table, packed / "table", sittings.hash_sources(packed / "table"))
    assert cells == {cell.name: cell.fingerprint for cell in here}
    assert {job.row for job in jobs[:4]} == {"transformer-xl-cache", "transformer-xl", "full", "relative"}
    effects = [job.name for job in jobs if job.column == sittings.EFFECTS]
    assert [job.name for job in jobs[4 : 4 + len(effects)]] == effects
    assert effects[:4] == ["memory-0-0", "memory-4-0", "memory-16-0", "copies-4-0"]
    assert all(job.num_tokens > 0 for job in jobs)


def test_a_sitting_goes_on_where_the_last_one_ended(packed: Path, tmp_path: Path) -> None:
    args = make_sitting(packed, tmp_path / "out")
    keep_rows(args.out, rows=["full"], columns=["perplexity", "copies-256"])
    (args.out / "begun").mkdir()
    for job in sittings.list_jobs(sittings.load_plan(args.out, "cpu"), args.out):
        if job.column == sittings.EFFECTS:
            (args.out / "begun" / job.name).touch()  # by another process
    append_rows(args.out / EFFECTS_FILE, [{"effect": "copies-4", "seed": 1, "failed": "no memory"}])
    sittings.work(args)
    results, kept = tmp_path / "results", tmp_path / "carry" / "finished"
    sittings.wait(Namespace(out=args.out, results=results, seconds=0))
    assert {*load_cells(results)} == {"full-perplexity-0", "full-copies-256-0"}
    for _ in range(2):  # the second time adds nothing
        sittings.resume(Namespace(results=results, carry=tmp_path / "carry"))
    assert read_rows(kept / CELLS_FILE) == read_rows(results / CELLS_FILE)
    assert not (kept / EFFECTS_FILE).exists()  # what failed is tried again
    next_args = make_sitting(packed, tmp_path / "next")
    sittings.merge_lines(kept, next_args.out)
    names = {job.name for job in sittings.find_jobs(next_args)}
    assert "copies-4-1" in names
    assert not names & {"full-perplexity-0", "full-copies-256-0"}
    table = tmp_path / "table"
    copytree(packed / "table", table)
    sittings.join(Namespace(results=results, table=table))
    rows = json.loads((table / "table.json").read_text(encoding="utf-8"))["rows"]
    full = next(row for row in rows if row["name"] == "full")
    assert full["cells"]["perplexity"]["mean"] == load_cells(results)["full-perplexity-0"]["value"]
    assert "not finished" in full["cells"]["imdb"]["reason"]


def test_what_would_not_end_in_time_is_not_begun(packed: Path, tmp_path: Path) -> None:
    args = make_sitting(packed, tmp_path / "out", minutes=1.0)
    plan = sittings.load_plan(args.out, "cpu")
    jobs = sittings.list_jobs(plan, args.out)
    assert len(list(sittings.find_jobs(args))) == len(jobs)
    first = next(job for job in jobs if job.name == "full-perplexity-0")
    line = {"cell": first.name, "column": "perplexity", "value": 1.0, "seconds": 3600.0}
    append_rows(args.out / CELLS_FILE, [line])
    left = list(sittings.find_jobs(args))
    assert "perplexity" not in {job.column for job in left}  # one took an hour
    assert len(left) > len(jobs) / 2


def test_an_effect_is_measured_with_its_changes(packed: Path, tmp_path: Path) -> None:
    args = make_sitting(packed, tmp_path / "out")
    plan = sittings.load_plan(args.out, "cpu")
    jobs = {job.name: job.content for job in sittings.list_jobs(plan, args.out) if job.column == sittings.EFFECTS}
    memory = measure_effect(jobs["memory-4-0"], args.out, "cpu")
    assert list(memory["tests"]) == ["0", "2", "4", "8", "16", "32", "64"]
    assert memory["tests"]["0"] != memory["tests"]["4"]
    full = measure_effect(jobs["copies-full-0"], args.out, "cpu")
    assert list(full["tests"]) == ["8", "4", "2", "1"]
    assert list(full["tests"]["1"]) == ["accuracy", "whole texts"]
    relative = measure_effect(jobs["length-relative-0"], args.out, "cpu")
    assert list(relative["tests"]) == ["8", "32"]
    assert {*load_effects(args.out)} == {"memory-4-0", "copies-full-0", "length-relative-0"}
