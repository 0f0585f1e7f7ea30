"""The verbs of the lasting memory: what was noted, changed, moved, forgotten."""

from pathlib import Path

import pytest
from store_runs import KEY, SECRET, folder, memory, outcomes, write

from mnemic import Memory
from mnemic.store import CheckReport, HashedNgrams, StoreError
from mnemic.store.locate import locate_memory
from mnemic.store.retrieve.embedders import resolve_embedder
from mnemic.store.retrieve.query_words import extract_words
from mnemic.text.documents import DocumentError

__all__ = ["folder", "memory"]  # fixtures


def test_notes_and_updates_keep_a_history(memory: Memory) -> None:
    first = memory.note("The meeting is on Monday.", "meeting")
    assert memory.note("The meeting is on Monday.") == first  # told twice, known once
    second = memory.update(first, "The meeting is on Friday.")
    assert memory.ask("When is the meeting?").text == "The meeting is on Friday."
    versions, events = memory.history(second)
    assert [memory.text(version.id) for version in versions] == [
        "The meeting is on Monday.",
        "The meeting is on Friday.",
    ]
    assert [version.id for version in versions] == [first, second]
    assert [version.title for version in versions] == ["meeting", "meeting"]
    assert [event.what for event in events].count("superseded") == 1
    assert [version.id for version in memory.memories()] == [second]
    assert [version.id for version in memory.memories(retired=True)] == [first, second]
    assert memory.update(second, "The meeting is on Friday.") == second
    other_id = memory.note("The meeting is cancelled.")
    with pytest.raises(StoreError, match=f"document {other_id} says that already"):
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
    assert [version.id for version in memory.history(note)[0]] == [old, new, note]


def test_nothing_is_left_of_what_is_forgotten(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    write(folder / "c.txt", SECRET + " It is written down nowhere.", age=10)
    memory.remember(folder)
    number = memory.ask("What is the passphrase?").evidence[0].document
    old, new = (memory.text(version.id) for version in memory.history(number)[0])
    assert (old, new) == (SECRET, SECRET + " It is written down nowhere.")
    done = memory.forget(number, verify=True)
    assert (len(done.documents), done.scrubbed, done.traces) == (2, True, ())
    if files := [path for path in folder.parent.iterdir() if path.name.startswith("memory.db")]:
        content = b"".join(path.read_bytes() for path in files)
        for trace in (b"passphrase", b"incomprehens", b"nowhere", b"c.txt"):
            assert trace not in content
        assert b"kitchen" in content
    assert not [hit for hit in memory.search("passphrase") if "passphrase" in hit.text]
    assert memory.check() == CheckReport()
    assert outcomes(memory.remember(folder))["c.txt"] == "new"  # the file is still there


def test_what_shares_words_with_the_forgotten_stays(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    extra = memory.note(KEY + " And one thing more.")
    assert memory.forget(extra, verify=True).traces == ()
    assert memory.ask("Where is the bread?").text == "The bread is in the kitchen."
    assert memory.about("bread kitchen") == [memory.document(folder / "a.txt")]
    assert memory.about("bread passphrase") == []
    everything = memory.forget(folder, verify=True)
    assert (len(everything.documents), everything.traces) == (3, ())
    assert memory.stats().documents == 0
    with pytest.raises(StoreError, match="there is no document 99"):
        memory.forget(99)
    with pytest.raises(StoreError, match=r"nothing of .* is remembered"):
        memory.forget("nowhere.txt")


def test_the_header_of_a_file_is_no_trace(memory: Memory) -> None:
    """It says "SQLite format 3", and of "information" the letters "format" are looked for."""
    assert memory.forget(memory.note("The information is public."), verify=True).traces == ()


def test_a_gone_file_can_be_forgotten_by_its_path(memory: Memory, folder: Path) -> None:
    memory.remember(folder)
    (folder / "c.txt").unlink()
    memory.remember(folder)
    assert memory.forget(folder / "c.txt", verify=True).traces == ()


def test_a_memory_moves_as_json_lines(memory: Memory, folder: Path, tmp_path: Path) -> None:
    memory.remember(folder)
    memory.update(memory.note("It is on Monday."), "It is on Friday, \u2028 at noon.")
    *_, last = memory.export(tmp_path / "all.jsonl")
    assert last.done == last.total == 5
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o077 == 0
    with Memory(tmp_path / "other.db", embedder=HashedNgrams(width=64), reader=None) as copy:
        *_, done = copy.take(tmp_path / "all.jsonl")
        assert done.done <= done.total
        assert [d[1:] for d in copy.memories(retired=True)] == [d[1:] for d in memory.memories(retired=True)]
        assert copy.ask("Where is the key?").text == "The key is under the mat."
        list(copy.take(tmp_path / "all.jsonl"))  # twice is once
        assert copy.stats()[:5] == memory.stats()[:5]
        assert copy.check() == CheckReport()
        list(copy.export(tmp_path / "again.jsonl"))
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{}", "is no memory that `mnemic export-memory` wrote"),
        ('{"passage": ["x", null, []]}', "line 2"),
        ('{"document": {"id": 1}}', "line 2"),
        ("nonsense", "line 2"),
        ("\udcff", "line 1"),
    ],
)
def test_a_strange_export_is_refused(row: str, message: str, memory: Memory, tmp_path: Path) -> None:
    head = "" if row == "{}" else '{"format": "mnemic memory", "version": 1}\n'
    path = tmp_path / "all.jsonl"
    path.write_text(f"{head}{row}\n", encoding="utf-8", errors="surrogateescape")
    with pytest.raises(StoreError, match=message):
        list(memory.take(path))
    with pytest.raises(StoreError, match="there is no memory"):
        memory.stats()


