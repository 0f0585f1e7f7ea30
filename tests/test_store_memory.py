"""The verbs of the lasting memory: what was remembered, changed, moved, forgotten."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from document_files import docx, pdf

from mnemic import Memory
from mnemic.store import ENGINES, Checked, HashedNgrams, Step, StoreError
from mnemic.store.embed import embedder
from mnemic.store.lexical import words_of
from mnemic.store.locate import locate
from mnemic.text.documents import DocumentError

KEY = "The key is under the mat. The bread is in the kitchen."
SECRET = "The passphrase is incomprehensibilities. Nobody else may know of it."


@pytest.fixture(params=sorted(ENGINES))
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    sqlite = request.param == "sqlite"
    place = tmp_path / "memory.db" if sqlite else request.getfixturevalue("new_address")()
    with Memory(place, embedder="hashed-ngrams", reader=None) as memory:
        yield memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "a.txt", KEY)
    write(folder / "b.md", "# Report\n\nAnn wrote the report in March.\n")
    write(folder / "c.txt", SECRET)
    return folder


def write(path: Path, text: str, *, age: int = 100) -> Path:
    """A file whose last change is some seconds ago, as most are."""
    path.write_text(text, encoding="utf-8")
    then = path.stat().st_mtime_ns - age * 10**9
    os.utime(path, ns=(then, then))
    return path


def outcomes(steps: list[Step]) -> dict[str, str]:
    return {Path(step.path).name: step.outcome for step in steps}


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
    assert sum({one.passage: one.weights[0] for one in answer.evidence}.values()) == pytest.approx(
        1
    )


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
    assert not [one for one in memory.search("key drawer mat") if "key" in one.text]
    assert memory.ask("What is the passphrase?").text == "The passphrase is incomprehensibilities."
    assert memory.check() == Checked()


def test_a_file_that_changes_within_the_clocks_grain(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "One is here.", age=0)
    memory.remember(path)
    stat = path.stat()
    path.write_text("Two is here.", encoding="utf-8")
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    assert outcomes(memory.remember(path)) == {"a.txt": "changed"}


def test_what_is_broken_is_told_and_the_rest_remembered(memory: Memory, folder: Path) -> None:
    (folder / "broken.docx").write_bytes(b"PK nothing")
    write(folder / "empty.txt", " \n")
    pdf(folder / "scan.pdf", ["", ""])
    pdf(folder / "half.pdf", ["A page with text.", ""])
    docx(folder / "fine.docx", ["The budget is 400 euros."])
    steps = {Path(step.path).name: step for step in memory.remember(folder)}
    assert {name for name, step in steps.items() if step.outcome == "broken"} == {
        "broken.docx",
        "empty.txt",
        "scan.pdf",
    }
    assert steps["scan.pdf"].notes == ("page 1 has no text layer; page 2 has no text layer",)
    assert steps["half.pdf"].notes == ("page 2 has no text layer",)
    assert memory.ask("How much is the budget?").text == "The budget is 400 euros."
    assert memory.document(folder / "half.pdf").notes == ("page 2 has no text layer",)


def shut(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let nobody look into a folder; root may look into every other one."""

    def guarded(look: Callable[..., Any], *, itself: bool) -> Callable[..., Any]:
        def looked(path: Any, *rest: Any, **more: Any) -> Any:
            asked = None if isinstance(path, int) else Path(os.fsdecode(path))
            if asked is not None and (folder in asked.parents or (itself and asked == folder)):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return look(path, *rest, **more)

        return looked

    patch.setattr(os, "stat", guarded(os.stat, itself=False))
    patch.setattr(os, "scandir", guarded(os.scandir, itself=True))


