"""Files that are opened for writing: planted links lead nowhere, and leftovers are cleared."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from app_runs import run
from time_limits import limit_time

from mnemic import Memory
from mnemic.checkpoint import lock
from mnemic.checkpoint.atomic_files import write_json
from mnemic.checkpoint.lock import acquire_lock, lock_file, lock_folder
from mnemic.files import UnsafeFileError, list_temporaries, open_private, replace_file, write_text
from mnemic.recipe import ConfigError
from mnemic.store import StoreError
from mnemic.text.tokenizers.contract import write_tokenizer_file

PRECIOUS = "alias ll='ls -l'\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "home" / ".bashrc"
    path.parent.mkdir()
    path.write_text(PRECIOUS, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("plant", [os.symlink, os.link], ids=["link", "hard link"])
def test_a_planted_link_is_not_opened(folder: Path, victim: Path, plant: Callable[[Path, Path], None]) -> None:
    plant(victim, folder / "x")
    with pytest.raises(UnsafeFileError, match="link"):
        open_private(folder / "x")
    with pytest.raises(UnsafeFileError, match="link"):
        acquire_lock(folder / "x")
    with pytest.raises(UnsafeFileError, match="link"):
        write_json(folder / "x", {})
    with pytest.raises(UnsafeFileError, match="link"):
        write_text(folder / "x", "a row", append=True)
    assert victim.read_text(encoding="utf-8") == PRECIOUS


def test_a_link_to_nothing_makes_nothing(folder: Path, tmp_path: Path) -> None:
    (folder / "x").symlink_to(tmp_path / "new")
    with pytest.raises(UnsafeFileError):
        open_private(folder / "x")
    assert not (tmp_path / "new").exists()


def test_a_pipe_and_a_file_of_another_user_are_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe")
    with limit_time(10), pytest.raises(UnsafeFileError, match="no regular file"):
        open_private(folder / "pipe")
    with limit_time(10), pytest.raises(UnsafeFileError, match="no regular file"):
        write_text(folder / "pipe", "a row")
    (folder / "x").write_text(PRECIOUS, encoding="utf-8")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(UnsafeFileError, match="another user"):
        acquire_lock(folder / "x")
    assert (folder / "x").read_text(encoding="utf-8") == PRECIOUS
    os.close(open_private(folder / "x", any_owner=True))


def test_a_lock_changes_nothing_before_it_is_held(folder: Path) -> None:
    descriptor = acquire_lock(folder / "x")
    assert stat.S_IMODE((folder / "x").stat().st_mode) == 0o600
    with pytest.raises(BlockingIOError, match=f"process {os.getpid()}"):
        acquire_lock(folder / "x")
    assert (folder / "x").read_text(encoding="ascii") == f"process {os.getpid()}"
    os.close(descriptor)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO])
def test_a_drive_without_locks_says_what_to_do(folder: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    memory = Memory(folder / "memory.db", embedder="none", reader=None)
    memory.note("One.")
    monkeypatch.setattr(lock.fcntl, "flock", fail)
    with pytest.raises(ConfigError, match="put it on a local disk"), lock_folder(folder / "run"):
        pass
    with pytest.raises(StoreError, match=r"cannot be written: .*put it on a local disk"):
        memory.note("Two.")
    memory.close()


def test_files_with_old_temporary_names_are_left_alone(folder: Path, victim: Path) -> None:
    """The names that ``.new`` and lock files had, or have: all planted."""
    planted = [folder / name for name in (".backup.jsonl.new", "tokenizer.json.new", ".notes.mem.lock", ".lock")]
    for path in planted:
        path.symlink_to(victim)
    with Memory(folder / "memory.db", embedder="none", reader=None) as memory:
        memory.note("The key is under the mat.")
        list(memory.export(folder / "backup.jsonl"))
    write_tokenizer_file(folder, "{}")
    with pytest.raises(ConfigError, match="this is a link"), lock_file(folder / "notes.mem", ""):
        pass
    with pytest.raises(ConfigError, match="this is a link"), lock_folder(folder):
        pass
    assert victim.read_text(encoding="utf-8") == PRECIOUS
    assert not (folder / "backup.jsonl").is_symlink()


@pytest.mark.parametrize("words", ["check", "remember --note Two."])
def test_a_cloned_memory_overwrites_no_file(
    tmp_path: Path, victim: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of the writer is a link that came with the repository."""
    project = tmp_path / "project"
    project.mkdir()
    with Memory(project / ".mnemic" / "memory.db", embedder="none", reader=None) as memory:
        memory.note("One.")
    (project / ".mnemic" / "memory.db-writer").unlink()
    (project / ".mnemic" / "memory.db-writer").symlink_to(victim)
    monkeypatch.chdir(project)
    result = run(*words.split())
    assert victim.read_text(encoding="utf-8") == PRECIOUS
    assert "this is a link" in result.err


def test_a_target_that_is_a_link_is_replaced_and_a_device_is_refused(folder: Path, victim: Path) -> None:
    (folder / "x").symlink_to(victim)
    with replace_file(folder / "x") as file:
        file.write(b"new")
    assert victim.read_text(encoding="utf-8") == PRECIOUS
    assert stat.S_IMODE((folder / "x").lstat().st_mode) == 0o600
    (folder / "out").symlink_to("/dev/null")
    with pytest.raises(UnsafeFileError, match="no regular file"), replace_file(folder / "out"):
        pass


def test_a_failure_leaves_the_old_file_and_nothing_else(folder: Path) -> None:
    (folder / "x").write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="closed"), replace_file(folder / "x") as file:
        file.close()
    assert [path.name for path in folder.iterdir()] == ["x"]
    assert (folder / "x").read_text(encoding="utf-8") == "old"


def test_what_replaces_a_file_is_on_the_disk_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before the rename, its folder after."""
    steps: list[str] = []
    sync, rename = os.fsync, os.replace

    def record_sync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("rename"), rename(a, b)))
    with replace_file(folder / "x") as file:
        file.write(b"new")
    assert steps == ["file", "rename", "folder"]


KILLED = """
import os, signal, sys
from pathlib import Path
from mnemic.files import replace_file
with replace_file(Path(sys.argv[1])) as file:
    file.write(b"a secret")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_writer_clears_what_a_killed_one_left(folder: Path) -> None:
    path = folder / "x"
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    (folder / ".x.new").touch()  # of version 0.1
    (folder / ".x.mine.new").touch()  # of somebody else
    assert len(list_temporaries(path)) == 2
    with replace_file(path) as file:
        file.write(b"first")
        (used,) = list_temporaries(path)
        with replace_file(path) as second:  # two at once: neither removes the other's file
            second.write(b"second")
        assert list_temporaries(path) == [used]
    assert path.read_bytes() == b"first"
    assert sorted(entry.name for entry in folder.iterdir()) == [".x.mine.new", "x"]


def test_a_temporary_file_taken_for_a_leftover_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its creation and its lock another process may remove it."""
    flock, calls = fcntl.flock, []

    def remove_first(descriptor: int, operation: int) -> None:
        calls.append(operation)
        if len(calls) == 1:
            for path in list_temporaries(folder / "x"):
                path.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with replace_file(folder / "x") as file:
        file.write(b"new")
    assert (folder / "x").read_bytes() == b"new"
