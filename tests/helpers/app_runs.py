"""Run the command line in tests, in this process or in a new one."""

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from shared_folders import copy_shared

from mnemic.cli.main import main

TINY = ("data.kind=generated", "data.tasks=[1]", "data.count=1000", "model.memory.slots=10")
QUICK = ("train.epochs=10", "phases.0.train.epochs=5", "train.schedule.every=100")
STORY = "Mary went to the garden.\nJohn moved to the office.\nMary travelled to the kitchen.\n"


class Result(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: object, stdin: str = "") -> Result:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    input_stream = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", input_stream):
        code = main([str(argument) for argument in arguments])
    return Result(code, out.getvalue(), err.getvalue())


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start a command in a new process."""
    return subprocess.Popen(
        [sys.executable, "-m", "mnemic", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    )


def sets(*overrides: str) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


def model() -> Path:
    """Train a model of bAbI's task 1, once for all tests; return its run."""
    return copy_shared("model", train_model) / "run"


def train_model(folder: Path) -> None:
    result = run("train", "memn2n", *sets(*TINY, *QUICK), "--out", folder / "run", "--device", "cpu")
    assert result.code == 0, result.err


def copy_of_model(folder: Path) -> Path:
    """Copy the model, so that a test may damage it."""
    return Path(shutil.copytree(model(), folder / "copy"))
