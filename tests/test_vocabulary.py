"""Names and docstrings of the code: clear names, unique classes, short first lines."""

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import mnemic

ROOT = Path(mnemic.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
EXAMPLES = ROOT.parent / "CONTRIBUTING.md"
# Names that say what happened to a value, or nothing at all, instead of what it is.
PARTICIPLES = frozenset(
    """told said asked held kept given chosen wanted drawn taken found made came learnt tested begun
    spoken listed pointed looked numbered placed worded judged shown meant gone left lost owed due
    offered sought thinned touched left_out""".split()  # noqa: SIM905
)
VAGUE = frozenset(
    """own one other others part whole every each thing things strange beside behind theirs ours
    wish lean leans odds chance chances dice rolls roll place places most least stretch stretches
    how what why here there some few near""".split()  # noqa: SIM905
)
BANNED = PARTICIPLES | VAGUE
MAX_DOCSTRING_WORDS = 15
# Names that a file, a recipe or a paper fixes: (file, name).
FIXED = frozenset(
    {
        ("memory/contract.py", "found"),  # Reading.found is the frame's
        ("encode/gru_cell.py", "given"),  # saved tensors
        ("memory/dmn_plus.py", "given"),
        ("respond/predictor.py", "found"),
        ("respond/words.py", "begun"),
        ("respond/words.py", "said"),
        ("memory/blended.py", "lost"),  # fields of memories in .mem files
        ("memory/blended.py", "told"),
        ("memory/parts/sources.py", "lost"),
        ("memory/selective.py", "odds"),
        ("memory/selective.py", "told"),
        ("train/optim/schedules.py", "every"),  # keys of recipes
        ("predict/story.py", "kept"),  # fields of --json
        ("predict/story.py", "told"),
        ("predict/story.py", "taken"),
        ("text/documents/boxes.py", "left"),  # a side of a box
        ("mcp/results.py", "found"),
        ("mcp/results.py", "looked"),
        ("store/answers.py", "looked"),
        ("web/schemas/answers.py", "looked"),
        ("web/schemas/answers.py", "place"),  # fields of the HTTP API
        ("web/schemas/networks.py", "ours"),
        ("store/contract.py", "places"),
        ("store/contract.py", "what"),
        ("store/contract.py", "left_out"),
        ("store/contract.py", "why"),
    }
)


class Binding(NamedTuple):
    """A bound name: a variable, a parameter, a function, a class or an attribute."""

    path: str
    line: int
    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind} {self.name}"


def bindings(path: str, tree: ast.AST) -> Iterator[Binding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Binding(path, node.lineno, node.id, "variable")
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield Binding(path, node.lineno, node.attr, "attribute")
        elif isinstance(node, ast.arg):
            yield Binding(path, node.lineno, node.arg, "parameter")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Binding(path, node.lineno, node.name, "function")
        elif isinstance(node, ast.ClassDef):
            yield Binding(path, node.lineno, node.name, "class")


def is_banned(binding: Binding) -> bool:
    if (binding.path, binding.name) in FIXED:
        return False
    return binding.name in BANNED


def documented(path: str, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the location and the first line of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                line = getattr(node, "lineno", 1)
                yield f"{path}:{line} {getattr(node, 'name', 'module')}", text.split("\n")[0]


def parse_file(path: Path) -> tuple[str, ast.AST]:
    """Parse a file of the package, or the Python examples of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    return os.path.relpath(path, ROOT), ast.parse(text)


class Names(NamedTuple):
    """What the files say: banned names, the places of each class, long first lines."""

    banned: list[str]
    classes: dict[str, list[str]]
    long_docstrings: list[str]


def long_docstrings(path: str, tree: ast.AST) -> Iterator[str]:
    for location, line in documented(path, tree):
        if len(re.findall(r"[^\s]*\w[^\s]*", line)) > MAX_DOCSTRING_WORDS:
            yield f"{location}: {line}"


@cache
def read_names() -> Names:
    """Read every file once; the examples of the page may name classes again."""
    names = Names([], defaultdict(list), [])
    for path in [*FILES, EXAMPLES]:
        name, tree = parse_file(path)
        bound = list(bindings(name, tree))
        names.banned.extend(str(binding) for binding in bound if is_banned(binding))
        names.long_docstrings.extend(long_docstrings(name, tree))
        for binding in bound:
            if binding.kind == "class" and path != EXAMPLES:
                names.classes[binding.name].append(f"{name}:{binding.line}")
    return names


def test_names_say_what_a_thing_is() -> None:
    assert not read_names().banned


def test_a_class_name_occurs_once() -> None:
    classes = read_names().classes
    assert len(classes) > 200
    assert not {name: locations for name, locations in classes.items() if len(locations) > 1}


def test_first_docstring_lines_are_short() -> None:
    assert not read_names().long_docstrings


def test_the_walk_sees_banned_names_and_long_lines() -> None:
    """The tests above need all names and docstrings to be read."""
    words = " ".join(["word"] * MAX_DOCSTRING_WORDS)
    tree = ast.parse(
        f'class A:\n  """{words}"""\n  def held(self, told):\n    """{words} more"""\n    self.own = one = 1'
    )
    banned = {str(binding) for binding in bindings("x.py", tree) if is_banned(binding)}
    assert banned == {"x.py:3 function held", "x.py:3 parameter told", "x.py:5 attribute own", "x.py:5 variable one"}
    assert list(long_docstrings("x.py", tree)) == [f"x.py:3 held: {words} more"]
