"""What the code itself knows, on the page: recipes, kinds and commands; and what a field holds.

The directives write Markdown from the package as it is installed, so that a page cannot say what
is not so.
"""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FIELD = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)
WIDTH = "84"  # columns of a block on the page
# By the maker.
GIVEN = {"width", "vocab", "words", "longest", "tables", "classes", "parameters", "rate", "runs"}
LONGEST = 30  # characters of a default that is shown
TABLES = {  # what a recipe calls it: where its kinds are listed
    "model.encode": "mnemic.encode:ENCODERS",
    "model.fuse": "mnemic.encode:FUSIONS",
    "model.memory": "mnemic.memory:MEMORIES",
    "model.memory.update": "mnemic.memory.parts.hop_update:UPDATES",
    "model.memory.match": "mnemic.memory.parts.match:MATCHES",
    "model.respond": "mnemic.respond:RESPONSES",
    "data": "mnemic.data:DATASETS",
    "objective": "mnemic.objectives:OBJECTIVES",
    "train.optimiser": "mnemic.train.optim.optimizers:OPTIMIZERS",
    "train.schedule": "mnemic.train.optim.schedules:SCHEDULES",
    "train.clip": "mnemic.train.optim.clipping:CLIPS",
}


def recipes() -> Iterator[str]:
    """Every shipped recipe with its text."""
    from mnemic.recipe import find_recipe, recipe_names

    for name in recipe_names():
        yield f"### {name}\n\n```toml\n{find_recipe(name).read_text(encoding='utf-8')}```\n"


def kinds() -> Iterator[str]:
    """Every table of kinds with the options each kind takes."""
    for key, home in TABLES.items():
        module, _, table = home.partition(":")
        yield f"### {key}\n\n| kind | what it is | options |\n| --- | --- | --- |"
        for kind, maker in getattr(import_module(module), table).items():
            yield f"| `{kind}` | {first_line(maker)} | {', '.join(options(maker)) or '–'} |"
        yield ""


def options(maker: Callable[..., Any]) -> Iterator[str]:
    """What a recipe may set, with its default where that is short."""
    for name, parameter in inspect.signature(maker).parameters.items():
        default = parameter.default
        shown = str(default).lower() if isinstance(default, bool) else repr(default)
        short = default is not inspect.Parameter.empty and len(shown) <= LONGEST
        short = short and shown != "<factory>"  # of a dataclass
        if name not in GIVEN and not str(parameter).startswith("*"):
            yield f"`{name} = {shown}`" if short else f"`{name}`"


def first_line(maker: Callable[..., Any]) -> str:
    """A docstring's first sentence, fit for a cell of a table."""
    text = " ".join((inspect.getdoc(maker) or "").split("\n\n")[0].split())
    return text.replace("``", "`").replace("|", "\\|")


def commands() -> Iterator[str]:
    """Every command with what its ``--help`` prints."""
    import typer

    from mnemic.cli.typer_app import build_app

    for path in walk(typer.main.get_command(build_app())):
        yield f"## mnemic {' '.join(path)}\n\n```text\n{help_of(path)}\n```\n"


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to every command; a group is only part of the way."""
    below: Mapping[str, Any] = getattr(command, "commands", {})
    if not below:
        yield path
    for name, inner in below.items():
        yield from walk(inner, (*path, name))


def help_of(path: Iterable[str]) -> str:
    """Without colours, in lines that fit the page."""
    words = [sys.executable, "-m", "mnemic", *path, "--help"]
    plain = os.environ | {"COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(words, env=plain, capture_output=True, check=True, encoding="utf-8")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n ").splitlines())


def fields(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Add to a class the comments behind its fields, which say shapes and meanings."""
    if what == "class" and (issubclass(found, tuple) or is_dataclass(found)):
        told = FIELD.findall(inspect.getsource(found))
        lines += [f"- ``{field}``: {comment}" for field, comment in told] + [""] * bool(told)


def skip(app: Sphinx, what: str, name: str, found: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what Python itself says of a named tuple's fields."""
    return True if str(found.__doc__).startswith("Alias for field number") else None


class Live(SphinxDirective):
    """Puts what one of the functions above writes in its place."""

    source: Callable[[], Iterable[str]]
    has_content = False

    def run(self) -> list[nodes.Node]:
        text = "\n".join(type(self).source())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    for source in (recipes, kinds, commands):
        kind = type(source.__name__.title(), (Live,), {"source": staticmethod(source)})
        app.add_directive(f"mnemic-{source.__name__}", kind)
    app.connect("autodoc-process-docstring", fields)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
