"""The table of objectives on a lent GPU: pieces, rows in order, and sittings that go on."""

import json
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest
import text_files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import objectives_sittings as sittings  # noqa: E402

from mnemic.reproduce.objectives.rows import load_rows  # noqa: E402
from mnemic.reproduce.objectives.table import CELLS_FILE, load_lines  # noqa: E402
from mnemic.reproduce.rows import read_rows  # noqa: E402

ROWS = ["mlm", "sop", "ernie"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack a tiny table in pieces of less than an archive."""
    root = tmp_path_factory.mktemp("sittings")
    data = root / "data"
    for name, count in (("train", 30), ("valid", 8)):
        text_files.corpus(data / "enwiki", count, seed=count)
        (data / "enwiki" / "corpus.jsonl").rename(data / "enwiki" / f"{name}.jsonl")
    text_files.pairs(data / "glue" / "RTE", count=60)
    (data / "glue" / "RTE" / "test.tsv").rename(data / "glue" / "RTE" / "dev.tsv")
    text_files.spans(data / "squad", count=60)
    options = {"data": data, "table": root / "table", "carry": root / "carry", "scale": "small", "rows": ROWS}
    sittings.pack(Namespace(**options, sets=[], tiny=True, piece=0.001))
    return root


def make_sitting(packed: Path, out: Path, **options: object) -> Namespace:
    """Unpack what travelled, as ``run`` does."""
    defaults = {"device": "cpu", "rows": [], "budgets": ["tokens"], "seeds": 1}
    args = Namespace(carry=packed / "carry", out=out, deadline=time.monotonic() + 60, **(defaults | options))
    out.mkdir()
    assert sittings.unpack_archives(args)
    return args


def for_row(args: Namespace, name: str) -> Namespace:
    return Namespace(**vars(args), names=(name,))


def test_all_rows_have_a_place_in_the_order() -> None:
    assert sittings.order_rows([]) == list(dict.fromkeys([*sittings.ORDER, *load_rows()]))
    assert sittings.order_rows(["none", "sop", "mlm"]) == ["mlm", "sop", "none"]


def test_pieces_are_waited_for(packed: Path, tmp_path: Path) -> None:
    pieces = sorted((packed / "carry").glob("sequences-*"))
    assert len(pieces) > 1
    args = Namespace(carry=tmp_path, out=tmp_path / "out", minutes=0)
    (tmp_path / "out").mkdir()
    assert not sittings.unpack_archives(args)
    with pytest.raises(TimeoutError, match="has not all pieces"):
        sittings.run(args)


def test_a_sitting_goes_on_where_the_last_one_ended(packed: Path, tmp_path: Path) -> None:
    """Lines of one row travel back, are joined here, and are not measured again."""
    args = make_sitting(packed, tmp_path / "out")
    sittings.make_sequences(args)
    sittings.train_row(for_row(args, "mlm"))
    sittings.train_tasks(for_row(args, "mlm"))
    assert {*load_lines(args.out)} == {"mlm-tokens", "mlm-tokens-rte-0", "mlm-tokens-squad-0"}
    results = tmp_path / "results"
    sittings.wait(Namespace(out=args.out, results=results, seconds=0))
    sittings.join(Namespace(results=results, table=packed / "table", data=packed / "data"))
    table = json.loads((packed / "table" / "table.json").read_text(encoding="utf-8"))
    row = table["rows"][0]["budgets"]["tokens"]
    assert row["tasks"]["rte"]["mean"] == load_lines(results)["mlm-tokens-rte-0"]["value"]
    assert row["tasks"]["rte"]["missing_seeds"] == 1
    assert table["unfinished"] == 5
    assert "--data enwiki --glue glue" in table["command"]
    carry = tmp_path / "carry"
    for _ in range(2):  # the second time adds nothing
        sittings.resume(Namespace(results=results, carry=carry))
    assert read_rows(carry / "finished" / CELLS_FILE) == read_rows(results / CELLS_FILE)
    again = make_sitting(packed, tmp_path / "next")
    sittings.merge_lines(carry / "finished", again.out)
    sittings.make_sequences(again)
    for action in (sittings.train_row, sittings.train_tasks):
        action(for_row(again, "mlm"))
    assert read_rows(again.out / CELLS_FILE) == read_rows(results / CELLS_FILE)
    assert not (again.out / "networks").exists()
    sittings.train_row(for_row(again, "ernie"))  # names have travelled, too
    assert "ernie-tokens" in load_lines(again.out)


def test_a_row_that_would_not_end_in_time_is_not_begun(packed: Path, tmp_path: Path) -> None:
    args = make_sitting(packed, tmp_path / "out", rows=["mlm"], row_minutes=60, processes=1)
    sittings.run_rows(args)
    assert "mlm: no time, a row takes 60.0 minutes" in (args.out / "log").read_text(encoding="utf-8")
    assert not load_lines(args.out)
