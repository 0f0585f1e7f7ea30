"""Files in a memory: quoted, read again when changed, reported when broken."""

import errno
import os
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from document_files import docx, epub, pdf
from store_runs import SECRET, folder, memory, outcomes, write

from mnemic import Memory
from mnemic.store import CheckReport

__all__ = ["folder", "memory"]  # fixtures


def test_an_answer_is_a_quotation_that_can_be_checked(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    answer = memory.ask("Who wrote the report?")
    assert answer.text == "Ann wrote the report in March."
    first = answer.evidence[0]
    assert first.name == str(folder / "b.md")
    assert (first.line, first.sentence) == (3, answer.text)
    assert (folder / "b.md").read_text(encoding="utf-8")[first.first : first.last] == answer.text
    assert first.passage[answer.start : answer.end] == answer.text
    assert answer.looked == answer.read == 3
    assert len(first.weights) == answer.hops == 1
    assert memory.document(first.document).name == first.name
    assert sum({evidence.passage: evidence.weights[0] for evidence in answer.evidence}.values()) == pytest.approx(1)


def test_only_what_changed_is_read_again(memory: Memory, folder: Path) -> None:
    assert set(outcomes(memory.remember(folder)).values()) == {"new"}
    before = memory.stats()
    assert set(outcomes(memory.remember(folder)).values()) == {"unchanged"}
    assert memory.stats() == before
    write(folder / "a.txt", "The key is in the drawer.", age=50)
    (folder / "b.md").rename(folder / "d.md")
    write(folder / "copy.txt", SECRET)
    (folder / "c.txt").touch()
    assert outcomes(memory.remember(folder)) == {
        "a.txt": "changed",
        "c.txt": "unchanged",
        "copy.txt": "copied",
        "d.md": "moved",
    }
    assert memory.ask("Where is the key?").text == "The key is in the drawer."
    assert memory.document(folder / "d.md").places == (str(folder / "d.md"),)
    (folder / "a.txt").unlink()
    (folder / "copy.txt").unlink()
    assert outcomes(memory.remember(folder))["a.txt"] == "gone"
    assert not [document for document in memory.search("key drawer mat") if "key" in document.text]
    assert memory.ask("What is the passphrase?").text == "The passphrase is incomprehensibilities."
    assert memory.check() == CheckReport()


def test_a_file_that_changes_within_the_clocks_grain(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "One is here.", age=0)
    memory.remember(path)
    stat = path.stat()
    path.write_text("Two is here.", encoding="utf-8")
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    assert outcomes(memory.remember(path)) == {"a.txt": "changed"}
    # Its day is known all the same.
    today = date.today()
    assert memory.search("two", since=today - timedelta(days=1))
    assert not memory.search("two", until="1970")


def test_what_is_broken_is_told_and_the_rest_remembered(memory: Memory, folder: Path) -> None:
    (folder / "broken.docx").write_bytes(b"PK nothing")
    write(folder / "empty.txt", " \n")
    pdf(folder / "blank.pdf", ["", ""])
    epub(folder / "half.epub", ["A chapter with text.", ""])
    docx(folder / "fine.docx", ["The budget is 400 euros."])
    steps = {Path(step.path).name: step for step in memory.remember(folder)}
    assert {name for name, step in steps.items() if step.outcome == "broken"} == {
        "broken.docx",
        "empty.txt",
        "blank.pdf",
    }
    assert steps["blank.pdf"].notes == ("there is no text in it",)
    assert steps["half.epub"].notes == ("part 2 has no text",)
    assert memory.ask("How much is the budget?").text == "The budget is 400 euros."
    assert memory.document(folder / "half.epub").notes == ("part 2 has no text",)


def test_an_empty_file_of_a_folder_is_passed_over(memory: Memory, folder: Path) -> None:
    """Python's __init__.py and marker files are meant to be empty; one that is named is not."""
    path = write(folder / "marker.txt", "")
    assert outcomes(memory.remember(folder))["marker.txt"] == "skipped"
    assert outcomes(memory.remember(path)) == {"marker.txt": "broken"}
    write(path, "The marker says 42.")
    assert outcomes(memory.remember(folder))["marker.txt"] == "new"
    write(path, "", age=0)
    (emptied,) = memory.remember(path)
    assert (emptied.outcome, emptied.notes) == ("broken", ("there is no text in it",))
    assert memory.search("marker")[0].text == "The marker says 42."  # what it was is not lost


def shut(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let nobody look into a folder; root may look into every other one."""

    def guarded(look: Callable[..., Any], *, itself: bool) -> Callable[..., Any]:
        def guarded_look(path: Any, *rest: Any, **more: Any) -> Any:
            target = None if isinstance(path, int) else Path(os.fsdecode(path))
            if target is not None and (folder in target.parents or (itself and target == folder)):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return look(path, *rest, **more)

        return guarded_look

    patch.setattr(os, "stat", guarded(os.stat, itself=False))
    patch.setattr(os, "scandir", guarded(os.scandir, itself=True))


def test_a_folder_nobody_may_look_into(memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own").mkdir()
    write(folder / "own" / "kept.txt", "The safe is behind the picture.")
    write(folder / "own" / "same.txt", "Bread and butter.")
    memory.remember(folder)
    (folder / "a.txt").unlink()
    write(folder / "copy.txt", "Bread and butter.")
    shut(folder / "own", monkeypatch)
    steps = memory.remember(folder, folder / "own" / "kept.txt")
    assert outcomes(steps) == {
        "own": "broken",
        "kept.txt": "broken",
        "a.txt": "gone",
        "b.md": "unchanged",
        "c.txt": "unchanged",
        "copy.txt": "copied",
    }
    assert steps[0].path == str(folder / "own")
    assert steps[0].notes == ("the folder cannot be opened: Permission denied",)
    assert memory.ask("Where is the safe?").text == "The safe is behind the picture."


def test_what_no_text_can_hold(memory: Memory, folder: Path) -> None:
    """Halves of characters and zeros, in texts and in names."""
    write(folder / "half.jsonl", r'{"text": "Half \ud83d of a \u0000 smile is here. All is well."}')
    lone_surrogate = os.fsencode(folder) + b"/\xff.txt"
    Path(os.fsdecode(lone_surrogate)).write_text("Strange name.", encoding="utf-8")
    steps = {Path(step.path).name: step for step in memory.remember(folder)}
    assert steps["\ufffd.txt"].outcome == "broken"
    assert "give it another" in steps["\ufffd.txt"].notes[0]
    answer = memory.ask("Half of a smile?")
    assert answer.text == "Half \ufffd of a \ufffd smile is here."
    source = (folder / "half.jsonl").read_text(encoding="utf-8")
    first = answer.evidence[0]
    assert source[first.first : first.last] == r"Half \ud83d of a \u0000 smile is here."
    assert memory.document(memory.note("A \ud83d note.")).title == "A \ufffd note."
    assert memory.check() == CheckReport()


def test_a_large_file_is_written_while_it_is_read(memory: Memory, tmp_path: Path) -> None:
    text = "".join(f"Person {n} lives in house {n * 7}.\n\n" for n in range(4000))
    path = write(tmp_path / "large.txt", text)
    steps = list(memory.remembering([path]))
    assert [step.outcome for step in steps[:-1]] == ["reading"] * (len(steps) - 1)
    assert steps[-1].outcome == "new"
    assert steps[-1].passages == memory.stats().passages > 128
    answer = memory.ask("Where does Person 1234 live?")
    assert answer.text == "Person 1234 lives in house 8638."
    assert text[answer.evidence[0].first : answer.evidence[0].last] == answer.text
    assert memory.text(path).split() == text.split()
