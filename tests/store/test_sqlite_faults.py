"""What can happen to a memory's file: each a clear error, and nothing is changed."""

import os
import shutil
import sqlite3
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from mnemic.store import CheckReport, HashedNgrams, Memory, SQLiteStore, StoreError
from mnemic.store.sqlite.migrations import SCHEMAS

WORDS = "The quick brown fox jumps over the lazy dog near the river bank. "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small memory that nobody has open."""
    with Memory(tmp_path / "memory.db", embedder="hashed-ngrams") as memory:
        memory.note("The contract ends on 30 June.")
        memory.note("The milk is in the kitchen.")
    return tmp_path / "memory.db"


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def refused(path: Path, message: str) -> None:
    """Neither reading nor writing works, each says why, and the file is as it was."""
    before = digest(path)
    with Memory(path, reader=None) as memory:
        for verb in (lambda: memory.ask("Where?"), lambda: memory.note("x"), memory.stats):
            with pytest.raises(StoreError, match=message):
                verb()
    assert digest(path) == before


def test_only_its_owner_can_read_it(path: Path) -> None:
    with Memory(path, reader=None) as memory:
        memory.note("A third one.")
        assert all(file.stat().st_mode & 0o077 == 0 for file in path.parent.iterdir())


def test_a_newer_schema(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(SCHEMAS) + 1}")
    connection.close()
    refused(path, "was written by a newer mnemic .* upgrade mnemic")


def test_a_file_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (name)")
    connection.close()
    refused(path, "a SQLite file of another program")
    text = tmp_path / "text.db"
    text.write_text("no database " * 1000, encoding="utf-8")
    refused(text, "no SQLite file")


@pytest.mark.parametrize("fraction", [0.9, 0.5, 0.1])
def test_a_file_that_was_cut_short(path: Path, fraction: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * fraction)])
    refused(path, "damaged or truncated; restore a backup")


def test_a_page_that_was_overwritten_is_found(path: Path) -> None:
    content = bytearray(path.read_bytes())
    pages = range(4096, len(content), 4096)
    position = next(at for at in pages if b"milk" in content[at : at + 4096])
    content[position : position + 100] = bytes(100)
    path.write_bytes(content)
    with Memory(path, reader=None) as memory:
        assert "damaged" in " ".join(memory.check().faults)


def test_another_model(path: Path) -> None:
    with Memory(path, embedder=HashedNgrams(width=64), reader=None) as memory:
        with pytest.raises(StoreError, match=r"was written with .*hashed-ngrams.*mnemic reindex"):
            memory.ask("Where is the milk?")
        with pytest.raises(StoreError, match="Nothing was changed"):
            memory.note("New.")
        assert [memory_path.title for memory_path in memory.memories()][1] == "The milk is in the kitchen."
        list(memory.reindex(HashedNgrams(width=64)))
        assert memory.ask("Where is the milk?").text == "The milk is in the kitchen."
        assert memory.check() == CheckReport()


def test_a_model_that_is_not_here(path: Path) -> None:
    store = SQLiteStore(path)
    with store.write_session(), store.transaction():
        model = store.get_model()
        assert model is not None
        store.set_model(model._replace(name="/nowhere/at/all"))
    store.close()
    with Memory(path, reader=None) as memory:
        with pytest.raises(StoreError, match="no embedder '/nowhere/at/all'"):
            memory.ask("Where is the milk?")
        list(memory.reindex("hashed-ngrams"))
        assert memory.ask("Where is the milk?").has_answer


def test_a_disk_that_is_full(path: Path, tmp_path: Path) -> None:
    """A full disk as SQLite reports it, then as a limit of the file size."""
    with Memory(path, reader=None) as memory:
        memory.store.connection.execute("PRAGMA max_page_count = 60")  # type: ignore[attr-defined]
        with pytest.raises(StoreError, match="the disk is full; free some space"):
            memory.note(WORDS * 1000)
        assert len(memory.memories()) == 2
        assert memory.check() == CheckReport()
    large = tmp_path / "large.txt"
    large.write_text(WORDS * 6_000, encoding="utf-8")
    program = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
from mnemic.store import Memory
Memory({str(path)!r}).remember({str(large)!r})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr
    assert "the disk" in done.stderr
    with Memory(path, reader=None) as memory:
        assert len(memory.memories()) == 2
        assert memory.check() == CheckReport()
        memory.remember(large)
        assert len(memory.memories()) == 3


READ_ONLY = """
import os
from mnemic.store import Memory, StoreError
os.setgid(65534); os.setuid(65534)  # after the imports: who knows where Python lies
memory = Memory({path!r}, reader=None)
print(memory.ask("Where is the milk?").text)
print(memory.check())
try:
    memory.note("New.")
except StoreError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which root alone can")
def test_a_file_that_is_read_only(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """For a user who may read file and folder, and write neither."""
    for folder in (path.parent, *path.parent.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            if folder.parent == folder or not str(folder).startswith("/tmp/"):
                pytest.skip(f"{folder} cannot be made readable")
            folder.chmod(0o755)
    path.chmod(0o644)
    before = digest(path)
    program = READ_ONLY.format(path=str(path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "The milk is in the kitchen.", done.stderr
    assert "CheckReport(faults=(), left_out=('whether the full-text" in done.stdout.splitlines()[1]
    assert "is read-only; reading it still works" in done.stdout.splitlines()[2]
    assert digest(path) == before


def test_an_empty_or_missing_file(tmp_path: Path) -> None:
    with Memory(tmp_path / "none.db") as memory:
        with pytest.raises(StoreError, match=r"there is no memory .*; begin one: mnemic remember"):
            memory.ask("Who?")
        with pytest.raises(StoreError, match="is a folder"):
            Memory(tmp_path).stats()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()  # what a kill right after its making leaves
    with Memory(tmp_path / "empty.db", embedder="hashed-ngrams") as memory:
        with pytest.raises(StoreError, match="an empty file: nothing was remembered in it yet"):
            memory.ask("Who?")
        assert (tmp_path / "empty.db").stat().st_size == 0  # who only asks changes nothing
        memory.note("The milk is in the kitchen.")
        assert memory.store.get_model() == HashedNgrams().model


def test_a_copy_is_a_backup(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "copy.db")
    with Memory(tmp_path / "copy.db", reader=None) as memory:
        assert memory.ask("When does the contract end?").text == "The contract ends on 30 June."


def test_a_reader_that_holds_the_journal(path: Path) -> None:
    """What is forgotten is then told to leave traces, and the next writer clears them."""
    reader = SQLiteStore(path)
    with Memory(path, reader=None) as memory:
        memory.note("A secret passphrase.")
        memory.store.connection.execute("PRAGMA busy_timeout = 20")  # type: ignore[attr-defined]
        reader.connection.execute("BEGIN")
        assert len(list(reader.list_documents())) == 3
        done = memory.forget(3, verify=True)
        assert not done.scrubbed
        assert done.traces
        assert memory.store.has_pending_scrub()
        assert len(list(reader.list_documents())) == 3  # it still sees what it saw
        reader.connection.execute("COMMIT")
        assert memory.check() == CheckReport()
        assert not memory.store.has_pending_scrub()
        assert memory.store.find_traces([b"passphrase"]) == []
    reader.close()
