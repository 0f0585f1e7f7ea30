"""The README and the documentation show only code and commands that work.

Blocks marked ``bash`` and ``python`` are run, in their order and in one empty folder; a ``text``
block after one of them is what it printed, but for the numbers, which another machine rounds
otherwise. Commands that are only shown, in blocks marked ``console`` or within a line, here or in
the documentation, must exist.
"""

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from mnemic.cli.typer_app import build_app
from mnemic.predict.model import Model

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^ *```(\S*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# Files of a reader: those of the worked examples, and a report to remember.
INVENTED = {"mnemic/encode/attention/local.py", "mnemic/memory/cosine.py", "mnemic/recipes/cosine.toml"}
INVENTED |= {"mine.toml", "report.md"}
INLINE = re.compile(r"`((?:make|mnemic) [^`\n]+)`")


class Block(NamedTuple):
    """A fenced block: its language and its text."""

    mark: str
    text: str


def blocks(page: Path) -> list[Block]:
    """List the fenced blocks of a page, without directives such as ```{figure}."""
    all_blocks = [Block(*match) for match in FENCE.findall(page.read_text(encoding="utf-8"))]
    return [block for block in all_blocks if not block.mark.startswith("{")]


def list_commands() -> list[tuple[str, str]]:
    """List all commands that pages show, with the name of the page."""
    page_commands = []
    for page in PAGES:
        lines = [block.text.splitlines() for block in blocks(page) if block.mark == "console"]
        commands = [line.removeprefix("$ ").split("  #")[0] for block_lines in lines for line in block_lines]
        commands += INLINE.findall(page.read_text(encoding="utf-8"))
        page_commands += [(page.name, command) for command in commands]
    return sorted(set(page_commands))


def execute(block: Block, folder: Path) -> str:
    command = ["bash", "-euo", "pipefail", "-c"] if block.mark == "bash" else [sys.executable, "-c"]
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    process = subprocess.run(
        [*command, block.text],
        cwd=folder,
        env=os.environ | environment | {"PYTHONUTF8": "1", "COLUMNS": "110"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert process.returncode == 0, f"{block.text}\n{process.stdout}\n{process.stderr}"
    return process.stdout


def extract_words(text: str) -> list[list[str]]:
    """Extract the words of each line; numbers differ between machines."""
    lines = (re.sub(r"\(next.*\)", "", line) for line in text.splitlines())
    return [words for line in lines if (words := re.findall(r"[^\W\d_]+", line))]


def test_every_block_that_can_run_runs_and_prints_what_is_shown(tmp_path: Path) -> None:
    ran, printed = [], ""
    for block in blocks(README):
        if block.mark in ("bash", "python"):
            printed = execute(block, tmp_path)
            ran.append(block.mark)
        elif block.mark == "text":
            assert extract_words(block.text) == extract_words(printed)
    assert {"bash", "python"} <= set(ran)


def test_every_block_is_marked() -> None:
    known = {"bash", "python", "text", "console", "toml", "json", "sql", "typescript", ""}  # no mark: a drawing
    all_blocks = [block for page in PAGES for block in blocks(page)]
    unknown = {block.mark for block in all_blocks} - known
    assert not unknown, f"a test cannot tell what to do with blocks marked {sorted(unknown)}"
    assert all(json.loads(block.text) for block in all_blocks if block.mark == "json")
    commands = re.compile(r"^\s*(\$|make|mnemic|pip)\s", re.MULTILINE)
    for page in PAGES:
        assert not [block for block in blocks(page) if not block.mark and commands.search(block.text)], page.name


def test_toml_of_the_documentation_is_toml() -> None:
    for page in PAGES:
        for block in blocks(page):
            if block.mark == "toml":
                tomllib.loads(block.text)


@pytest.mark.parametrize("script", sorted((ROOT / "docs").rglob("*.py")), ids=lambda script: script.name)
def test_scripts_of_the_documentation_import_what_exists(script: Path) -> None:
    """Also within functions; ``make docs`` runs them."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mnemic"):
            module = importlib.import_module(str(node.module))
            assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_of_the_documentation_imports_what_exists(page: Path) -> None:
    for block in blocks(page):
        if block.mark != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mnemic"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "mnemic":
                assert hasattr(importlib.import_module("mnemic"), node.attr), node.attr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_methods_of_the_documentation_exist(page: Path) -> None:
    """Of what ``mnemic.load`` returns: names and keywords, in blocks of Python."""
    for block in blocks(page):
        tree = ast.parse(block.text) if block.mark == "python" else ast.Module([], [])
        nodes = list(ast.walk(tree))
        loaded = {
            ast.unparse(node.targets[0])
            for node in nodes
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("mnemic.load(")
        }
        for node in nodes:
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in loaded:
                assert hasattr(Model, node.attr), f"a Model has no {node.attr}"
            if isinstance(node, ast.Call) and ast.unparse(node.func).partition(".")[0] in loaded:
                method = ast.unparse(node.func).partition(".")[2]
                known = inspect.signature(getattr(Model, method)).parameters
                assert {str(keyword.arg) for keyword in node.keywords} <= set(known), ast.unparse(node)


def mentions() -> Iterator[tuple[str, str]]:
    """Every text that may name a file: pages, docstrings, the comments of recipes."""
    for page in [*PAGES, ROOT / "SECURITY.md"]:
        yield page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")
    yield "CHANGELOG.md", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]  # the newest
    for path in (path for room in ("mnemic", "benchmarks") for path in sorted((ROOT / room).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield path.relative_to(ROOT).as_posix(), ast.get_docstring(node) or ""
    for path in sorted((ROOT / "mnemic" / "recipes").glob("*.toml")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_files_that_are_named_exist() -> None:
    """``long_speed.py`` alone is enough, whatever its folder; a path must be a whole one."""
    rooms = ("mnemic", "tests", "benchmarks", "docs")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.*")] + list(ROOT.glob("*.*"))
    known = {path.relative_to(ROOT).as_posix() for path in paths}
    known |= {path.name for path in paths} | INVENTED
    missing = {
        (origin, name)
        for origin, text in mentions()
        for name in re.findall(r"(?<![\w/.-])[\w./-]*\w\.(?:py|md|sh|toml)\b", text)
        if name not in known and not (ROOT / origin).parent.joinpath(name).is_file()
    }
    assert not missing


def test_commands_that_are_only_shown_exist() -> None:
    """Check ``make`` targets, and commands and options of ``mnemic``."""
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    app = typer.main.get_command(build_app())
    commands = list_commands()
    assert {command.split()[0] for _, command in commands} >= {"make", "mnemic"}
    wrong = {}
    for page, command in commands:
        words = command.split()
        if words[0] == "make":
            unknown = set(words[1:]) - targets
        elif words[0] == "mnemic":
            unknown = find_unknown_words(app, words[1:])
        else:
            continue
        if unknown:
            wrong[page, command] = unknown
    assert not wrong


def find_unknown_words(command: Any, words: list[str]) -> set[str]:
    """Find the command and the options that do not exist."""
    if " ".join(words[:2]) in command.commands:  # "train vectors" has no group
        words = [" ".join(words[:2]), *words[2:]]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    is_command = bool(words) and not words[0].startswith("-")  # else an option of mnemic itself
    if is_command and getattr(command, "commands", {}):
        return {words[0]}
    known = {name for parameter in command.params for name in parameter.opts}
    return {word for word in words if word.startswith("--")} - known


def test_commands_that_do_not_exist_are_seen() -> None:
    app = typer.main.get_command(build_app())
    assert find_unknown_words(app, ["train", "memn2n", "--set", "train.rate=1"]) == set()
    assert find_unknown_words(app, ["train", "memn2n", "--rate", "1"]) == {"--rate"}
    assert find_unknown_words(app, ["story", "tell"]) == {"tell"}
    assert find_unknown_words(app, ["train", "vectors", "--nowhere"]) == {"--nowhere"}


def test_the_readme_opens_with_the_two_commands_that_do_everything() -> None:
    first = blocks(README)[0]
    assert [line.split()[1:3] for line in first.text.splitlines()] == [["make", "demo"], ["make", "test"]]
