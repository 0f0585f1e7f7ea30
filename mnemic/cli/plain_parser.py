"""Parse commands without typer, on a machine that only trains, from the same signatures."""

import argparse
import os
from collections.abc import Callable
from inspect import Parameter, cleandoc, signature
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, get_args, get_origin

from mnemic import __version__
from mnemic.cli.commands import COMMANDS
from mnemic.cli.config import collect_defaults
from mnemic.cli.declare import Option
from mnemic.cli.options import JSON


class PlainParser(argparse.ArgumentParser):
    """A parser that raises a ValueError where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see: {self.prog} --help)")


def run(argv: list[str]) -> int:
    """Run a command and return its exit code."""
    words = argv[1:] if argv[:1] == ["--debug"] else argv
    if words[:1] in (["-V"], ["--version"]):
        print(f"mnemic {__version__}")
        return 0
    for name in sorted(COMMANDS, key=lambda name: -len(name.split())):  # "train vectors" before "train"
        names, function = name.split(), COMMANDS[name]
        if words[: len(names)] == names:
            values = vars(build_parser(name, function).parse_intermixed_args(words[len(names) :]))
            del values["as_json"]  # the program has seen it
            return function(**values) or 0
    if words[:1] in (["-h"], ["--help"]):
        for name, function in COMMANDS.items():
            print(f"mnemic {name:<18}{cleandoc(function.__doc__ or '').splitlines()[0]}")
        return 0
    raise ValueError(f"No such command {' '.join(words[:1])!r}. (see: mnemic --help)")


def build_parser(name: str, function: Callable[..., Any]) -> PlainParser:
    """Build the parser of a command from its function's signature."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = PlainParser(
        f"mnemic {name}", description=cleandoc(function.__doc__ or ""), formatter_class=formatter, allow_abbrev=False
    )
    for parameter in signature(function).parameters.values():
        add_parameter(parser, parameter)
    parser.set_defaults(**collect_defaults(name))
    parser.add_argument(*JSON.names, action="store_true", dest="as_json", help=JSON.help)
    return parser


def add_parameter(parser: PlainParser, parameter: Parameter) -> None:
    """Add an option or an argument to a parser."""
    annotation, spec = get_args(parameter.annotation)
    is_required = parameter.default is Parameter.empty
    if isinstance(annotation, UnionType):  # … | None
        annotation = next(choice for choice in get_args(annotation) if choice is not NoneType)
    is_list = get_origin(annotation) is list
    kind = get_args(annotation)[0] if is_list else annotation
    settings: dict[str, Any] = {"help": spec.help, "default": None if is_required else parameter.default}
    if kind is bool:
        settings["action"] = "store_true"
    elif get_origin(kind) is Literal:
        settings["choices"] = get_args(kind)
    else:
        settings |= {"type": kind, "metavar": spec.metavar}
    if isinstance(spec, Option):
        settings |= {"dest": parameter.name, "required": is_required} | ({"action": "append"} if is_list else {})
        settings["default"] = os.environ.get(spec.envvar or "", settings["default"])
        parser.add_argument(*spec.names, **settings)
    else:
        nargs = {(True, True): "+", (True, False): "*", (False, False): "?"}.get((is_list, is_required))
        parser.add_argument(parameter.name, nargs=nargs, **settings)
