"""``mnemic``: the commands put together, and the one place where errors become words.

A user's mistake is one line ``error: …`` on standard error and exit code 2; with ``--json`` also
``{"error": "…"}`` on standard output. Ctrl-C is exit code 130 and a line that says how to go on.
Anything else is a fault of ours and keeps its traceback.
"""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from mnemic import __version__
from mnemic.cli.documents import ask as recall
from mnemic.cli.documents import demo, forget, mcp, remember
from mnemic.cli.documents import list as memories
from mnemic.cli.documents import maintain as upkeep
from mnemic.cli.interrupt import Stopped
from mnemic.cli.networks import ask_story as ask
from mnemic.cli.networks import data, evaluate, export, inspect, recipes, table, train, words
from mnemic.cli.networks import predict as read
from mnemic.cli.render.console import print_json, say

MISTAKE, STOPPED = 2, 130
# typer has its own copy of click since 0.20 or so; by this road the class is found in any version.
UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="mnemic",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
DOCUMENTS: tuple[Callable[..., None], ...] = (
    remember.remember,
    ask.ask,
    recall.search,
    forget.forget,
    remember.update,
    memories.memories,
    memories.history,
    memories.stats,
    upkeep.check,
    upkeep.reindex,
    upkeep.export_memory,
    upkeep.import_memory,
    mcp.mcp,
    demo.demo,
)
NETWORKS: tuple[Callable[..., None], ...] = (
    recipes.recipes,
    train.train,
    evaluate.evaluate,
    read.read,
    inspect.inspect,
    export.export,
)
for panel, commands in (("Your documents", DOCUMENTS), ("Networks", NETWORKS)):
    for command in commands:
        app.command(rich_help_panel=panel)(command)
data.app.command("words")(words.make_words)
table.app.command()(words.words)
app.add_typer(data.app, name="data", rich_help_panel="Networks")
app.add_typer(table.app, name="table", rich_help_panel="Networks")


def show_version(asked: bool) -> None:
    if asked:
        print(f"mnemic {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="MNEMIC_DEBUG", help="Show the traceback of an error, too."),
    ] = False,
) -> None:
    """Language models with an explicit memory: train them, ask them, see what they read.

    Your documents: mnemic remember FOLDER, then mnemic ask "…"; mnemic demo shows it

    Memory networks: mnemic demo --stories, mnemic recipes, mnemic train --help
    """


def main(words: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = list(sys.argv[1:] if words is None else words) or ["--help"]
    try:
        code = run(given)
        sys.stdout.flush()
        return code
    except Stopped as stop:
        say(str(stop))
        return STOPPED
    except KeyboardInterrupt as stop:
        say(f"{str(stop) or 'stopped'}; to go on: {again(given)}")
        return STOPPED
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def run(words: list[str]) -> int:
    """Run a command; a mistake of the user is said in one line."""
    group: Any = typer.main.get_command(app)
    debug = False
    try:
        with group.make_context("mnemic", list(words)) as context:
            debug = context.params["debug"]
            group.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except UsageError as error:
        path = error.ctx.command_path if error.ctx else "mnemic"
        return fail(f"{error.format_message()} (see: {path} --help)", words)
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        if debug:
            raise
        return fail(worded(error), words)
    return 0


def fail(message: str, words: Sequence[str]) -> int:
    line = " ".join(message.split("\n"))
    say(f"error: {line}")
    if "--json" in words:
        print_json({"error": line})
    return MISTAKE


def worded(error: Exception) -> str:
    """An error in words; the system's own ones without their number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def again(words: Sequence[str]) -> str:
    """The command that goes on with the work of this one."""
    return shlex.join(["mnemic", *(word for word in words if word != "--fresh")])
