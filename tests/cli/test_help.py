"""Help has examples, is fast, and imports nothing heavy."""

import os
import subprocess
import sys

import pytest
from app_runs import run

from mnemic import __version__
from mnemic.cli.commands import COMMANDS

NAMES = list(COMMANDS)
HEAVY = ("torch", "numpy", "matplotlib", "tokenizers", "safetensors")
PROBE = """
import sys, time
began = time.process_time()
from mnemic.cli.main import main
main(sys.argv[1:])
print(time.process_time() - began, *sorted(sys.modules), file=sys.stderr)
"""


def test_help_loads_nothing_heavy_and_is_quick() -> None:
    for arguments in (["--help"], ["train", "-h"], ["help", "remember"], ["recipes"]):
        done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True)
        seconds, *modules = done.stderr.split()
        assert not [name for name in HEAVY if name in modules], arguments
        assert float(seconds) < 2  # about 0.2 on an idle machine


@pytest.mark.parametrize("command", NAMES)
def test_help_of_every_command_has_an_example_and_json(command: str) -> None:
    done = run(*command.split(), "--help")
    assert done.code == 0
    assert f"Example: mnemic {command}" in " ".join(done.out.split())
    assert "--json" in done.out
    assert "bool" not in done.out
    assert done.err == ""


def test_all_commands_are_in_the_help() -> None:
    output = run("--help").out
    assert all(name.split()[0] in output for name in NAMES)
    assert run().out == output  # nothing typed
    assert "bool" not in output


def test_version() -> None:
    assert run("--version").out == run("-V").out == f"mnemic {__version__}\n"


def test_help_is_an_option_and_a_command() -> None:
    for arguments in (["text", "read"], ["train"], ["table"], []):
        result = run(*arguments, "--help")
        assert (result.code, result.err) == (0, "")
        assert run(*arguments, "-h") == run("help", *arguments) == result


def test_a_shell_completes_commands_and_options() -> None:
    for typed, completion in (("mnemic ", "remember"), ("mnemic text ", "forget"), ("mnemic train --de", "--device")):
        arguments = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
        env = os.environ | arguments | {"_MNEMIC_COMPLETE": "complete_bash"}
        done = subprocess.run([sys.executable, "-m", "mnemic"], env=env, capture_output=True, text=True, check=True)
        assert completion in done.stdout.split()
        assert "memories" not in done.stdout  # an old spelling
    output = run("--help").out
    assert "--install-completion" in output
    assert "--show-completion" in output


def test_a_real_process_says_one_line_and_exits_with_2() -> None:
    arguments = [sys.executable, "-m", "mnemic", "train", "memn2"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: no recipe 'memn2'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_of_a_pipe_may_leave_early(unbuffered: str) -> None:
    command = f"PYTHONUNBUFFERED={unbuffered} {sys.executable} -m mnemic recipes --json | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