def test_a_folder_nobody_may_look_into(
    memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    strange = os.fsencode(folder) + b"/\xff.txt"
    Path(os.fsdecode(strange)).write_text("Strange name.", encoding="utf-8")
    steps = {Path(step.path).name: step for step in memory.remember(folder)}
    assert steps["\ufffd.txt"].outcome == "broken"
    assert "give it another" in steps["\ufffd.txt"].notes[0]
    answer = memory.ask("Half of a smile?")
    assert answer.text == "Half \ufffd of a \ufffd smile is here."
    source = (folder / "half.jsonl").read_text(encoding="utf-8")
    first = answer.evidence[0]
    assert source[first.first : first.last] == r"Half \ud83d of a \u0000 smile is here."
    assert memory.document(memory.note("A \ud83d note.")).title == "A \ufffd note."
    assert memory.check() == Checked()


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


def test_notes_and_updates_keep_a_history(memory: Memory) -> None:
    first = memory.note("The meeting is on Monday.", "meeting")
    assert memory.note("The meeting is on Monday.") == first  # told twice, known once
    second = memory.update(first, "The meeting is on Friday.")
    assert memory.ask("When is the meeting?").text == "The meeting is on Friday."
    versions, events = memory.history(second)
    assert [memory.text(one.id) for one in versions] == [
        "The meeting is on Monday.",
        "The meeting is on Friday.",
    ]
    assert [one.id for one in versions] == [first, second]
    assert [one.title for one in versions] == ["meeting", "meeting"]
    assert [event.what for event in events].count("superseded") == 1
    assert [one.id for one in memory.memories()] == [second]
    assert [one.id for one in memory.memories(retired=True)] == [first, second]
    assert memory.update(second, "The meeting is on Friday.") == second
    other = memory.note("The meeting is cancelled.")
    with pytest.raises(StoreError, match=f"document {other} says that already"):
        memory.update(second, "The meeting is cancelled.")
    with pytest.raises(StoreError, match="has no file to read again"):
        memory.update(second)
    with pytest.raises(DocumentError, match="the text is empty"):
        memory.note(" ")


def test_updates_of_files(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    old = memory.document(folder / "a.txt").id
    assert memory.update(folder / "a.txt") == old
    write(folder / "a.txt", "The key is in the drawer.", age=10)
    new = memory.update(old)
    assert new != old
    assert memory.document(folder / "a.txt").id == new
    note = memory.update(new, "The key is lost.")
    assert memory.ask("Where is the key?").text == "The key is lost."
    assert [one.id for one in memory.history(note)[0]] == [old, new, note]


def test_nothing_is_left_of_what_is_forgotten(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    write(folder / "c.txt", SECRET + " It is written down nowhere.", age=10)
    memory.remember(folder)
    number = memory.ask("What is the passphrase?").evidence[0].document
    old, new = (memory.text(one.id) for one in memory.history(number)[0])
    assert (old, new) == (SECRET, SECRET + " It is written down nowhere.")
    done = memory.forget(number, verify=True)
    assert (len(done.documents), done.scrubbed, done.remains) == (2, True, ())
    if files := [path for path in folder.parent.iterdir() if path.name.startswith("memory.db")]:
        content = b"".join(path.read_bytes() for path in files)
        for trace in (b"passphrase", b"incomprehens", b"nowhere", b"c.txt"):
            assert trace not in content
        assert b"kitchen" in content
    assert not [hit for hit in memory.search("passphrase") if "passphrase" in hit.text]
    assert memory.check() == Checked()
    assert outcomes(memory.remember(folder))["c.txt"] == "new"  # the file is still there


def test_what_shares_words_with_the_forgotten_stays(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    extra = memory.note(KEY + " And one thing more.")
    assert memory.forget(extra, verify=True).remains == ()
    assert memory.ask("Where is the bread?").text == "The bread is in the kitchen."
    assert memory.about("bread kitchen") == [memory.document(folder / "a.txt")]
    assert memory.about("bread passphrase") == []
    everything = memory.forget(folder, verify=True)
    assert (len(everything.documents), everything.remains) == (3, ())
    assert memory.stats().documents == 0
    with pytest.raises(StoreError, match="there is no document 99"):
        memory.forget(99)
    with pytest.raises(StoreError, match=r"nothing of .* is remembered"):
        memory.forget("nowhere.txt")


def test_a_gone_file_can_be_forgotten_by_its_path(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    (folder / "c.txt").unlink()
    memory.remember(folder)
    assert memory.forget(folder / "c.txt", verify=True).remains == ()


def test_a_memory_moves_as_json_lines(memory: Memory, folder: Path, tmp_path: Path) -> None:
    memory.remember(folder)
    memory.update(memory.note("It is on Monday."), "It is on Friday, \u2028 at noon.")
    *_, last = memory.export(tmp_path / "all.jsonl")
    assert last.done == last.total == 5
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o077 == 0
    with Memory(tmp_path / "other.db", embedder=HashedNgrams(width=64), reader=None) as other:
        *_, done = other.take(tmp_path / "all.jsonl")
        assert done.done <= done.total
        assert [d[1:] for d in other.memories(retired=True)] == [
            d[1:] for d in memory.memories(retired=True)
        ]
        assert other.ask("Where is the key?").text == "The key is under the mat."
        list(other.take(tmp_path / "all.jsonl"))  # twice is once
        assert other.stats()[:5] == memory.stats()[:5]
        assert other.check() == Checked()
        list(other.export(tmp_path / "again.jsonl"))
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{}", "is no memory that `mnemic export-memory` wrote"),
        ('{"passage": ["x", null, []]}', "line 2"),
        ('{"document": {"id": 1}}', "line 2"),
        ("nonsense", "line 2"),
        ("\udcff", "line 1"),
    ],
)
def test_a_strange_export_is_refused(row: str, said: str, memory: Memory, tmp_path: Path) -> None:
    head = "" if row == "{}" else '{"format": "mnemic memory", "version": 1}\n'
    path = tmp_path / "all.jsonl"
    path.write_text(f"{head}{row}\n", encoding="utf-8", errors="surrogateescape")
    with pytest.raises(StoreError, match=said):
        list(memory.take(path))
    with pytest.raises(StoreError, match="there is no memory"):
        memory.stats()


def test_nothing_comes_of_an_export_that_was_cut(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    with Memory(tmp_path / "other.db", embedder="none", reader=None) as other:
        for text in ("One.", "Two."):
            other.note(text)
        list(other.export(path))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StoreError, match="line 5"):
        list(memory.take(path))
    memory.wanted = "bert"
    with pytest.raises(ValueError, match="no embedder 'bert'"):
        memory.note("Three.")
    with pytest.raises(StoreError, match="there is no memory"):
        memory.stats()


def test_chinese_is_read_by_its_words(memory: Memory) -> None:
    memory.note("北京是中国的首都。长城在北京的北边。")
    memory.note("上海有一个很大的港口。")
    answer = memory.ask("中国的首都在哪里？")
    assert answer.text == "北京是中国的首都。"
    assert "Chinese" in answer.notes[0]
    assert words_of("中国的首都在哪里？") == ["中国", "首都"]


def test_words_alone(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        memory.note(KEY)
        assert memory.stats().vectors == 0
        assert memory.ask("Where is the key?").text == "The key is under the mat."
        assert not memory.ask("Xyzzy?").found
        assert memory.forget(memory.note(SECRET), verify=True).remains == ()
        assert memory.check() == Checked()


def test_which_memory_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MNEMIC_MEMORY", raising=False)
    inner = tmp_path / "project" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert locate() == tmp_path / "home" / "default.db"
    (tmp_path / "project" / ".mnemic").mkdir()
    (tmp_path / "project" / ".mnemic" / "memory.db").touch()
    assert locate() == tmp_path / "project" / ".mnemic" / "memory.db"
    assert locate("work") == tmp_path / "home" / "work.db"
    assert locate("notes.db") == Path("notes.db")
    assert locate("here/notes") == Path("here/notes")
    with pytest.raises(StoreError, match=r"a path such as notes.db or a name"):
        locate("..")


def test_the_hashed_embedder_is_the_same_everywhere() -> None:
    own = HashedNgrams()
    near, far, none = own.embed(["remembering the reports", "milk in the kitchen", ""])
    query = own.embed(["he remembers a report"])[0]
    assert query @ near > 0.3 > query @ far
    assert (near @ near, none @ none) == (pytest.approx(1), 0)
    assert near.nonzero()[0][:4].tolist() == [79, 114, 163, 172]
    with pytest.raises(
        StoreError, match="no embedder 'bert'; there are reader, minilm, hashed-ngrams"
    ):
        embedder("bert")
