"""Print results to standard output, everything else to standard error; build tables.

A command prints its result twice, for a program and for a person; ``--json`` decides which of the
two is seen. Rich is imported on use: a machine without it trains all the same, and prints JSON.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mnemic.cli.render.format import format_json, sanitize

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

AS_JSON = ContextVar("as_json", default=False)  # set by the program for each command line
Rows: TypeAlias = Iterable[Sequence[Any] | None]  # cells are texts, styled or not; None starts a section
PIPE_WIDTH = 110  # columns of tables in a file or a pipe, unless COLUMNS says otherwise


class Styled(NamedTuple):
    """A text, which may be foreign, with a style such as bold or red."""

    text: str
    style: str = ""
    marks: Sequence[tuple[int, int]] = ()  # starts and ends of what stands out in it

    def to_rich(self) -> "Text":
        """Convert it to a text of rich."""
        from rich.text import Text

        text, reached = Text(style=self.style), 0
        for start, end in self.marks:
            text.append(sanitize(self.text[reached:start]))
            text.append(sanitize(self.text[start:end]), style="bold not dim")
            reached = end
        return text.append(sanitize(self.text[reached:]))


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


def get_width() -> int:
    """Return the number of columns of standard output."""
    is_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_known else PIPE_WIDTH


def get_stdout() -> "Console":
    """Return a console on standard output, for results."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, width=get_width())


def print_json(report: Any) -> None:
    """Print a result for a program, if --json is set."""
    if AS_JSON.get():
        print(format_json(report, indent=1))


def print_json_line(report: Any) -> None:
    """Print one of many results as a line of JSON, at once and always."""
    print(format_json(report), flush=True)


def print_text(text: str, style: str = "", *, flush: bool = False) -> None:
    """Print lines of text, which may be foreign, for a person."""
    clean_text = "\n".join(map(sanitize, text.split("\n")))
    if AS_JSON.get():
        return
    if style:
        get_stdout().print(clean_text, style=style, markup=False, soft_wrap=True)
    else:
        print(clean_text, flush=flush)


def print_styled(text: Styled) -> None:
    """Print a styled line for a person."""
    if not AS_JSON.get():
        get_stdout().print(text.to_rich(), soft_wrap=True)


def print_fields(fields: Mapping[str, str | Styled]) -> None:
    """Print names and values in two columns, for a person."""
    if AS_JSON.get():
        return
    from rich.text import Text

    width = max(12, 2 + max(map(len, fields)))
    for name, value in fields.items():
        text = (value if isinstance(value, Styled) else Styled(value)).to_rich()
        get_stdout().print(Text.assemble((f"{name:<{width}}", "dim"), text), soft_wrap=True)


def print_table(
    headers: Sequence[str], rows: Rows, *, title: str = "", caption: str = "", footer: Sequence[str] = ()
) -> None:
    """Print a table for a person."""
    if AS_JSON.get():
        return
    table = build_table(headers, rows)
    table.title, table.caption = (Styled(text).to_rich() if text else None for text in (title, caption))
    table.show_footer = bool(footer)
    for column, text in zip(table.columns, footer):
        column.footer = Styled(text).to_rich()
    get_stdout().print(table)


def build_table(headers: Sequence[str], rows: Rows) -> "Table":
    """Build a table; headers that begin with > align right."""
    from rich.table import Table

    table = Table(header_style="bold")
    for header in headers:
        title = Styled(header.removeprefix(">")).to_rich()
        table.add_column(title, justify="right" if header.startswith(">") else "left", overflow="fold")  # uncut
    for row in rows:
        if row is None:
            table.add_section()
            continue
        cells = (Styled(cell) if isinstance(cell, str) else cell for cell in row)
        table.add_row(*(cell.to_rich() if isinstance(cell, Styled) else cell for cell in cells))
    return table


def print_status(text: str) -> None:
    """Print a line, which may be foreign, to standard error."""
    if is_first_process():
        print(sanitize(text), file=sys.stderr, flush=True)


def print_warnings(*notes: str) -> None:
    """Print warnings to standard error."""
    for note in notes:
        print_status(f"warning: {note}")
