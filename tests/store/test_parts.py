"""Large files in parts, documents inside files, and files that were not read."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from document_files import docx
from store_runs import SECRET, folder, memory, outcomes, write
from time_limits import limit_time

from mnemic import Memory
from mnemic.store import CheckReport, count_unread
from mnemic.store.ingest import parts
from mnemic.text.documents import DocumentError, FileListing, find_files, open_file

__all__ = ["folder", "memory"]  # fixtures

LINES = [f"Person {n} lives in house {n * 7}.\n\n" for n in range(8000)]  # about 700 passages
INVITATION = """\
From: Ann <ann@example.org>
Date: Mon, 2 Mar 2026 10:00:00 +0000
Subject: The menu
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain

The table is booked for Friday.
--b
Content-Type: text/plain
Content-Disposition: attachment; filename="menu.txt"

The soup costs {price} euros.
--b
Content-Type: text/plain
Content-Disposition: attachment; filename="menu.txt"

The wine is from Alsace.
--b--
"""


def interrupt(memory: Memory, path: Path) -> int:
    """Stop remembering a file after a part of it, as Ctrl-C does; return the stored passages."""
    steps = memory.remembering([path])
    while not next(steps).passages:
        pass
    steps.close()
    return memory.stats().passages


def test_an_interrupted_file_is_read_on_where_it_stopped(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "large.txt", "".join(LINES))
    stored = interrupt(memory, path)
    assert stored >= parts.PART_PASSAGES
    (unfinished,) = memory.memories()
    assert unfinished.name == f"{path} (read in part)"
    assert "remember it again" in unfinished.notes[0]
    assert memory.ask("Where does Person 12 live?").evidence[0].name == unfinished.name
    assert memory.check() == CheckReport()
    steps = memory.remember(path)
    assert outcomes(steps) == {"large.txt": "new"}
    (document,) = memory.memories()
    assert (document.id, document.name, document.notes) == (unfinished.id, str(path), ())
    assert steps[0].passages == memory.stats().passages - stored  # only the rest was read
    assert memory.text(path).split() == "".join(LINES).split()
    assert memory.ask("Where does Person 7999 live?").text == "Person 7999 lives in house 55993."
    assert outcomes(memory.remember(path)) == {"large.txt": "unchanged"}
    assert memory.check() == CheckReport()


def test_what_a_file_held_before_stays_until_it_is_read(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "large.txt", SECRET)
    memory.remember(path)
    write(path, "".join(LINES), age=50)
    interrupt(memory, path)
    assert memory.ask("What is the passphrase?").text == "The passphrase is incomprehensibilities."
    assert len(memory.memories()) == 2
    write(path, "".join(reversed(LINES)), age=40)  # another content: what was read is of no use
    assert outcomes(memory.remember(path)) == {"large.txt": "changed"}
    (document,) = memory.memories()
    assert memory.text(document.id).split() == "".join(reversed(LINES)).split()
    assert [version.title for version in memory.history(path)[0]] == ["large", "large"]


def test_a_large_file_that_turns_out_broken_leaves_nothing(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "large.txt", SECRET)
    memory.remember(path)
    write(path, "".join(LINES), age=50)
    with path.open("ab") as file:
        file.write(b"\n\n" + b"x" * 11_000_000)  # a line without an end
    assert outcomes(memory.remember(path)) == {"large.txt": "broken"}
    (document,) = memory.memories(retired=True)
    assert memory.text(document.id).startswith("The passphrase")
    assert memory.check() == CheckReport()


def test_forgetting_takes_along_what_was_read_in_part(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "large.txt", SECRET)
    memory.remember(path)
    write(path, "".join(LINES), age=50)
    interrupt(memory, path)
    result = memory.forget(path, verify=memory.path == tmp_path / "memory.db")
    assert len(result.documents) == 2
    assert not memory.memories(retired=True)
    write(path, "".join(LINES), age=30)
    interrupt(memory, path)
    assert len(memory.forget(tmp_path).documents) == 1


KILLED = """
import os, signal, sys
from mnemic import Memory
for step in Memory(sys.argv[1], embedder="hashed-ngrams", reader=None).remembering([sys.argv[2]]):
    if step.passages >= 500:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_is_gone_on_with(tmp_path: Path) -> None:
    path, database = write(tmp_path / "large.txt", "".join(LINES)), tmp_path / "memory.db"
    killed = subprocess.run([sys.executable, "-c", KILLED, database, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    with Memory(database, embedder="hashed-ngrams", reader=None) as memory:
        stored = memory.stats().passages
        assert stored >= 500
        assert memory.remember(path)[0].passages == memory.stats().passages - stored > 0
        assert memory.text(path).split() == "".join(LINES).split()
        assert memory.check() == CheckReport()


def test_attachments_go_with_their_file(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    folder.mkdir()
    path = write(folder / "menu.eml", INVITATION.format(price=4))
    assert outcomes(memory.remember(folder)) == {"menu.eml": "new"}
    soup = memory.ask("What does the soup cost?")
    assert (soup.text, soup.evidence[0].name) == ("The soup costs 4 euros.", f"{path}!/menu.txt")
    assert memory.ask("Where is the wine from?").evidence[0].name == f"{path}!/menu (2).txt"
    assert outcomes(memory.remember(folder)) == {"menu.eml": "unchanged"}
    path = path.rename(folder / "moved.eml")
    assert outcomes(memory.remember(folder)) == {"moved.eml": "moved"}
    assert memory.ask("What does the soup cost?").evidence[0].name == f"{path}!/menu.txt"
    assert len(memory.memories()) == 3
    write(
        path, INVITATION.format(price=5).replace("menu.txt", "other.txt", 2).replace("other.txt", "menu.txt", 1), age=50
    )
    assert outcomes(memory.remember(folder)) == {"moved.eml": "changed"}
    names = {Path(document.name).name for document in memory.memories()}
    assert names == {"moved.eml", "menu.txt", "other.txt"}
    assert memory.ask("What does the soup cost?").text == "The soup costs 5 euros."
    assert len(memory.history(f"{path}!/menu.txt")[0]) == 2
    write(folder / "copy.eml", path.read_text(encoding="utf-8"))
    assert outcomes(memory.remember(folder))["copy.eml"] == "copied"
    assert {place.rpartition("/")[2] for place in memory.document(f"{path}!/menu.txt").places} == {"menu.txt"}
    path.unlink()
    steps = memory.remember(folder)
    assert outcomes(steps) == {"moved.eml": "gone", "copy.eml": "unchanged"}
    assert len(memory.memories()) == 3
    assert memory.update(f"{folder / 'copy.eml'}!/menu.txt") == memory.document(f"{folder / 'copy.eml'}!/menu.txt").id
    memory.forget(folder / "copy.eml")
    assert not memory.memories()
    assert memory.check() == CheckReport()


@pytest.mark.parametrize("count", [1, 1000])  # small, and written in parts
def test_a_file_whose_text_is_inside_it(memory: Memory, tmp_path: Path, count: int) -> None:
    path = tmp_path / "letter.txt.gz"
    path.write_bytes(gzip.compress("".join(LINES[:count]).encode()))
    assert outcomes(memory.remember(path)) == {path.name: "new"}
    assert outcomes(memory.remember(path)) == {path.name: "unchanged"}
    assert memory.text(path) == "letter.txt"
    assert memory.text(f"{path}!/letter.txt").split() == "".join(LINES[:count]).split()
    memory.forget(path)
    assert not memory.memories()


def test_a_folder_may_be_called_like_a_place(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "Yahoo!").mkdir()
    write(tmp_path / "Yahoo!" / "a.txt", SECRET)
    assert outcomes(memory.remember(tmp_path / "Yahoo!")) == {"a.txt": "new"}
    assert outcomes(memory.remember(tmp_path / "Yahoo!")) == {"a.txt": "unchanged"}


def test_files_that_are_not_read_are_named(memory: Memory, folder: Path) -> None:
    for name in (".hidden.txt", "a.xyz", "b.xyz", "c.qqq", "old.txt"):
        write(folder / name, "Nothing.")
    (folder / ".git").mkdir()
    (folder / "out.txt").symlink_to("/etc/hosts")
    (folder / "linked").symlink_to("/etc")
    (folder / "visible.txt").symlink_to(folder / ".hidden.txt")
    os.mkfifo(folder / "pipe.txt")
    steps = memory.remember(folder, exclude=["old*"])
    skipped = {Path(step.path).name: step.notes[0] for step in steps if step.outcome == "skipped"}
    assert skipped == {
        ".hidden.txt": "hidden", ".git": "hidden folder", "a.xyz": "unknown kind .xyz", "b.xyz": "unknown kind .xyz",
        "c.qqq": "unknown kind .qqq", "old.txt": "excluded", "out.txt": "link out of the folder",
        "visible.txt": "link to a hidden file", "linked": "link to a folder", "pipe.txt": "no regular file",
    }  # fmt: skip
    counts = count_unread(steps)
    assert counts["of unknown kinds (.qqq, .xyz)"] == 3
    assert sum(counts.values()) == 10
    assert outcomes(memory.remember(folder / "a.xyz")) == {"a.xyz": "new"}  # given itself: it is text


def test_a_file_that_changes_while_it_is_read(memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hash_content = open_file.OpenFile.hash_content

    def hash_and_change(file: open_file.OpenFile) -> str:
        digest = hash_content(file)
        if file.path.name == "b.md":
            write(file.path, "Somebody else wrote this.", age=7)
        return digest

    monkeypatch.setattr(open_file.OpenFile, "hash_content", hash_and_change)
    steps = {Path(step.path).name: step for step in memory.remember(folder)}
    assert steps["b.md"].outcome == "broken"
    assert "changed while it was read" in steps["b.md"].notes[0]
    assert steps["a.txt"].outcome == steps["c.txt"].outcome == "new"


def test_a_large_file_that_changes_while_it_is_read(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "large.txt", "".join(LINES[:4000]))
    steps = memory.remembering([path])
    while not next(steps).passages:
        pass
    with path.open("a", encoding="utf-8") as file:
        file.write("One more line.\n")
    (last,) = [step for step in steps if step.outcome != "reading"]
    assert (last.outcome, last.notes) == ("broken", ("it was changed while it was read; remember it again",))
    assert memory.memories() == []


def test_a_file_that_shrinks_while_it_is_hashed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "A line.\n" * 9)
    with open_file.OpenFile(path) as file:
        path.write_text("A line.\n", encoding="utf-8")
        with pytest.raises(DocumentError, match="changed while it was read"):
            file.hash_content()


@pytest.mark.parametrize("kind", ["pipe", "link", "folder link", "gone"])
def test_a_file_that_is_something_else_after_listing(
    memory: Memory, folder: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    victim = write(folder / "sub" / "z.txt", "The harmless text.")
    (tmp_path / "private").mkdir()
    private = write(tmp_path / "private" / "z.txt", SECRET)

    def list_and_replace(*arguments: Any, **patterns: Any) -> FileListing:
        listing = find_files(*arguments, **patterns)
        victim.unlink()
        if kind == "pipe":
            os.mkfifo(victim)
        elif kind == "link":
            victim.symlink_to(private)
        elif kind == "folder link":
            victim.parent.rmdir()
            victim.parent.symlink_to(private.parent)
        return listing

    monkeypatch.setattr("mnemic.store.memory.find_files", list_and_replace)
    with limit_time(30):
        steps = memory.remember(folder)
    first = next(step for step in steps if Path(step.path).name == "z.txt")
    reasons = {
        "pipe": "no regular file",
        "link": "become a link",
        "folder link": "become a link",
        "gone": "No such file",
    }
    assert first.outcome == "broken"
    assert reasons[kind] in first.notes[0]
    assert len(memory.memories()) == 3


def test_files_of_the_kernel(memory: Memory, folder: Path) -> None:
    """Reading /proc/kmsg waits for the next message of the kernel."""
    with limit_time(30):
        (step, _) = memory.remember("/proc/kmsg", folder / "a.txt")
    assert (step.outcome, step.notes) == ("broken", ("the file is empty",))


def test_bombs_cost_the_others_nothing(memory: Memory, folder: Path) -> None:
    docx(folder / "bomb.docx", ["a " * 10_000_000])
    assert (folder / "bomb.docx").stat().st_size < 100_000
    with limit_time(60):
        steps = {Path(step.path).name: step for step in memory.remember(folder)}
    assert "zip bomb" in steps["bomb.docx"].notes[0]
    assert [steps[name].outcome for name in ("a.txt", "b.md", "c.txt")] == ["new"] * 3
