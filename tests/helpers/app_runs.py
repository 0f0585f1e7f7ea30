"""The command line for tests: run it here or in a process of its own, and one trained model."""

import atexit
import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple
from unittest.mock import patch

from mnemic.cli.main import main

TINY = ("data.kind=generated", "data.tasks=[1]", "data.count=1000", "model.memory.slots=10")
QUICK = ("train.epochs=10", "phases.0.train.epochs=5", "train.schedule.every=100")
STORY = "Mary went to the garden.\nJohn moved to the office.\nMary travelled to the kitchen.\n"


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*words: object, stdin: str = "") -> Result:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    typed = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", typed):
        code = main([str(word) for word in words])
    return Result(code, out.getvalue(), err.getvalue())


def start(*words: object) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "mnemic", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    )


def sets(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


@cache
def model() -> Path:
    """A run that knows task 1; trained once, for all tests."""
    folder = Path(mkdtemp(prefix="mnemic-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    done = run("train", "memn2n", *sets(*TINY, *QUICK), "--out", folder / "run", "--device", "cpu")
    assert done.code == 0, done.err
    return folder / "run"


def copy_of_model(folder: Path) -> Path:
    """A model that may be broken."""
    return Path(shutil.copytree(model(), folder / "copy"))
