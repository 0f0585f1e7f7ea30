"""The ``mnemic`` program: registers all commands and turns errors into messages.

A user's mistake prints one line ``error: …`` on standard error and exits with code 2; with
``--json`` it also prints ``{"error": "…"}`` on standard output. Ctrl-C exits with code 130 and
prints how to resume. Any other exception is a bug and keeps its traceback.
"""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from mnemic import __version__
from mnemic.cli.documents import ask, demo, forget, maintain, mcp, remember
from mnemic.cli.documents.list import history, memories, stats
from mnemic.cli.interrupt import CommandInterrupted
from mnemic.cli.networks import ask_story, data, evaluate, export, inspect, predict, recipes, table, train, words
from mnemic.cli.render.console import print_json, print_status

EXIT_MISTAKE, EXIT_INTERRUPTED = 2, 130
# typer bundles its own click since 0.20 or so; the MRO gives the class in any version.
UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(name="mnemic", add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
DOCUMENTS: tuple[Callable[..., None], ...] = (
    remember.remember,
    ask_story.ask,
    ask.search,
    forget.forget,
    remember.update,
    memories,
    history,
    stats,
    maintain.check,
    maintain.reindex,
    maintain.export_memory,
    maintain.import_memory,
    mcp.mcp,
    demo.demo,
)
NETWORKS: tuple[Callable[..., None], ...] = (
    recipes.recipes,
    train.train,
    evaluate.evaluate,
    predict.read,
    inspect.inspect,
    export.export,
)
for panel, commands in (("Your documents", DOCUMENTS), ("Networks", NETWORKS)):
    for command in commands:
        app.command(rich_help_panel=panel)(command)
data.app.command("words")(words.prepare_words)
table.app.command()(words.words)
app.add_typer(data.app, name="data", rich_help_panel="Networks")
app.add_typer(table.app, name="table", rich_help_panel="Networks")


def print_version(is_set: bool) -> None:
    """Print the version and exit, if ``--version`` is set."""
    if is_set:
        print(f"mnemic {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="MNEMIC_DEBUG", help="Also show the traceback of an error.")
    ] = False,
) -> None:
    """Language models with an explicit memory: train them, ask them, see the evidence.

    Your documents: mnemic remember FOLDER, then mnemic ask "…"; mnemic demo shows it

    Memory networks: mnemic demo --stories, mnemic recipes, mnemic train --help
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        code = run_command(args)
        sys.stdout.flush()
        return code
    except CommandInterrupted as interrupt:
        print_status(str(interrupt))
        return EXIT_INTERRUPTED
    except KeyboardInterrupt as interrupt:
        print_status(f"{str(interrupt) or 'stopped'}; to go on: {format_resume_command(args)}")
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe, such as `head`, closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def run_command(argv: list[str]) -> int:
    """Run a command; report a user's mistake in one line."""
    group: Any = typer.main.get_command(app)
    debug = False
    try:
        with group.make_context("mnemic", list(argv)) as context:
            debug = context.params["debug"]
            group.invoke(context)
    except typer.Exit as exit_request:
        return exit_request.exit_code
    except UsageError as error:
        path = error.ctx.command_path if error.ctx else "mnemic"
        return report_mistake(f"{error.format_message()} (see: {path} --help)", argv)
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        if debug:
            raise
        return report_mistake(format_error(error), argv)
    return 0


def report_mistake(message: str, argv: Sequence[str]) -> int:
    """Print an error message and return the exit code."""
    line = " ".join(message.split("\n"))
    print_status(f"error: {line}")
    if "--json" in argv:
        print_json({"error": line})
    return EXIT_MISTAKE


def format_error(error: Exception) -> str:
    """Format an error message, without the errno of system errors."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def format_resume_command(argv: Sequence[str]) -> str:
    """Format the command that resumes an interrupted one."""
    return shlex.join(["mnemic", *(word for word in argv if word != "--fresh")])
