"""Memories of strangers: whose are used, what others can read, and what a file may hold."""

import os
import sqlite3
from pathlib import Path
from stat import S_IMODE

import pytest
from app_runs import run

from mnemic import Memory
from mnemic.store import CheckReport, StoreError
from mnemic.store.locate import locate_memory
from mnemic.store.sqlite.side_files import JOURNAL_MAGIC
from mnemic.store.trust import distrust_path, list_trusted_paths, trust_path

NOTE = "The vault code is 99-17."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and named memories of a user of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MNEMIC_MEMORY", raising=False)
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a memory, in which we are."""
    project = tmp_path / "project"
    (project / "deep").mkdir(parents=True)
    with Memory(project / ".mnemic" / "memory.db", embedder="none", reader=None) as memory:
        memory.note("The milk is in the kitchen.")
    monkeypatch.chdir(project / "deep")
    return project


def become_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)


def test_a_project_memory_of_another_user_is_not_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    become_another_user(monkeypatch)
    for words in (["remember", "--note", NOTE], ["ask", "Where is the milk?"], ["list"]):
        result = run(*words)
        assert result.code == 2
        assert f"{project} belongs to another user" in result.err
        assert f"mnemic trust {project}" in result.err
    assert NOTE.encode() not in (project / ".mnemic" / "memory.db").read_bytes()
    assert f"mnemic trust {project / 'deep'}" in run("remember", "--here", "--note", NOTE).err


@pytest.mark.parametrize("path", [".", ".mnemic", ".mnemic/memory.db"])
def test_each_part_must_be_ours(project: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = (project / path).stat().st_ino
    lstat = Path.lstat

    def change_owner(self: Path) -> os.stat_result:
        status = lstat(self)
        return os.stat_result((*status[:4], os.geteuid() + 1, *status[5:])) if status.st_ino == theirs else status

    monkeypatch.setattr(Path, "lstat", change_owner)
    with pytest.raises(StoreError, match=r"belongs to another user, so the memory .* is not used"):
        locate_memory()


@pytest.mark.parametrize("path", [".", ".mnemic", ".mnemic/memory.db"])
def test_nobody_else_may_write_there(project: Path, path: str) -> None:
    (project / path).chmod(0o777)
    with pytest.raises(StoreError, match="everybody can write into"):
        locate_memory()
    if path == ".":
        (project / path).chmod(0o1777)  # others can put nothing in the place of ours, as in /tmp
        assert locate_memory() == project / ".mnemic" / "memory.db"


@pytest.mark.parametrize("path", [".mnemic", ".mnemic/memory.db"])
def test_a_project_memory_is_no_link(project: Path, tmp_path: Path, path: str) -> None:
    (project / path).rename(tmp_path / "elsewhere")
    (project / path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link, which may lead anywhere"):
        locate_memory()


def test_what_is_trusted_is_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    become_another_user(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("mnemic.files.is_owner", lambda status: True)
        assert run("trust", "--list").out == "no memory of others is trusted\n"
        assert run("trust", "..").out == f"{project} is trusted\n"
        assert run("trust", "--list", "--json").json == {"trusted": [str(project)]}
    assert locate_memory() == project / ".mnemic" / "memory.db"
    with Memory(embedder="none", reader=None) as memory:
        memory.note("A third one.")
        assert memory.check() == CheckReport()
    with monkeypatch.context() as patch:
        patch.setattr("mnemic.files.is_owner", lambda status: True)
        assert run("trust", "--remove", project / ".mnemic").out == f"{project} is no longer trusted\n"
        assert "is not trusted" in run("trust", "--remove", project).err
        assert "there is no" in run("trust", project / "nowhere").err
    with pytest.raises(StoreError, match="is not used"):
        locate_memory()


def test_a_file_of_another_user_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "theirs.db"
    with Memory(path, embedder="none", reader=None) as memory:
        memory.note("The milk is in the kitchen.")
    trust_path(path)
    with monkeypatch.context() as patch, Memory(path, reader=None) as memory:
        become_another_user(patch)
        memory.note("Trusted.")
    assert list_trusted_paths() == [path]
    distrust_path(path)
    become_another_user(monkeypatch)
    with Memory(path, reader=None) as memory:
        assert memory.ask("Where is the milk?").text == "The milk is in the kitchen."
        with pytest.raises(StoreError, match=f"belongs to another user.*mnemic trust {path}"):
            memory.note(NOTE)


def test_files_are_made_private_whatever_they_were(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    path.chmod(0o644)
    with Memory(path, embedder="none", reader=None) as memory:
        memory.note(NOTE)
        assert {S_IMODE(file.stat().st_mode) for file in tmp_path.glob("memory.db*")} == {0o600}
    for file in tmp_path.glob("memory.db*"):
        file.chmod(0o666)
    with Memory(path, reader=None) as memory:
        assert memory.search("vault")
        assert {S_IMODE(file.stat().st_mode) for file in tmp_path.glob("memory.db*")} == {0o600}
    path.chmod(0o444)  # it stays as read-only as it was
    with Memory(path, reader=None) as memory:
        assert memory.search("vault")
    assert S_IMODE(path.stat().st_mode) in (0o400, 0o444)


def test_git_does_not_see_a_project_memory(project: Path) -> None:
    assert (project / ".mnemic" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    (project / ".mnemic" / ".gitignore").unlink()  # of an older version
    with Memory(reader=None) as memory:
        memory.note("Two.")
    assert (project / ".mnemic" / ".gitignore").is_file()


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", "-codes"])
def test_no_file_beside_a_memory_is_a_link(project: Path, tmp_path: Path, end: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = project / ".mnemic" / f"memory.db{end}"
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    with Memory(reader=None) as memory:
        for verb in (lambda: memory.note(NOTE), memory.memories):
            with pytest.raises(StoreError, match=f"this is a link.*memory.db{end}"):
                verb()
    assert victim.read_bytes() == b"precious"


def test_a_journal_deletes_no_other_file(project: Path, tmp_path: Path) -> None:
    """SQLite deletes the file that the end of a hot journal names."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    name = str(victim).encode()
    page_number, size = (2).to_bytes(4, "big"), 4096
    header = JOURNAL_MAGIC + (0).to_bytes(4, "big") + bytes(4) + page_number + (512).to_bytes(4, "big")
    journal = (header + size.to_bytes(4, "big")).ljust(512, b"\0")
    tail = (1 << 18).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    journal += tail + (sum(name) & 0xFFFFFFFF).to_bytes(4, "big") + JOURNAL_MAGIC
    database = project / ".mnemic" / "memory.db"
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    database.with_name("memory.db-journal").write_bytes(journal)
    with Memory(reader=None) as memory, pytest.raises(StoreError, match="names another file to delete"):
        memory.memories()
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize(
    "plant",
    [
        "CREATE TRIGGER t AFTER INSERT ON passages BEGIN INSERT INTO facts VALUES (new.text, ''); END",
        "CREATE TABLE loot (text)",
        "CREATE VIEW w AS SELECT 1",
        "CREATE INDEX i ON passages (text)",
        "DROP VIEW words_read; CREATE VIEW words_read AS SELECT id, 'lies' AS words FROM passages",
        "DROP TABLE keys; CREATE TABLE keys (passage, keys CHECK (length(keys)))",
        "DROP INDEX places_document",
    ],
)
def test_a_file_with_foreign_tables_or_triggers_is_not_opened(project: Path, plant: str) -> None:
    path = project / ".mnemic" / "memory.db"
    connection = sqlite3.connect(path)
    connection.executescript(plant)
    connection.close()
    before = path.read_bytes()
    with Memory(reader=None) as memory:
        for verb in (lambda: memory.note(NOTE), memory.memories, memory.check):
            with pytest.raises(StoreError, match=r"mnemic did not make|as mnemic makes it"):
                verb()
    assert path.read_bytes() == before


def test_statistics_of_analyze_are_no_fault(project: Path) -> None:
    connection = sqlite3.connect(project / ".mnemic" / "memory.db")
    connection.execute("ANALYZE")
    connection.close()
    with Memory(reader=None) as memory:
        assert memory.check() == CheckReport()


def test_sqlite_distrusts_the_file(project: Path) -> None:
    with Memory(reader=None) as memory:
        fetch_value = memory.store.connection.fetch_value
        assert (fetch_value("PRAGMA trusted_schema"), fetch_value("PRAGMA cell_size_check")) == (0, 1)
