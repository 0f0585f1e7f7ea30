"""The commands of the persistent memory of documents."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from app_runs import run
from document_files import epub, pdf

from mnemic.store import SQLiteStore


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working folder with a few files, and no memory yet."""
    monkeypatch.setenv("MNEMIC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MNEMIC_MEMORY", raising=False)
    folder = tmp_path / "desk"
    (folder / "papers").mkdir(parents=True)
    (folder / "papers" / "lease.txt").write_text(
        "The lease ends on 30 June. The rent is 700 euros.\n", encoding="utf-8"
    )
    (folder / "papers" / "trip.md").write_text("# Trip\n\nThe train to Bern leaves at nine.\n", encoding="utf-8")
    pdf(folder / "papers" / "bill.pdf", ["The plumber was paid 90 euros.", ""])
    monkeypatch.chdir(folder)
    return folder


SENTENCE = ("--reader", "none")


def remember(*arguments: object) -> None:
    done = run("remember", *arguments, "--embedder", "hashed-ngrams")
    assert done.code == 0, done.err


def read_error(*arguments: object, stdin: str = "") -> str:
    done = run(*arguments, stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("error: ")
    return done.err


def test_remember_ask_forget() -> None:
    done = run("remember", "papers", "--embedder", "hashed-ngrams")
    assert done.out.splitlines()[0] == "files: 3 new; 3 new passages"
    assert done.err == ""  # a blank page is no warning
    answer = run("ask", "When does the lease end?")
    assert "answer      30 June\nconfidence  0." in answer.out
    assert "from        papers/lease.txt, line 1 (document 2)" in answer.out
    assert "The lease ends on 30 June." in answer.out
    page = run("ask", "What did the plumber cost?").out
    assert "papers/bill.pdf, page 1 (document 1)" in page
    again = run("remember", "papers", "--json").json
    assert again["files"] == {"unchanged": 3}
    report = run("forget", "2", "--verify")
    assert report.out.splitlines() == [
        "forgotten: 2  papers/lease.txt",
        "verified: no trace is left in the files of the memory",
    ]
    none = run("ask", "When does the lease end?")
    assert "answer      none: nothing in the memory supports one" in none.out


def test_files_that_are_not_read_are_counted(desk: Path) -> None:
    for name in (".hidden.md", "a.zzz", "b.zzz"):
        (desk / "papers" / name).write_text("Some text.", encoding="utf-8")
    options = ("--embedder", "hashed-ngrams")
    done = run("remember", "papers", *options)
    summary = "3 files were not read: 2 of unknown kinds (.zzz), 1 hidden"
    assert done.out.splitlines()[1] == f"{summary}; --skipped lists them"
    assert "zzz" not in done.err
    names = run("remember", "papers", "--skipped", *options).out.splitlines()
    assert names[1] == summary
    assert "  papers/a.zzz: unknown kind .zzz" in names
    report = run("remember", "papers", "--include", "a.*", "--json", *options).json
    assert report["files"] == {"new": 1, "unchanged": 3, "skipped": 2}
    assert {"path": str(desk / "papers" / "b.zzz"), "reason": "unknown kind .zzz"} in report["skipped"]
    assert report["unread"] == {"hidden": 1, "of unknown kinds (.zzz)": 1}
    report = run("remember", "papers", "--only", "*.md", "--json", *options).json
    assert report["unread"] == {"not selected": 4, "hidden": 1}


def test_a_password_is_read_from_a_file(desk: Path) -> None:
    (desk / "secret").write_text("open sesame\n", encoding="utf-8")
    remember("papers/lease.txt", "--password-file", "secret")
    assert "--password-file FILE" in read_error("remember", "papers", "--password")


def test_answers_for_programs(desk: Path) -> None:
    remember("papers")
    report = run("ask", "--json", "--hops", "2", "When does the train leave?", *SENTENCE).json
    assert report["answer"] == "The train to Bern leaves at nine."
    first = report["evidence"][0]
    assert first["name"] == str(desk / "papers" / "trip.md")
    assert (first["line"], first["sentence"]) == (3, report["answer"])
    assert len(first["weights"]) == report["hops"] == 2
    (desk / "questions.txt").write_text("What is the rent?\n\nWho was paid?\n", encoding="utf-8")
    many = run("ask", "--questions", "questions.txt", *SENTENCE)
    answers = [json.loads(line)["answer"] for line in many.out.splitlines()]
    assert answers == ["The rent is 700 euros.", "The plumber was paid 90 euros."]
    spans = run("ask", "--questions", "questions.txt", "--confidence", "0")
    rows = [json.loads(line) for line in spans.out.splitlines()]
    assert rows[0]["answer"] == "700 euros"
    for row, sentence in zip(rows, answers):
        assert row["answer"] in sentence
        assert row["kind"] == "span"
        assert row["ranked"][0]["answer"] == row["answer"]
        assert row["ranked"][0]["evidence"] == row["evidence"][0]
        assert row["ranked"][0]["score"] == row["score"]
    hits = run("search", "euros", "--limit", "2", "--json").json["found"]
    assert {Path(hit["name"]).name for hit in hits} == {"bill.pdf", "lease.txt"}
    assert "papers/trip.md" in run("search", "train to Bern").out


def test_forgetting_by_words_asks_first() -> None:
    remember("papers")
    command = ("forget", "--about", "euros")
    error = read_error(*command, stdin="n\n")
    assert "papers/bill.pdf" in error
    assert "nothing was forgotten" in error
    assert "nothing was forgotten" in read_error(*command)  # nobody there
    assert len(run("list", "--json").json["documents"]) == 3
    done = run(*command, "--yes", "--json").json
    assert [Path(document["name"]).name for document in done["forgotten"]] == ["bill.pdf", "lease.txt"]
    assert "no document has all of these words" in read_error("forget", "--about", "zebra euros")
    assert "nothing to forget" in read_error("forget")


def test_notes_updates_and_their_history(desk: Path) -> None:
    remember("--note", "The meeting is on Monday.")
    done = run("update", "1", "--note", "The meeting is on Friday.")
    assert done.out == "document 2 supersedes 1\n"
    assert "on Friday" in run("ask", "When is the meeting?").out
    assert [document["id"] for document in run("list", "--json").json["documents"]] == [2]
    assert "(no longer read)" in run("list", "--all").out
    report = run("history", "2", "--json").json
    assert [document["id"] for document in report["versions"]] == [1, 2]
    assert "text" not in report["versions"][0]
    assert "superseded" in run("history", "1").out
    versions = run("history", "2", "--text", "--json").json["versions"]
    monday, friday = (f"The meeting is on {day}." for day in ("Monday", "Friday"))
    assert [document["text"] for document in versions] == [monday, friday]
    lines = run("history", "1", "--text").out.splitlines()
    assert lines.index(monday) < lines.index(friday)
    assert "read until" in lines[lines.index(monday) - 1]
    remember("papers/lease.txt")
    assert run("update", "papers/lease.txt").out == "document 3 is as it was\n"
    done = run("update", "3", "--note", "The lease ends in May.")
    assert done.out == "document 4 supersedes 3\n"
    assert "lease.txt is as it was: remembered again, it is read beside the new text" in done.err


def test_several_memories(desk: Path) -> None:
    remember("papers/lease.txt")
    remember("papers/trip.md", "--memory", "work")
    remember("papers/bill.pdf", "--here")
    assert (desk / ".mnemic" / "memory.db").is_file()
    os.chdir(desk / "papers")
    report = run("stats", "--json").json
    assert (report["memory"], report["documents"]) == (str(desk / ".mnemic" / "memory.db"), 1)
    assert set(report["others"]) == {"default", "work"}
    assert run("list", "--memory", "work", "--json").json["documents"][0]["title"] == "Trip"
    assert "two memories" in read_error("remember", ".", "--here", "--memory", "work")


def test_a_version_is_shown_line_by_line_until_it_is_forgotten(desk: Path) -> None:
    lines = ["The lease ends on 30 June.", f"[red]{'The rent is 700 euros. ' * 8}".strip(), "Bye."]
    (desk / "old.txt").write_text("\n".join(lines).replace("Bye", "\x1bBye"), encoding="utf-8")
    remember("old.txt")
    (desk / "old.txt").write_text("The lease ended.", encoding="utf-8")
    assert run("update", "1").out == "document 2 supersedes 1\n"
    output_lines = run("history", "2", "--text").out.splitlines()
    start = output_lines.index(lines[0])
    assert [line.strip() for line in output_lines[start : start + 3]] == [*lines[:2], "\\x1bBye."]
    assert "verified: no trace is left" in run("forget", "2", "--verify").out
    assert "there is no document 1" in read_error("history", "1", "--text")


def test_check_says_what_it_left_out(desk: Path) -> None:
    """Another process is writing."""
    remember("papers/lease.txt", "--memory", "notes.db")
    store = SQLiteStore("notes.db")
    with store.write_session():
        done = run("check", "--memory", "notes.db")
        assert (done.code, done.out) == (0, "notes.db is sound, as far as a reader can see\n")
        assert done.err.startswith("warning: left out: whether the full-text index says what the ")
        assert "another process (process " in done.err
        report = run("check", "--memory", "notes.db", "--json")
        assert (report.code, report.json["faults"], len(report.json["left_out"])) == (0, [], 1)
        assert "is writing into" in report.json["why"]
        store.connection.execute("DELETE FROM vectors")
        done = run("check", "--memory", "notes.db")
        assert (done.code, done.out) == (2, "")
        assert "1 passages have no vector" in done.err.splitlines()[-1]
    store.close()


def test_upkeep(desk: Path) -> None:
    remember("papers", "--memory", "notes.db")
    options = ("--memory", "notes.db")
    assert run("check", *options).out == "notes.db is sound\n"
    assert run("reindex", "--embedder", "none", *options).out == "0 vectors by none\n"
    assert run("reindex", "--embedder", "hashed-ngrams", *options).out == "3 vectors by hashed-ngrams\n"
    assert "embedder   hashed-ngrams" in run("stats", *options).out
    assert run("export-memory", "all.jsonl", *options).out == "3 documents written to all.jsonl\n"
    command = ("import-memory", "all.jsonl", "--memory", "new.db", "--embedder", "none")
    assert run(*command).out == "3 new documents; 3 documents in new.db\n"
    assert run(*command).out == "0 new documents (3 were there already); 3 documents in new.db\n"
    report = run("check", "--memory", "new.db", "--json").json
    assert report == {"memory": "new.db", "faults": [], "left_out": [], "why": ""}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "Who?"], "begin one: mnemic remember FILE_OR_FOLDER"),
        (["stats"], "there is no memory"),
        (["remember"], "nothing to remember: give files"),
        (["remember", "nowhere"], "there is no file or folder nowhere"),
        (["remember", "papers", "--embedder", "bert"], "no embedder 'bert'"),
        (["ask"], "no question: give it in quotes"),
        (["ask", "Who?", "--reader", "bert"], "no reader 'bert'; there are reader, reader-small, none"),
        (["ask", "--story", "x", "Who?"], "No such option: --story"),
        (["ask", "--questions", "papers/lease.txt", "Who?"], "not both"),
        (["search", "x", "--limit", "0"], "Invalid value for '--limit'"),
        (["import-memory", "papers/trip.md", "--memory", "x.db"], "line 1"),
        (["stats", "--memory", "papers/trip.md"], "no SQLite file"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    assert message in read_error(*arguments)


def test_a_missing_memory_names_the_others() -> None:
    run("remember", "papers", "--memory", "work", "--embedder", "none")
    assert "there are: work (mnemic stats --memory NAME)" in read_error("stats")


def test_a_narrow_list_has_one_line_per_document(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    folder = desk / "a-folder-with-a-long-name" / "and-one-in-it"
    folder.mkdir(parents=True)
    (folder / "lease.txt").write_text("The lease ends in June.", encoding="utf-8")
    run("remember", str(folder), "--embedder", "none")
    assert "│ …in-it/lease.txt │" in run("list").out


def test_questions_that_cannot_be_asked(desk: Path) -> None:
    remember("papers/lease.txt")
    (desk / "old.txt").write_bytes("Où est le bail ?\n".encode("latin1"))
    message = read_error("ask", "--questions", "old.txt")
    assert "old.txt is no UTF-8 text: invalid start byte at byte 1" in message
    assert "iconv" in message
    for arguments in (["ask", ""], ["search", " "]):
        assert "is empty; give for example" in read_error(*arguments)


def test_the_exit_code_of_broken_files(desk: Path) -> None:
    (desk / "papers" / "bad.docx").write_bytes(b"PK nothing")
    options = ("--embedder", "none")
    done = run("remember", "papers/bad.docx", *options)
    assert (done.code, done.out.splitlines()[0]) == (1, "files: 1 broken; 0 new passages")
    assert run("remember", "papers/bad.docx", "papers/trip.md", *options, "--json").code == 0
    assert run("remember", "papers/bad.docx", "--note", "A note.").code == 0


def test_what_could_not_be_read_of_a_file_is_a_warning() -> None:
    epub(Path("book.epub"), ["The train leaves at nine.", ""])
    assert "warning: book.epub: part 2 has no text" in run("remember", "book.epub", "--embedder", "none").err


BLOCKED = """
import socket, sys
class Refused(socket.socket):
    def __init__(self, family=None, *rest, **kwargs):
        assert family == socket.AF_UNIX, "a socket was opened"  # those two ends stay in this machine
        super().__init__(family, *rest, **kwargs)
socket.socket = Refused
from mnemic.cli.main import main
for words in (["remember", "papers"], ["ask", "When does the lease end?"], ["search", "rent"],
              ["forget", "papers/lease.txt", "--verify"], ["stats"], ["check"]):
    assert main(words) == 0, words
assert "torch._dynamo" not in sys.modules, "torch's compiler takes a second to import"
"""


def test_the_whole_flow_with_sockets_blocked() -> None:
    """With the default embedder and reader."""
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "answer      30 June" in done.stdout


def test_a_line_end_in_a_file_name_makes_no_line_of_output() -> None:
    folder = Path("odd")
    folder.mkdir()
    (folder / "a\nmemory: evil.db.qqq").write_text("x", encoding="utf-8")
    (folder / "b\nforgotten: 9.txt").write_text("The key is in the drawer.", encoding="utf-8")
    output = run("remember", "odd", "--skipped", "--embedder", "hashed-ngrams").out
    assert "odd/a\\nmemory: evil.db.qqq: " in output
    assert output.count("\nmemory: ") == 1
    assert "odd/b\\nforgotten: 9.txt" in run("search", "drawer").out
    assert run("forget", "odd").out.splitlines() == ["forgotten: 1  odd/b\\nforgotten: 9.txt"]


def test_filters_that_nothing_fits_say_so() -> None:
    remember("papers")
    answer = run("ask", "When does the lease end?", "--kind", "docx")
    assert "no document fits" in answer.err
    assert "leave one out" in answer.err
    assert "language" not in answer.err


def test_broken_files_are_listed_with_the_skipped_ones() -> None:
    Path("papers/bad.docx").write_bytes(b"PK nothing")
    assert "  papers/bad.docx: " in run("remember", "papers", "--skipped", "--embedder", "none").out


def test_a_copy_that_is_forgotten_is_named() -> None:
    Path("copy.txt").write_bytes(Path("papers/lease.txt").read_bytes())
    remember("copy.txt", "papers/lease.txt")
    assert run("forget", "copy.txt").out == "forgotten: 1  copy.txt, papers/lease.txt\n"
