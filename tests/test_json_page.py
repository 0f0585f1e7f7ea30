"""The ``--json`` output of commands has the keys that docs/reference/json.md lists.

The page has an interface per command. Here the commands run once, on three small files, and every
object that they print must have exactly the keys of its interface.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from app_runs import run

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
INTERFACE = re.compile(r"^interface (\w+) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+)\??: ([^/]*?);", re.MULTILINE)
SCHEMAS = {name: dict(FIELD.findall(body)) for name, body in INTERFACE.findall(PAGE)}

MUSEUM = "The museum was founded in 1897 by Edith Marlowe. Samuel Pike saved most of the paintings."
STORY = "Mary moved to the bathroom.\nJohn went to the hallway.\nMary went to the kitchen.\n"


def check(value: Any, interface: str) -> None:
    """Compare the keys of an object, and of inner objects that have an interface."""
    fields = SCHEMAS[interface]
    assert set(value) - {"text"} == set(fields) - {"text"}, interface
    for key, kind in fields.items():
        inner = kind.removesuffix("[]")
        if inner in SCHEMAS:
            for item in value[key] if kind.endswith("[]") else [value[key]]:
                check(item, inner)


def test_every_field_of_an_interface_has_one_line() -> None:
    assert len(SCHEMAS) >= 20
    assert all(SCHEMAS.values())


def test_documents_are_printed_as_promised(tmp_path: Path) -> None:
    memory = ("--memory", tmp_path / "notes.db", "--json")
    (tmp_path / "lease.txt").write_text("The lease ends on 30 June.", encoding="utf-8")
    (tmp_path / "broken.pdf").write_text("no PDF", encoding="utf-8")
    remembered = run("remember", tmp_path / "lease.txt", tmp_path / "broken.pdf", *memory).json
    check(remembered, "Remember")
    assert [set(broken) for broken in remembered["broken"]] == [{"path", "reason"}]
    check(run("ask", "When does the lease end?", *memory).json, "Ask")
    check(run("search", "lease", *memory).json, "Search")
    check(run("list", *memory).json, "List")
    check(run("stats", *memory).json, "Stats")
    check(run("check", *memory).json, "Check")
    check(run("reindex", *memory).json, "Reindex")
    check(run("update", "1", "The lease ends on 31 July.", *memory).json, "Update")
    check(run("history", "2", *memory).json, "History")
    check(run("export-memory", tmp_path / "out.jsonl", *memory).json, "ExportMemory")
    copy = ("--memory", tmp_path / "other.db", "--json")
    check(run("import-memory", tmp_path / "out.jsonl", *copy).json, "ImportMemory")
    check(run("forget", "2", "--verify", *memory).json, "Forget")
    check(run("trust", "--list", "--json").json, "Trust")
    assert set(run("ask", "?", "--memory", tmp_path / "none.db", "--json").json) == {"error"}


def test_long_texts_are_printed_as_promised(tmp_path: Path) -> None:
    text, memory = tmp_path / "museum.txt", tmp_path / "museum.mem"
    text.write_text(MUSEUM, encoding="utf-8")
    (line,) = run("text", "read", memory, text, "--json").out.splitlines()
    check(json.loads(line), "TextRead")
    check(run("text", "ask", memory, "Who saved the paintings?", "--json").json, "TextAsk")
    check(run("text", "show", memory, "--json").json, "TextShow")
    check(run("text", "forget", memory, "--from", "0", "--to", "9", "--json").json, "TextForget")


@pytest.mark.parametrize("network", ["entnet-babi", "wmn-babi"])
def test_stories_are_printed_as_promised(network: str, tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(STORY, encoding="utf-8")
    arguments = ("--model", network, "--story", tmp_path / "story.txt", "Where is Mary?", "--json")
    check(run("story", "ask", *arguments).json, "StoryAsk")


def test_generated_stories_are_printed_as_promised(tmp_path: Path) -> None:
    result = run("data", "stories", "--task", "1", "--count", "5", "--out", tmp_path / "st", "--json")
    check(result.json, "DataStories")
