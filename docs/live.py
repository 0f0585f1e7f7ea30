"""Sphinx directives that write Markdown from the installed package.

Recipes, kinds, commands and file formats come from the code itself, so that these pages cannot
disagree with it. Fields of result classes get the comments that follow them in the source.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FIELD = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)
CODE = re.compile(r"^ {4}(from |import |\$ |python |mnemic |\w+ = )")  # an example in a docstring
# Arguments that the code passes itself; a recipe cannot set them.
PASSED = {
    "width", "vocab", "words", "tokenizer", "longest", "max_length", "tables", "num_tables",
    "classes", "num_classes", "parameters", "rate", "runs", "teachers", "shards", "batch",
    "channels", "side", "regions", "task_classes", "attributes",
}  # fmt: skip
LAYER_FACTS = {"layer", "depth"}  # likewise, to an attention
MAX_DEFAULT = 30  # characters of a default value that is shown
TABLES = {  # key of a recipe: the table of its kinds
    "model.encode": "mnemic.encode:ENCODERS",
    "model.encode of pictures": "mnemic.encode.pictures:PICTURE_ENCODERS",
    "model.encode.stack.attention": "mnemic.encode.attention:ATTENTIONS",
    "model.fuse": "mnemic.encode:FUSIONS",
    "model.memory": "mnemic.memory:MEMORIES",
    "model.memory.update": "mnemic.memory.parts.hop_update:UPDATES",
    "model.memory.match": "mnemic.memory.parts.match:MATCHES",
    "model.respond": "mnemic.respond:RESPONSES",
    "data": "mnemic.data:DATASETS",
    "data.views": "mnemic.data.views.draw:VIEWS",
    "objective": "mnemic.objectives:OBJECTIVES",
    "train.optimizer": "mnemic.train.optim.optimizers:OPTIMIZERS",
    "train.schedule": "mnemic.train.optim.schedules:SCHEDULES",
    "train.clip": "mnemic.train.optim.clipping:CLIPS",
}


def recipes() -> Iterator[str]:
    """List every shipped recipe with its text."""
    from mnemic.recipe.load import find_recipe, recipe_names

    for name in recipe_names():
        yield f"### {name}\n\n```toml\n{find_recipe(name).read_text(encoding='utf-8')}```\n"


def kinds() -> Iterator[str]:
    """List every table of kinds with the options of each kind."""
    for key, home in TABLES.items():
        module, _, table = home.partition(":")
        yield f"### {key}\n\n| kind | what it does | options |\n| --- | --- | --- |"
        for kind, constructor in getattr(import_module(module), table).items():
            passed = PASSED | LAYER_FACTS if key.endswith("attention") else PASSED
            options = ", ".join(list_options(constructor, passed)) or "–"
            yield f"| `{kind}` | {first_sentence(constructor)} | {options} |"
        yield ""


def list_options(constructor: Callable[..., Any], passed: set[str]) -> Iterator[str]:
    """List the options a recipe may set, with short defaults."""
    for name, parameter in inspect.signature(constructor).parameters.items():
        default = parameter.default
        shown = str(default).lower() if isinstance(default, bool) else repr(default)
        is_short = default is not inspect.Parameter.empty and len(shown) <= MAX_DEFAULT
        is_short = is_short and shown != "<factory>"  # of a dataclass
        if name not in passed and not str(parameter).startswith("*"):
            yield f"`{name} = {shown}`" if is_short else f"`{name}`"


def first_sentence(constructor: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring, fit for a table cell."""
    text = " ".join((inspect.getdoc(constructor) or "").split("\n\n")[0].split())
    return to_cell(text)


def to_cell(text: str) -> str:
    """Make a text safe for a cell of a Markdown table."""
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|").replace("<", "&lt;")


