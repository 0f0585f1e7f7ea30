"""Lines that keep a promise: without each of them, one of these tests fails."""

import os
import random
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.predict.memory_state import load_state_file
from mnemic.store import SQLiteStore, StoreError
from mnemic.store.contract import Document
from mnemic.store.ingest.forget import MIN_TRACE_BYTES, collect_traces, sample_bytes, split_bytes
from mnemic.store.sqlite.quantized import QuantizedVectors, write_quantized

SECRET = "The passphrase of the cellar is written on the back of the third painting."
OLD_STATE = Path(__file__).parents[1] / "files_0_1" / "keeps.mem"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A memory of some notes, one of them long."""
    with Memory(tmp_path / "memory.db", embedder="hashed-ngrams", reader=None) as memory:
        for number in range(12):
            memory.note(f"Person{number} lives in house {number * 7}. Everybody knows that. Who else?")
        memory.note(" ".join(f"{SECRET} That is number {number}." for number in range(200)))
    return tmp_path / "memory.db"


def test_what_is_committed_is_on_the_disk_and_in_no_temporary_file(path: Path) -> None:
    with Memory(path, reader=None) as memory:
        pragmas = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "temp_store": 2, "foreign_keys": 1}
        for moment in range(2):
            values = {name: memory.store.connection.fetch_value(f"PRAGMA {name}") for name in pragmas}
            assert values == pragmas
            if moment == 0:
                memory.forget(1)  # which rewrites the file


def test_what_is_deleted_is_overwritten_at_once(path: Path) -> None:
    """Even before the file is rewritten: what a kill then leaves has no text."""
    store = SQLiteStore(path)
    with store.write_session(), store.transaction():
        store.erase_documents([13])
    assert store.connection.fetch_all("PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
    store.close()
    assert SECRET.encode() not in path.read_bytes()


def test_a_forgetting_rewrites_the_file(path: Path) -> None:
    """No page is left over that could hold an old copy of a row."""
    before = path.stat().st_size
    with Memory(path, reader=None) as memory:
        assert memory.forget(13).scrubbed
        assert memory.store.connection.fetch_value("PRAGMA freelist_count") == 0
    assert path.stat().st_size < before


def export(folder: Path, path: Path) -> None:
    with Memory(path, reader=None) as memory:
        list(memory.export(folder / "out"))


def save_codes(folder: Path, path: Path) -> None:
    ids, scales = numpy.arange(1, 4), numpy.ones(3, numpy.float32)
    write_quantized(folder / "out", QuantizedVectors(ids, scales, numpy.ones((3, 4), numpy.int8)), "stamp")


def save_state(folder: Path, path: Path) -> None:
    load_state_file(OLD_STATE).save(folder / "out")


@pytest.mark.parametrize("write", [export, save_codes, save_state])
def test_a_file_is_on_the_disk_before_it_has_its_name(
    write: Callable[[Path, Path], None], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, steps = tmp_path / "out", list[str]()
    folder.mkdir()
    sync, rename = os.fsync, os.replace

    def record_sync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("rename"), rename(a, b)))
    write(folder, path)
    assert steps == ["file", "rename", "folder"]
    assert [file.name for file in folder.iterdir()] == ["out"]
    assert stat.S_IMODE((folder / "out").stat().st_mode) == 0o600


def test_the_shortest_traces_are_looked_for() -> None:
    """Names, words, texts and vectors of just enough bytes."""
    word = "k" * MIN_TRACE_BYTES
    document = Document(1, word, "note", word[1:], (), None, "", None, 1, 1, (word.upper(),))
    traces = collect_traces(document, [f"A {word}"], numpy.zeros((0, 4)), numpy.zeros((0, 4)))
    assert {word.encode(), word.upper().encode(), word[2:8].encode()} <= set(traces)
    assert word[1:].encode() not in traces
    assert list(split_bytes(word)) == [word.encode()]
    assert list(split_bytes(word[1:])) == []
    assert sample_bytes(bytes(3) + b"\1" * MIN_TRACE_BYTES) == b"\1" * MIN_TRACE_BYTES
    assert sample_bytes(b"\1" * (MIN_TRACE_BYTES - 1)) == b""


@pytest.mark.parametrize("value", ["NULL", "17", "'text'", "x'00'"])
def test_a_vector_that_is_none_is_an_error_with_advice(path: Path, value: str) -> None:
    """A bit that flips in a row's header makes a NULL, whatever the table demands."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'BLOB NOT NULL', 'BLOB') WHERE name = 'vectors'")
    connection.commit()
    connection.close()
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE vectors SET vector = {value} WHERE passage = 3")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'BLOB', 'BLOB NOT NULL') WHERE name = 'vectors'")
    connection.commit()
    connection.close()
    with Memory(path, reader=None) as memory:
        for verb in (memory.ask, memory.search):
            with pytest.raises(StoreError, match="a vector of the memory is damaged; `mnemic check` reports more"):
                verb("Where does Person2 live?")
        assert memory.check().faults


def test_whatever_bit_flips_errors_say_what_to_do(path: Path) -> None:
    content, generator = path.read_bytes(), random.Random(0)
    positions = [position for position in range(100, len(content)) if content[position]]
    reads: list[Callable[[Memory], object]] = [
        lambda memory: memory.ask("Where does Person2 live?"),
        lambda memory: [memory.text(document.id) for document in memory.memories(retired=True)],
        lambda memory: memory.check(),
    ]
    num_errors = 0
    for _ in range(120):
        damaged = bytearray(content)
        damaged[generator.choice(positions)] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        with Memory(path, reader=None) as memory:
            for read in reads:
                try:
                    read(memory)
                except StoreError:
                    num_errors += 1
    assert num_errors
