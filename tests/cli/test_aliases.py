"""Old spellings of commands work for one version and name the new one."""

import json
from pathlib import Path

import pytest
from app_runs import model, run
from long_runs import QUESTION, read, run_of
from text_runs import run_of as text_run_of

from mnemic.cli.aliases import SPELLINGS, translate_argv
from mnemic.cli.commands import COMMANDS


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("read --model m a.txt", "predict --model m a.txt", "`mnemic read` is now `mnemic predict`"),
        (
            "read --model m --state n.mem a.txt",
            "text read n.mem --model m a.txt --json",
            "`mnemic read --state` is now `mnemic text read`",
        ),
        ("ask --state=n.mem Who? --all", "text ask n.mem Who? --all", "`mnemic ask --state` is now `mnemic text ask`"),
        (
            "ask Who? --model m --state n.mem",
            "text ask n.mem Who? --model m",
            "`mnemic ask --state` is now `mnemic text ask`",
        ),
        (
            "ask --story s.txt --model m Where?",
            "story ask --model m --story s.txt Where?",
            "`mnemic ask --model` is now `mnemic story ask`",
        ),
        (
            "forget --state n.mem a.txt 4-9 --json 20-30",
            "text forget n.mem --text a.txt --from 4 --to 9 --json --from 20 --to 30",
            "`mnemic forget --state` is now `mnemic text forget`",
        ),
        ("memories --all", "list --all", "`mnemic memories` is now `mnemic list`"),
        ("search rent --most 3", "search --limit 3 rent", "`mnemic search --most` is now `mnemic search --limit`"),
        ("evaluate --model m --json", "evaluate m --json", "`mnemic evaluate --model` is now `mnemic evaluate DIR`"),
        ("update 3 --note text", "update 3 text", "`mnemic update --note` is now `mnemic update ID TEXT`"),
        ("prepare r --out d", "data sequences r --out d", "`mnemic prepare` is now `mnemic data sequences`"),
        ("--debug memories", "--debug list", "`mnemic memories` is now `mnemic list`"),
    ],
)
def test_an_old_spelling_is_translated(old: str, new: str, note: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate_argv(old.split()) == new.split()
    assert capsys.readouterr().err == f"note: {note}\n"


@pytest.mark.parametrize(
    "line",
    [
        "ask Who?",
        "forget 3",
        "inspect runs/x",
        "evaluate runs/x",
        "search -n 3 rent",
        "ask -- --state x",
        "text read a b",
    ],
)
def test_a_new_spelling_stays(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate_argv(line.split()) == line.split()
    assert capsys.readouterr().err == ""


def test_every_replacement_is_a_command() -> None:
    names = list(COMMANDS)
    for replacement, _ in SPELLINGS.values():
        assert any(replacement == name or replacement.startswith(f"{name} ") for name in names), replacement


def test_old_command_lines_give_the_old_results(desk: Path) -> None:
    """Run one command per alias."""
    memory = ("--state", "notes.mem")
    row = run("read", "--model", run_of("selective"), *memory, "--device", "cpu", "a.txt", "b.txt")
    assert [json.loads(line)["file"] for line in row.out.splitlines()] == ["a.txt", "b.txt"]
    assert row.err == "note: `mnemic read --state` is now `mnemic text read`\n"
    answer = run("ask", *memory, QUESTION, "--json")
    assert answer.json == run("text", "ask", "notes.mem", QUESTION, "--json").json
    listing = run("inspect", "notes.mem", "--json")
    assert listing.err == "note: `mnemic inspect FILE` is now `mnemic text show`\n"
    assert listing.json == run("text", "show", "notes.mem", "--json").json
    assert run("inspect", "notes.mem", "--all").out == run("text", "show", "notes.mem", "--limit", "0").out
    assert run("forget", *memory, "b.txt", "2-9", "--json").json["forgotten"][1] == [2, 9]
    story = ("--model", model(), "--sentence", "Mary went to the garden.", "Where is Mary?", "--json")
    assert run("ask", *story).json == run("story", "ask", *story).json
    text_model = ("--model", text_run_of("classes"))
    assert run("read", *text_model, stdin="a lovely house\n").json["label"] == "good"
    assert run("evaluate", "--model", model(), "--json").json["mean_error"] < 5


def test_old_spellings_of_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_MEMORY", str(tmp_path / "notes.db"))
    run("remember", "--note", "The rent is 700 euros.", "--embedder", "none")
    assert [document["id"] for document in run("memories", "--json").json["documents"]] == [1]
    assert len(run("search", "rent", "--most", "1", "--json").json["found"]) == 1
    assert run("update", "1", "--note", "The rent is 800 euros.").out == "document 2 supersedes 1\n"


def test_a_mistake_in_an_old_spelling_is_one_line_beside_the_note(desk: Path) -> None:
    read("a.txt")
    done = run("ask", "--state", "notes.mem", "--hops", "2", QUESTION)
    assert done.code == 2
    note, error = done.err.splitlines()
    assert note == "note: `mnemic ask --state` is now `mnemic text ask`"
    assert error.startswith("error: No such option: --hops ")
