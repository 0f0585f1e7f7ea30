"""The typer application, built from the table of commands: parsing, help and completion."""

import os
from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup

from mnemic import __version__
from mnemic.cli.commands import DOCUMENT_COMMANDS, GROUPS, PANELS
from mnemic.cli.config import collect_defaults
from mnemic.cli.declare import Option
from mnemic.cli.options import JSON

COMPLETION_VARIABLE = "_MNEMIC_COMPLETE"  # set by the shell that completes a command line
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
# typer bundles its own click since 0.20 or so; the MRO gives the class in any version.
UsageError: Any = typer.BadParameter.__mro__[1]


def run(argv: list[str]) -> int:
    """Run a command and return its exit code; raise ValueError for wrong options."""
    group = build_commands()
    if COMPLETION_VARIABLE in os.environ:
        group.main(argv, prog_name="mnemic")  # prints the completions and exits
    try:
        with group.make_context("mnemic", list(argv), default_map=LazyDefaults()) as context:
            return group.invoke(context) or 0
    except typer.Exit as exit_request:
        return exit_request.exit_code
    except UsageError as error:
        path = error.ctx.command_path if error.ctx else "mnemic"
        raise ValueError(f"{error.format_message()} (see: {path} --help)") from None


@cache
def build_commands() -> Any:
    """Build the parsers of all commands, once per process."""
    group: Any = typer.main.get_command(build_app())
    hide_flag_types(group, typer.Context(group, **SETTINGS))
    return group


def hide_flag_types(command: Any, context: typer.Context) -> None:
    """Leave out ``<bool>`` beside flags in the help of a command and those below it."""
    for parameter in command.get_params(context):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for subcommand in getattr(command, "commands", {}).values():
        hide_flag_types(subcommand, typer.Context(subcommand, parent=context))


class CommandGroup(TyperGroup):
    """A group whose commands may have two words: ``train vectors`` beside ``train``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = " ".join(args[:2])
        if len(args) > 1 and name in self.commands:
            return name, self.commands[name], args[2:]
        return super().resolve_command(ctx, args)


class LazyDefaults(dict[str, Any]):
    """The user's settings by command, read when a command asks for its own."""

    def get(self, command: str, default: Any = None) -> Any:
        return collect_defaults(command) if command in DOCUMENT_COMMANDS else default


def build_app() -> typer.Typer:
    """Build the application with all commands and groups."""
    app = typer.Typer(
        name="mnemic", cls=CommandGroup, rich_markup_mode="rich", pretty_exceptions_enable=False,
        context_settings=SETTINGS,
    )  # fmt: skip
    app.callback()(set_global_options)
    groups: dict[str, typer.Typer] = {}
    for panel, commands in PANELS.items():
        for names, function in commands.items():
            *group, name = names.split()
            if not group or group[0] not in GROUPS:
                app.command(names, rich_help_panel=panel)(convert_signature(function))
                continue
            if group[0] not in groups:
                groups[group[0]] = typer.Typer(help=GROUPS[group[0]], rich_markup_mode="rich")
                app.add_typer(groups[group[0]], name=group[0], rich_help_panel=panel)
            groups[group[0]].command(name)(convert_signature(function))
    return app


def convert_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command's function in one whose signature has typer's options."""

    def run_function(*, as_json: bool, **values: Any) -> Any:
        return function(**values)  # the program has seen --json

    parameters = []
    json_parameter = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, JSON])
    for parameter in (*signature(function).parameters.values(), json_parameter):
        annotation, spec = get_args(parameter.annotation)
        if isinstance(spec, Option):
            show_default = spec.default_text or True
            info = typer.Option(*spec.names, metavar=spec.metavar, help=spec.help, show_default=show_default,
                                envvar=spec.envvar, min=spec.minimum)  # fmt: skip
        else:
            info = typer.Argument(metavar=spec.metavar, help=spec.help)
        parameters.append(parameter.replace(annotation=Annotated[annotation, info]))
    run_function.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
    run_function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run_function.__doc__ = function.__doc__
    return run_function


def print_version(is_set: bool) -> None:
    """Print the version and exit, if ``--version`` is set."""
    if is_set:
        print(f"mnemic {__version__}")
        raise typer.Exit


VERSION = typer.Option("--version", "-V", callback=print_version, is_eager=True, help="Print the version.")
DEBUG = typer.Option("--debug", envvar="MNEMIC_DEBUG", help="Also show the traceback of an error.")


def set_global_options(version: Annotated[bool, VERSION] = False, debug: Annotated[bool, DEBUG] = False) -> None:
    """Language models with an explicit memory: train them, ask them, see the evidence.

    Your documents: mnemic remember FOLDER, then mnemic ask "…"; mnemic demo shows it

    Memory networks: mnemic demo --stories, mnemic recipes, mnemic train --help
    """
