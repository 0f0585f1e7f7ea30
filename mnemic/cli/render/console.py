"""Print results to standard output, everything else to standard error; build tables.

Rich is imported on use: a machine without it trains all the same, and prints JSON.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mnemic.cli.render.format import sanitize

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

PIPE_WIDTH = 110  # columns of tables in a file or a pipe, unless COLUMNS says otherwise


def is_installed(module: str) -> bool:
    """Check whether a module can be imported: machines that only train lack typer and rich."""
    try:
        import_module(module)
    except ModuleNotFoundError:
        return False
    return True


def is_first_process() -> bool:
    """Check whether this process may print: torchrun starts several."""
    return os.environ.get("RANK", "0") == "0"


def get_stdout() -> "Console":
    """Return a console on standard output, for results."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(highlight=False, emoji=False, width=width)


def print_text(text: str, style: str = "") -> None:
    """Print lines of text, which may be foreign, to standard output."""
    clean_text = "\n".join(map(sanitize, text.split("\n")))
    if style:
        get_stdout().print(clean_text, style=style, markup=False, soft_wrap=True)
    else:
        print(clean_text)


def print_result(report: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result: its report as JSON, or lines for a person."""
    if as_json:
        print_json(report)
    else:
        print_text("\n".join(lines))


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def print_json_line(value: Any) -> None:
    """Print a value as one line of JSON, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_status(text: str) -> None:
    """Print a line, which may be foreign, to standard error."""
    if is_first_process():
        print(sanitize(text), file=sys.stderr, flush=True)


def print_warnings(*notes: str) -> None:
    """Print warnings to standard error."""
    for note in notes:
        print_status(f"warning: {note}")


def print_fields(fields: "Mapping[str, str | Text]") -> None:
    """Print names and values in two columns."""
    from rich.text import Text

    width = max(12, 2 + max(map(len, fields)))
    for name, value in fields.items():
        text = sanitize(value) if isinstance(value, str) else value
        get_stdout().print(Text.assemble((f"{name:<{width}}", "dim"), text), soft_wrap=True)


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any] | None],
    *,
    title: str = "",
    caption: str = "",
    footer: Sequence[str] = (),
) -> None:
    """Print a table to standard output."""
    table = build_table(headers, rows)
    table.title, table.caption, table.show_footer = title or None, caption or None, bool(footer)
    for column, text in zip(table.columns, footer):
        column.footer = text
    get_stdout().print(table)


def build_table(headers: Sequence[str], rows: Iterable[Sequence[Any] | None]) -> "Table":
    """Build a table; headers that begin with > align right, None in ``rows`` starts a section."""
    from rich.table import Table

    table = Table(*(header.removeprefix(">") for header in headers), header_style="bold")
    for header, column in zip(headers, table.columns):
        column.justify = "right" if header.startswith(">") else "left"
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*(style_text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def style_text(text: str, style: str = "") -> "Text":
    """Give a text, which may be foreign, a style, such as bold or red."""
    from rich.text import Text

    return Text(sanitize(text), style=style)
