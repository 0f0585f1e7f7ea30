"""A full disk (a small tmpfs): acknowledged documents stay, and work can continue."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from app_runs import run

from mnemic.store import CheckReport, Memory, StoreError

LONG = " ".join(f"Entry {number} says that box {number} holds {number * 7} nails." for number in range(60))


def mounted(*words: str | Path) -> bool:
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    if not shutil.which("mount") or not mounted("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder):
        pytest.skip("mounts a tmpfs, which needs root and the right to")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill_disk(memory: Memory, limit: int = 500) -> list[str]:
    """Note after note until the disk is full: those that were acknowledged."""
    done: list[str] = []
    for number in range(limit):
        try:
            memory.note(f"Note {number}. {LONG}")
        except StoreError as error:
            assert "the disk is full; free some space and try again" in str(error)  # noqa: PT017
            return done
        done.append(f"Note {number}.")
    pytest.fail("the disk did not fill up")


def list_notes(memory: Memory) -> list[str]:
    return [hit.text.split(". ")[0] + "." for hit in memory.search("Note", limit=500) if hit.text.startswith("Note")]


def test_what_was_acknowledged_stays_and_the_rest_goes_on(small: Path) -> None:
    with Memory(small / "memory.db", embedder="hashed-ngrams") as memory:
        done = fill_disk(memory)
        assert len(done) > 5
        assert memory.check() == CheckReport()
        assert sorted(list_notes(memory)) == sorted(done)
        assert memory.ask("How many nails does box 9 hold?").has_answer
    with Memory(small / "memory.db") as again:  # as the next program finds it
        assert again.check() == CheckReport()
        assert sorted(list_notes(again)) == sorted(done)
        assert mounted("-o", "remount,size=8m", small)
        again.note("There is room now.")
        assert again.check() == CheckReport()
        assert len(again.memories()) == len(done) + 1


def test_forgetting_on_a_full_disk_is_whole_or_not_at_all(small: Path) -> None:
    with Memory(small / "memory.db", embedder="hashed-ngrams") as memory:
        done = fill_disk(memory)
        first = memory.memories()[0].id
        try:
            memory.forget(first, verify=True)
            remaining = len(done) - 1
        except StoreError as error:
            assert "disk is full" in str(error)  # noqa: PT017
            remaining = len(done)
        assert memory.check() == CheckReport()
        assert len(memory.memories()) == remaining
        assert mounted("-o", "remount,size=8m", small)
        memory.forget(memory.memories()[0].id, verify=True)
        assert len(memory.memories()) == remaining - 1


def test_the_command_line_says_so_and_goes_on(small: Path, tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    for number in range(60):
        (papers / f"{number}.txt").write_text(f"Paper {number}. {LONG}", encoding="utf-8")
    words = ("remember", papers, "--memory", small / "memory.db", "--embedder", "hashed-ngrams")
    stopped = run(*words)
    assert stopped.code == 2
    assert "the disk is full; free some space and try again" in stopped.err
    assert mounted("-o", "remount,size=16m", small)
    assert run(*words).code == 0
    with Memory(small / "memory.db") as memory:
        assert len(memory.memories()) == 60
        assert memory.check() == CheckReport()
