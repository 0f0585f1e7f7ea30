"""An interrupt waits for the end of a step, then the run is saved."""

import os
import signal
from pathlib import Path

import pytest

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.cli.main import main
from mnemic.cli.networks import train
from mnemic.train.interrupt import defer_interrupts
from mnemic.train.run import StepReport

SMALL = [
    'data={kind="generated", tasks=[1], count=62}',
    "model.width=6",
    "train.batch=8",
    "phases.0.train.epochs=2",
    "train.epochs=2",
]


def test_the_signal_of_timeout_may_come_twice_and_ctrl_c_not(capfd: pytest.CaptureFixture[str]) -> None:
    with defer_interrupts() as should_stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert should_stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert capfd.readouterr().err.count("stopping after this step or validation") == 1


def test_a_run_that_is_asked_to_end_saves_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "memn2n", "--out", str(tmp_path / "run"), "--device", "cpu"]
    arguments += [word for text in SMALL for word in ("--set", text)]
    show_step = train.show_step

    def kill_after_epoch(bars: train.ProgressBars, report: StepReport) -> None:
        if report.row is not None:
            os.kill(os.getpid(), signal.SIGTERM)
        show_step(bars, report)

    monkeypatch.setattr(train, "show_step", kill_after_epoch)
    assert main(arguments) == 130
    assert "stopped at phase 1 of 2, step 7, and saved; to go on: mnemic train" in capsys.readouterr().err
    halfway = load_checkpoint(tmp_path / "run").progress
    assert not halfway.done
    assert halfway.step == 7  # one epoch: 56 questions, 8 per batch
    monkeypatch.setattr(train, "show_step", show_step)
    assert main(arguments) == 0
    assert load_checkpoint(tmp_path / "run").progress.done
