"""The ``mnemic`` program: runs a command and turns errors into messages.

A user's mistake prints one line ``error: …`` on standard error and exits with code 2; with
``--json`` it also prints ``{"error": "…"}`` on standard output. Ctrl-C exits with code 130 and
prints how to resume. Any other exception is a bug and keeps its traceback.
"""

import os
import shlex
import sys
from collections.abc import Sequence

from mnemic.cli.aliases import translate_argv
from mnemic.cli.interrupt import CommandInterrupted
from mnemic.cli.render.console import AS_JSON, is_first_process, is_installed, print_json, print_status
from mnemic.cli.render.format import sanitize

EXIT_MISTAKE, EXIT_INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = translate_argv(sys.argv[1:] if argv is None else argv) or ["--help"]
    if not is_first_process():
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open until the end
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
    AS_JSON.set("--json" in argv or not is_installed("rich"))
    if is_installed("typer"):
        from mnemic.cli.typer_app import run
    else:  # a machine that only trains
        from mnemic.cli.plain_parser import run
    debug = argv[:1] == ["--debug"] or os.environ.get("MNEMIC_DEBUG", "0") not in ("", "0", "false")
    try:
        return run(argv)
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        if debug:
            raise
        line = " ".join(format_error(error).splitlines())
        print(f"error: {sanitize(line)}", file=sys.stderr, flush=True)
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
    if "RANK" in os.environ:
        return "run the same torchrun command"
    return shlex.join(["mnemic", *(word for word in argv if word != "--fresh")])