def test_nothing_comes_of_an_export_that_was_cut(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    with Memory(tmp_path / "other.db", embedder="none", reader=None) as source:
        for text in ("One.", "Two."):
            source.note(text)
        list(source.export(path))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StoreError, match="line 5"):
        list(memory.take(path))
    memory.requested_embedder = "bert"
    with pytest.raises(ValueError, match="no embedder 'bert'"):
        memory.note("Three.")
    with pytest.raises(StoreError, match="there is no memory"):
        memory.stats()


def test_chinese_is_read_by_its_words(memory: Memory) -> None:
    memory.note("北京是中国的首都。长城在北京的北边。")
    memory.note("上海有一个很大的港口。")
    answer = memory.ask("中国的首都在哪里？")
    assert answer.text == "北京是中国的首都。"
    memory.note("刘胜有一百二十个儿子。")
    assert memory.search("刘胜死后")[0].text.startswith("刘胜")  # 刘胜死 is no word of the memory
    assert extract_words("中国的首都在哪里？") == ["中国", "首都"]


def test_words_alone(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        memory.note(KEY)
        assert memory.stats().vectors == 0
        assert memory.ask("Where is the key?").text == "The key is under the mat."
        assert not memory.ask("Xyzzy?").has_answer
        assert memory.forget(memory.note(SECRET), verify=True).traces == ()
        assert memory.check() == CheckReport()


def test_which_memory_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MNEMIC_MEMORY", raising=False)
    inner = tmp_path / "project" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert locate_memory() == tmp_path / "home" / "default.db"
    (tmp_path / "project" / ".mnemic").mkdir()
    (tmp_path / "project" / ".mnemic" / "memory.db").touch()
    assert locate_memory() == tmp_path / "project" / ".mnemic" / "memory.db"
    assert locate_memory("work") == tmp_path / "home" / "work.db"
    assert locate_memory("notes.db") == Path("notes.db")
    assert locate_memory("here/notes") == Path("here/notes")
    with pytest.raises(StoreError, match=r"a path such as notes.db or a name"):
        locate_memory("..")


def test_the_hashed_embedder_is_the_same_everywhere() -> None:
    hashed = HashedNgrams()
    similar, different, zeros = hashed.embed(["remembering the reports", "milk in the kitchen", ""])
    query = hashed.embed(["he remembers a report"])[0]
    assert query @ similar > 0.3 > query @ different
    assert (similar @ similar, zeros @ zeros) == (pytest.approx(1), 0)
    assert similar.nonzero()[0][:4].tolist() == [79, 114, 163, 172]
    with pytest.raises(StoreError, match="no embedder 'bert'; there are reader-small, minilm, hashed-ngrams"):
        resolve_embedder("bert")


def test_a_memory_says_where_it_is(tmp_path: Path) -> None:
    assert repr(Memory("notes.db")) == "Memory('notes.db')"
    assert repr(Memory("notes.db", reader=None)) == "Memory('notes.db', reader=None)"
    assert repr(Memory("postgresql://ann:secret@host/base#work")) == "Memory('postgresql://ann@host/base#work')"


def test_what_a_search_returns_is_short_to_look_at(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        long_text = f"The <b>lease</b> ends on 30 June. It is {'very ' * 40}long."
        memory.note(long_text, title="Lease & more")
        answer = memory.ask("When does the lease end?")
        assert repr(answer) == "<Answer 'The <b>lease</b> ends on 30 June.' (0.88) from Lease & more, line 1>"
        assert repr(answer.evidence[0]) == "<Evidence 'The <b>lease</b> ends on 30 June.' from Lease & more, line 1>"
        assert all(len(repr(found)) < 120 for found in (*memory.search("long"), *answer.ranked))
        html = answer._repr_html_()
        assert "<mark>The &lt;b&gt;lease&lt;/b&gt; ends on 30 June.</mark>" in html
        assert "Lease &amp; more, line 1" in html
        none = memory.ask("When does the lease end?", kind="pdf")
        assert (repr(none), none.citation) == ("<Answer none to 'When does the lease end?'>", "")
        assert "No answer" in none._repr_html_()


def test_another_embedder_is_refused_though_no_file_is_new(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The key is here.", encoding="utf-8")
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        assert [memory.remember(path)[0].outcome for _ in range(2)] == ["new", "unchanged"]
    for embedder, message in (("nosuch", "no embedder 'nosuch'"), ("hashed-ngrams", "was written with no embedder")):
        with Memory(tmp_path / "memory.db", embedder=embedder) as memory, pytest.raises(StoreError, match=message):
            memory.remember(path)
