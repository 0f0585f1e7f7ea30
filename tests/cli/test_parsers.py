"""Typer's parser and the plain one come from the same signatures and agree."""

from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest
from app_runs import run

from mnemic.cli import plain_parser, typer_app
from mnemic.cli.commands import COMMANDS
from mnemic.cli.declare import Argument, Option

LINES = [
    "train memn2n",
    "train memn2n --out runs/a --set a=1 --set b=-2 --seed 7 --fresh --json",
    "train vectors --data d --out o --width 100 --seed 3 --fresh",
    "average runs/one --out runs/mean runs/two",
    "ship runs/a name --command line --precision int8",
    "table babi --data d --size 10k --tasks 1,2 --tasks 5-7 --joint --seeds 3",
    "data stories --task 1 --out o --split test",
    "ask -n 3 - --confidence 0.5 --all",
    "text forget n.mem --from 3 --to 9 --from 20 --to 30",
    "text read n.mem - a.txt --device cpu",
    "search --limit=4 words",
    "remember a b --note note c",
    "forget",
]


def parse_line(monkeypatch: pytest.MonkeyPatch, run_parser: Any, line: str) -> dict[str, Any]:
    """Return the arguments that a parser passes to the command's function."""
    values: dict[str, Any] = {}

    def record(**arguments: Any) -> int:
        values.update(arguments)
        return 0

    def with_recorder(function: Any) -> Any:
        recorder = lambda **arguments: record(**arguments)  # noqa: E731
        recorder.__signature__ = signature(function)  # type: ignore[attr-defined]
        return recorder

    recorders = {name: with_recorder(function) for name, function in COMMANDS.items()}
    with monkeypatch.context() as patch:
        patch.setattr(plain_parser, "COMMANDS", recorders)
        patch.setattr(typer_app, "PANELS", {"": recorders})
        patch.setattr(typer_app, "build_commands", typer_app.build_commands.__wrapped__)  # not those built before
        assert run_parser(line.split()) == 0
    return values


@pytest.mark.parametrize("line", LINES)
def test_both_parsers_understand_the_same(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_MEMORY", "work")
    plain, typed = (parse_line(monkeypatch, module.run, line) for module in (plain_parser, typer_app))
    assert {name: value or None for name, value in plain.items()} == {
        name: value or None for name, value in typed.items()
    }
    assert plain.get("address") in (None, "work")
    for name, value in plain.items():
        assert type(value) is type(typed[name]) or not value, name


def test_values_have_the_types_of_the_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    values = parse_line(monkeypatch, plain_parser.run, LINES[1])
    assert values["folder"] == Path("runs/a")
    assert (values["sets"], values["seed"], values["fresh"]) == (["a=1", "b=-2"], 7, True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_is_declared(name: str) -> None:
    """Every parameter has help, and a type that both parsers know."""
    for parameter in signature(COMMANDS[name]).parameters.values():
        _, spec = get_args(parameter.annotation)
        assert isinstance(spec, Option | Argument), parameter
        assert spec.help.endswith((".", "…")), spec
    plain_parser.build_parser(name, COMMANDS[name])


def test_the_plain_parser_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert plain_parser.run(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(f"mnemic {name} " in output for name in COMMANDS)
    with pytest.raises(SystemExit):
        plain_parser.run(["train", "--help"])
    assert "Example: mnemic train memn2n" in capsys.readouterr().out
    assert plain_parser.run(["-V"]) == 0
    assert capsys.readouterr().out == run("-V").out
