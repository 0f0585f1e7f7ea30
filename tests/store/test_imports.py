"""Exports that were edited, or made to do harm: each is refused in one line, or is sound."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_runs import folder, memory, write

from mnemic import Memory
from mnemic.store import CheckReport, StoreError
from mnemic.store.ingest import export_reader

__all__ = ["folder", "memory"]  # fixtures

Rows = list[Any]


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """An export of three documents: of a file (line 2), retired (line 4), and its new version."""
    path = tmp_path_factory.mktemp("export")
    write(path / "a.txt", "The key is under the mat. The bread is in the kitchen.")
    with Memory(path / "memory.db", embedder="none", reader=None) as memory:
        memory.remember(path / "a.txt")
        memory.update(memory.note("It is on Monday. Or not."), "It is on Friday. Or later.")
        list(memory.export(path / "all.jsonl"))
    return [json.loads(line) for line in (path / "all.jsonl").read_text(encoding="utf-8").splitlines()]


def write_rows(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def change_document(row: int, **fields: Any) -> Callable[[Rows], None]:
    return lambda rows: rows[row]["document"].update(fields)


def change_passage(position: int, value: Any) -> Callable[[Rows], None]:
    return lambda rows: rows[2]["passage"].__setitem__(position, value)


FAR = 2**70
PLACE = ["/home/ann/a.txt", 1, 54, 0]
FAULTS: dict[str, Callable[[Rows], None]] = {
    "a place of 2^70 bytes": change_document(1, places=[["/a.txt", 1, FAR, 0]]),
    "a place of another document": change_document(1, places=[["/a.txt", 2, 54, 0]]),
    "a place without a path": change_document(1, places=[["", 1, 54, 0]]),
    "a list as previous": change_document(5, previous=[2]),
    "its own previous": change_document(5, previous=3),
    "a number of 2^70": change_document(1, id=FAR),
    "true as a number": change_document(1, id=True),
    "a retired one with a place": change_document(3, places=[["/a.txt", 2, 54, 0]]),
    "a time that is none": change_document(1, remembered="yesterday"),
    "a title that cannot be stored": change_document(1, title="\ud800"),
    "a kind that is a list": change_document(1, kind=[]),
    "notes that are a text": change_document(1, notes="abc"),
    "an event of another document": change_document(1, events=[[2, "2026-01-01", "remembered", ""]]),
    "an unknown field": change_document(1, trigger="DROP"),
    "more passages than there are": change_document(1, passages=2),
    "no document": lambda rows: rows.__setitem__(1, {"document": None}),
    "a page of 2^70": change_passage(1, FAR),
    "a passage without sentences": change_passage(2, []),
    "negative offsets": change_passage(2, [[0, 25, 1, -5, 25]]),
    "a sentence outside its text": change_passage(2, [[0, 99, 1, 0, 25]]),
    "two sentences at one place": change_passage(2, [[0, 25, 1, 0, 25], [0, 25, 1, 0, 25]]),
    **{
        f"the box {box}": lambda rows, box=box: rows[2]["passage"].append([box])
        for box in (
            None,
            [],
            [0, 0, 1],
            [0, 0, 1, 1, 1],
            [0, 0, 1, "1"],
            [0, 0, 1, True],
            [0, 0, 1, float("nan")],
            [0, 0, 1, float("inf")],
            [-0.1, 0, 1, 1],
            [0, 0, FAR, 1],
            [0.5, 0, 0.5, 1],
            [0, 1, 1, 0.5],
        )
    },
    "more boxes than lines": lambda rows: rows[2]["passage"].append([[0, 0, 1, 1]] * 2),
    "boxes twice": lambda rows: rows[2]["passage"].extend([[], []]),
    "a text that cannot be stored": change_passage(0, "x\0y"),
    "a document without passages": lambda rows: rows.pop(2),
    "a document that is there twice": lambda rows: rows.extend(rows[1:3]),
    "a file of two documents": lambda rows: rows[5]["document"].update(
        places=[[rows[1]["document"]["places"][0][0], 3, 54, 0]]
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_and_nothing_is_written(fault: str, rows: Rows, memory: Memory, tmp_path: Path) -> None:
    changed = deepcopy(rows)
    FAULTS[fault](changed)
    with pytest.raises(StoreError, match=r"all.jsonl, line \d is not as") as error:
        list(memory.take(write_rows(tmp_path / "all.jsonl", changed)))
    assert "\n" not in str(error.value)
    with pytest.raises(StoreError, match="there is no memory"):
        memory.stats()


def test_an_export_takes_no_file_from_a_document_that_is_there(rows: Rows, memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "here.txt", "Something else is here.")
    memory.remember(path)
    changed = deepcopy(rows)
    changed[1]["document"]["places"][0][0] = str(path)
    write_rows(tmp_path / "all.jsonl", changed)
    with (
        Memory(str(memory.path), reader=None) as same,
        pytest.raises(StoreError, match="holds document 1 here, and another one there; nothing was imported"),
    ):
        list(same.take(tmp_path / "all.jsonl"))
    assert [document.name for document in memory.memories(retired=True)] == [str(path)]
    list(memory.take(write_rows(tmp_path / "all.jsonl", rows)))
    assert memory.check() == CheckReport()


def test_a_line_without_end_is_not_read_to_its_end(
    rows: Rows, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_reader, "MAX_LINE_CHARS", 100)
    with pytest.raises(StoreError, match="it is longer than 100 characters"):
        list(memory.take(write_rows(tmp_path / "all.jsonl", rows)))
    with pytest.raises(StoreError, match="there is no file"):
        list(memory.take(tmp_path))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.integers(-1, 3) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def mutate(data: st.DataObject, value: Any) -> Any:
    """Replace, remove or repeat a value somewhere inside of ``value``."""
    if isinstance(value, dict | list) and value and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        action = data.draw(st.sampled_from(["inside", "inside", "inside", "remove", "repeat"]))
        changed = value.copy()
        if action == "inside":
            changed[key] = mutate(data, value[key])
        elif action == "remove":
            del changed[key]
        elif isinstance(changed, list):
            changed.insert(data.draw(st.integers(0, len(changed))), value[key])
        return changed
    return data.draw(VALUES)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(data=st.data())
def test_whatever_was_changed_it_is_refused_or_sound(rows: Rows, data: st.DataObject) -> None:
    changed = rows
    for _ in range(data.draw(st.integers(1, 2))):
        changed = mutate(data, changed)
    with TemporaryDirectory() as name, Memory(Path(name, "memory.db"), embedder="none", reader=None) as memory:
        path = write_rows(Path(name, "all.jsonl"), changed if isinstance(changed, list) else [changed])
        try:
            list(memory.take(path))
        except StoreError:
            assert not memory.exists()
            return
        assert memory.check() == CheckReport()
        for query in ("Where is the key?", "When is it?"):
            memory.ask(query)
        list(memory.export(path))
