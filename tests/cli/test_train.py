"""Training from the command line: output, stopping, resuming, starting again."""

import re
import signal
from pathlib import Path

from app_runs import QUICK, TINY, model, run, sets, start

TRAIN = ("train", "memn2n", *sets(*TINY), "--device", "cpu")


def test_a_trained_run_is_used_again_and_says_so() -> None:
    again = run(*TRAIN, *sets(*QUICK), "--out", model())
    assert again.code == 0
    assert "already trained" in again.out
    assert f"mnemic evaluate {model()}" in again.out
    report = run(*TRAIN, *sets(*QUICK), "--out", model(), "--json").json
    assert report["already_trained"]
    assert report["validation_error"] < 5
    assert Path(report["checkpoint"]) == model() / "checkpoint"


def test_a_line_an_epoch_where_there_is_no_terminal(tmp_path: Path) -> None:
    short = sets("data.count=64", "train.epochs=5", "phases=[{}]")
    done = run(*TRAIN, *short, "--out", tmp_path / "run", "--json")
    assert done.code == 0
    lines = done.err.splitlines()
    assert all(re.fullmatch(r"phase 1 of 1  step [1-4] of 5  loss [0-9.]+  [0-9.]+ s", line) for line in lines[:4])
    assert re.fullmatch(r"phase 1 of 1  step 5 of 5  loss [0-9.]+  validation error [0-9.]+ %  [0-9.]+ s", lines[4])
    assert done.json["steps"] == 5
    fresh = run(*TRAIN, *short, "--out", tmp_path / "run", "--fresh", "--json")
    assert not fresh.json["already_trained"]


def test_ctrl_c_saves_and_the_same_command_ends_with_the_same_bits(tmp_path: Path) -> None:
    """The run is interrupted in the middle of an epoch, then resumed to the end."""
    long = (*TRAIN, *sets("data.count=500", "train.epochs=12", "train.validate=1"))
    stopped = (*long, "--out", tmp_path / "stopped")
    process = start(*stopped, "--fresh")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("phase 1 of 2  step ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    last = err.splitlines()[-1]
    assert re.match(r"stopped at phase \d of 2, step \d+, and saved; to go on: mnemic train", last)
    assert "--fresh" not in last
    answer = run("story", "ask", "--model", tmp_path / "stopped", "--sentence", "Mary left.", "Who left?")
    assert "warning: this network is not trained to the end" in answer.err
    assert "stopped in phase" in run("inspect", tmp_path / "stopped").out

    resumed = run(*stopped, "--json")
    assert resumed.err.startswith(f"going on with {tmp_path / 'stopped'}: phase ")
    assert resumed.json["resumed"]
    full_run = run(*long, "--out", tmp_path / "whole", "--json")
    assert not full_run.json["resumed"]
    first, second = (
        (tmp_path / name / "checkpoint" / "weights.safetensors").read_bytes() for name in ("stopped", "whole")
    )
    assert first == second
