"""Training in separate processes: killed, without optional packages, distributed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import Result
from learn_runs import ADAMW, OPTIMISERS, SMALL, finish, log_of, numbers_in, read_progress, weights_in

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.cli.main import main
from mnemic.recipe import load_recipe

# Real processes --------------------------------------------------------------------------------

# A minimal machine: packages that only the command line and the tests need cannot be imported.
BARE = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"{{name}} is not on this machine", name=name)
sys.meta_path.insert(0, Nothing())
"""
MISSING = {"typer", "click", "rich", "sentencex", "matplotlib", "tensorboard", "pytest"}
# Runs commands, one after another: importing torch takes longer than most of them.
COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from mnemic.cli.main import main
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(json.loads(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""
# Long enough to be killed in the middle: 2 phases of 140 steps.
LONG = ["phases.0.train.epochs=20", "train.epochs=20", "train.validate=5", "train.save=10"]


@pytest.fixture
def bare_machine(tmp_path: Path) -> dict[str, str]:
    """Make an environment with only torch, numpy, tokenizers and safetensors."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BARE.format(missing=MISSING), encoding="utf-8")
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(folder), str(root)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def command(out: Path, sets: Sequence[str]) -> list[str]:
    options = [word for text in sets for word in ("--set", text)]
    return ["-m", "mnemic", "train", "memn2n", "--out", str(out), "--device", "cpu", *options]


class BareCommands:
    """A process on a bare machine that runs commands."""

    def __init__(self, env: dict[str, str]) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", COMMANDS], env=env, **pipes)

    def __enter__(self) -> "BareCommands":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)

    def run(self, *arguments: object) -> Result:
        """Run a command; an exception would end the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        self.process.stdin.flush()
        return Result(*json.loads(self.process.stdout.readline()))

    def run_json(self, *arguments: object) -> dict[str, Any]:
        """Run a command that succeeds; return what it prints."""
        result = self.run(*arguments)
        assert result.code == 0, result.err
        return result.json


def kill_at(run: Path, sets: Sequence[str], phase: int, env: dict[str, str]) -> None:
    """Start training and kill -9 it once it has saved in the middle of ``phase``."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, *command(run, sets)], env=env, **silent)
    try:
        deadline = time.monotonic() + 60
        while read_progress(run) < (phase, 20):
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline, "the run never got to where it should be killed"
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(("optimiser", "phase"), [("sgd", 1), ("adamw", 0)])
def test_a_run_killed_for_real_ends_with_the_same_bits(
    tmp_path: Path, bare_machine: dict[str, str], optimiser: str, phase: int
) -> None:
    """Kill -9, then repeat the command, on a machine without typer, rich and sentencex."""
    sets = [*SMALL, *OPTIMISERS[optimiser], *LONG]
    run = tmp_path / "run"
    kill_at(run, sets, phase, bare_machine)
    assert not load_checkpoint(run).progress.done
    process = subprocess.run(
        [sys.executable, *command(run, sets)],
        env=bare_machine, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0
    assert json.loads(process.stdout)["resumed"]  # without rich a result is JSON
    first, *_, last = process.stderr.splitlines()
    assert first.startswith(f"going on with {run}: phase ")
    assert last.startswith("phase 2 of 2  step 140 of 140  loss ")
    uninterrupted = finish(load_recipe("memn2n", sets), tmp_path / "whole", device="cpu")
    assert weights_in(run) == weights_in(uninterrupted)
    assert log_of(run) == log_of(uninterrupted)
    assert numbers_in(run) == numbers_in(uninterrupted)


def test_the_bare_machine_is_bare(bare_machine: dict[str, str]) -> None:
    """The test above needs the blocked packages to be missing."""
    import_attempts = "\n".join(
        f"try:\n    import {name}\n    raise SystemExit({name!r})\nexcept ImportError: pass" for name in sorted(MISSING)
    )
    process = subprocess.run([sys.executable, "-c", import_attempts], env=bare_machine, check=False)
    assert process.returncode == 0


def test_two_processes_learn_what_one_does(tmp_path: Path, bare_machine: dict[str, str]) -> None:
    """With torchrun and gloo: the same batches, losses and weights as one process."""
    sets = [*SMALL, *ADAMW]
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with subprocess.Popen(
        [sys.executable, *start, *command(tmp_path / "two", sets)],
        env=bare_machine, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as launcher:  # fmt: skip
        try:
            output, errors = launcher.communicate(timeout=150)
        finally:
            launcher.terminate()  # it stops its workers, which a kill would leave behind
    assert launcher.returncode == 0, errors[-2000:]
    assert "Warning" not in errors
    assert json.loads(output)["steps"] == 28  # only one process prints
    assert len(errors.splitlines()) == errors.count("phase ") == 4  # one line per epoch
    single_run = finish(load_recipe("memn2n", sets), tmp_path / "one", device="cpu")
    rows, expected_rows = log_of(tmp_path / "two"), log_of(single_run)
    assert len(rows) == len(expected_rows) == 4
    for row, expected_row in zip(rows, expected_rows, strict=True):
        for name in ("phase", "epoch", "step", "rate", "validation"):
            assert row[name] == expected_row[name]
        for name in ("loss", "norm"):
            assert float(row[name]) == pytest.approx(float(expected_row[name]), rel=1e-4)
    first, second = (weights_of(load_checkpoint(tmp_path / name).network) for name in ("two", "one"))
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-4, rtol=0)


def test_the_other_commands_of_a_training_machine_work_there(tmp_path: Path, bare_machine: dict[str, str]) -> None:
    """Every command prints its result as JSON on standard output."""
    sets = [word for text in SMALL for word in ("--set", text)]
    runs = [finish(load_recipe("memn2n", SMALL), tmp_path / str(seed), seed=seed, device="cpu") for seed in range(2)]
    mean = tmp_path / "mean"
    source = ("--source", "training data: generated stories (Apache-2.0)")
    with BareCommands(bare_machine) as commands:
        run = commands.run_json
        assert run("average", *runs, "--out", mean)["out"] == str(mean)
        assert run("evaluate", mean)["questions"] == {"1": 1000}
        card = run("ship", mean, "small", "--command", "mnemic train memn2n", *source, "--into", tmp_path / "weights")
        assert card["name"] == "small"
        for split in ("train", "test"):
            files = run("data", "stories", "--task", "1", "--count", "50", "--split", split, "--out", tmp_path / "babi")
        assert files["split"] == "test"
        table = ("--data", tmp_path / "babi", "--tasks", "1", "--seeds", "1", "--out", tmp_path / "table")
        rebuilt = run("table", "babi", *table, "--device", "cpu", *sets[2:4], *sets[6:])
        assert set(rebuilt["ours"]["per_task"]) == {"1"}
        assert len(run("recipes")["recipes"]) > 40
    # Sequences are made of sentences; sentencex splits them.
    bare = BARE.format(missing=MISSING - {"sentencex"})
    (tmp_path / "bare" / "sitecustomize.py").write_text(bare, encoding="utf-8")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("The ant eats honey. " * 200, encoding="utf-8")
    options = ("--set", 'data.tokenizer={kind="wordpiece", vocab=60}', "--set", "data.length=16")
    with BareCommands(bare_machine) as commands:
        report = commands.run_json(
            "data", "sequences", "bert-pretrain", "--data", tmp_path / "texts", "--out", tmp_path / "ids", *options
        )
    assert report["sequences"]["train"] > 0


def test_mistakes_on_a_bare_machine_are_one_line(bare_machine: dict[str, str]) -> None:
    mistakes = {
        "trian": "No such command 'trian'",
        "train memn2n --speed 1": "unrecognized arguments: --speed 1 (see: mnemic train --help)",
        "train memn2n --seed one": "argument --seed: invalid int value: 'one'",
        "train": "the following arguments are required: RECIPE",
        "table babi": "the following arguments are required: --data",
        "table babi --data x --size 2k": "invalid choice: '2k'",
        "train memn2": "no recipe 'memn2'",
    }
    with BareCommands(bare_machine) as commands:
        results = {arguments: commands.run(*arguments.split()) for arguments in mistakes}
    first = [sys.executable, "-m", "mnemic", next(iter(mistakes))]  # a program of its own says the same
    done = subprocess.run(first, env=bare_machine, capture_output=True, text=True, check=False)
    assert Result(done.returncode, done.stdout, done.stderr) == results["trian"]
    for arguments, message in mistakes.items():
        code, out, err = results[arguments]
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("error: ")
        assert message in err


# What training prints --------------------------------------------------------------------------


def test_the_command_says_each_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [word for text in SMALL for word in ("--set", text)]
    arguments = ["train", "memn2n", "--out", str(tmp_path / "run"), "--device", "cpu", *sets]
    assert main(arguments) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("phase 1 of 2  step 7 of 14  loss ")
    assert "validation" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no recipe 'nothing'"),
        (["memn2n", "--set", "train.rate"], "KEY=VALUE"),
        (["memn2n", *("--set", SMALL[0]), "--set", "train.rate=fast"], "train.rate is a number, not 'fast'"),
        (["memn2n"], "learns from story files: give their folder with --data DIR"),
        (["memn2n", "--data", "nowhere/at/all"], "nowhere/at/all"),
        (
            ["memn2n", *("--set", SMALL[0]), "--device", "abacus"],
            "--device is cpu, cuda, cuda:NUMBER or auto, not 'abacus'",
        ),
        (["memn2n", *("--set", SMALL[0]), "--set", "train.batch=1000"], "a batch of 1000 cannot"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *arguments, "--out", str(tmp_path / "run")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_a_harmed_checkpoint_is_one_line_and_exit_code_2(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    path = run / "checkpoint" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    sets = [word for text in SMALL for word in ("--set", text)]
    assert main(["train", "memn2n", "--out", str(run), *sets]) == 2
    error = capsys.readouterr().err
    assert f"{path} was changed or cut short" in error
    assert error.count("\n") == 1