def formats() -> Iterator[str]:
    """List the kinds of files that a memory reads, with their names and suffixes."""
    from mnemic.text.documents import SUFFIXES
    from mnemic.text.documents.kinds import KIND_NAMES

    suffixes: dict[str, list[str]] = {}
    for suffix, kind in SUFFIXES.items():
        suffixes.setdefault(kind, []).append(f"`{suffix}`")
    yield "| kind | what it is | suffixes |\n| --- | --- | --- |"
    for kind, names in sorted(suffixes.items()):
        yield f"| {kind} | {KIND_NAMES[kind]} | {' '.join(sorted(names))} |"


def commands() -> Iterator[str]:
    """List every command with its help, arguments and options."""
    import typer

    from mnemic.cli.typer_app import build_app

    for path, command in walk(typer.main.get_command(build_app())):
        name = " ".join(("mnemic", *path))
        yield f"## {name}\n\n{format_help(command.help or '')}\n"
        yield from format_parameters(command.params)


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every visible command with its path; a group is only part of a path."""
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, child in inner.items():
        if not child.hidden:
            yield from walk(child, (*path, name))


def format_help(text: str) -> str:
    """Turn the examples of a help text into code."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n")]
    example = re.compile(r"^([^:]*: )((?:echo|mnemic) .*)$")
    return "\n\n".join(example.sub(r"\1`\2`", paragraph) for paragraph in paragraphs)


def format_parameters(parameters: Iterable[Any]) -> Iterator[str]:
    """Format the arguments and options of a command as a table."""
    rows = [format_parameter(parameter) for parameter in parameters if not getattr(parameter, "hidden", False)]
    if rows:
        yield "| | |\n| --- | --- |"
        yield from rows
    yield ""


def format_parameter(parameter: Any) -> str:
    """Format one argument or option as a row of a table."""
    is_option = any(name.startswith("-") for name in parameter.opts)
    is_flag = bool(getattr(parameter, "is_flag", False))
    default = parameter.default
    choices = "|".join(str(member.value) for member in type(default)) if isinstance(default, Enum) else ""
    value = parameter.metavar or choices or parameter.name.upper()
    name = ", ".join(parameter.opts) + ("" if is_flag else f" {value}") if is_option else value
    notes = [to_cell(parameter.help or "")]
    default = default.value if isinstance(default, Enum) else default
    default = parameter.show_default if isinstance(parameter.show_default, str) else default
    if isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        notes.append(f"Default: {to_cell(str(default))}.")
    if parameter.required:
        notes.append("Required.")
    if parameter.envvar:
        notes.append(f"Environment: `{parameter.envvar}`.")
    name = name.replace("|", "\\|")
    return f"| `{name}` | {' '.join(notes)} |"


def fields(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Add the comments that follow the fields of a class, which say shapes and meanings."""
    if what == "class" and (issubclass(found, tuple) or is_dataclass(found)):
        comments = FIELD.findall(inspect.getsource(found))
        lines += [f"- ``{field}``: {comment}" for field, comment in comments]
        lines += [""] * bool(comments)


def mark_examples(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Mark indented examples of a docstring as code, where no ``::`` does."""
    is_marked, marked = False, []
    for line in lines:
        is_indented = line.startswith("    ") or not line.strip()
        if not is_indented:
            is_marked = line.rstrip().endswith("::")
        elif CODE.match(line) and not is_marked:
            marked += ["::", ""]
            is_marked = True
        marked.append(line)
    lines[:] = marked


def skip(app: Sphinx, what: str, name: str, found: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out the docstrings that Python gives the fields of a named tuple."""
    return True if str(found.__doc__).startswith("Alias for field number") else None


class Live(SphinxDirective):
    """Insert the Markdown that one of the functions above writes."""

    source: Callable[[], Iterable[str]]
    has_content = False

    def run(self) -> list[nodes.Node]:
        text = "\n".join(type(self).source())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    for source in (recipes, kinds, formats, commands):
        directive = type(source.__name__.title(), (Live,), {"source": staticmethod(source)})
        app.add_directive(f"mnemic-{source.__name__}", directive)
    app.connect("autodoc-process-docstring", mark_examples)
    app.connect("autodoc-process-docstring", fields)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
