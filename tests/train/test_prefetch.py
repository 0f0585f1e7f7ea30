"""Batches that other processes make ahead are those that this one would have made."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.data import DATASETS
from mnemic.recipe import ConfigError, Recipe, build, load_recipe
from mnemic.train.loop import TrainSettings
from mnemic.train.prefetch import Prefetcher
from mnemic.train.run import fit
from mnemic.train.sampler import BatchIndices

SETS = [
    'data={kind="long-recall", count=60, length=16, segments=2}',
    'data.tokenizer={kind="wordpiece", vocab=400}', "model.width=16",
    "model.encode.stack.depth=1", "train.batch=8", 'train.matmul="float32"', "train.validate=0",
]  # fmt: skip


def recipe_of(*sets: str) -> Recipe:
    recipe = load_recipe("keeps", [*SETS, *sets])
    lengths = (3, 1)  # segments, of a phase each
    return recipe | {"phases": [{"train": {"segments": n, "steps": 5}} for n in lengths]}


def test_a_run_with_workers_ends_with_the_same_bits(tmp_path: Path) -> None:
    for workers in (0, 1):
        recipe = recipe_of(f"train.workers={workers}")
        for _ in fit(recipe, tmp_path / str(workers), device="cpu"):
            pass
    alone, helped = (weights_of(load_checkpoint(tmp_path / name).network) for name in ("0", "1"))
    for name, weight in alone.items():
        assert torch.equal(weight, helped[name]), name


def test_batches_come_in_the_order_of_their_draws() -> None:
    documents = build(DATASETS, recipe_of()["data"]).load().train
    rolls = torch.rand(7, 3, 1)
    draws = [BatchIndices(torch.arange(3 * n, 3 * n + 3), rolls[n]) for n in range(7)]
    ahead = Prefetcher(documents)
    with closing(ahead):
        found = list(ahead.iterate_batches(documents, iter(draws), 1))
        pool = ahead.pool
        other = next(ahead.iterate_batches(documents.with_segments(9), iter(draws), 1))  # of another phase
        assert ahead.pool is pool  # who makes them need not begin anew
        assert other.inputs.tokens.shape[1] > found[0].inputs.tokens.shape[1]
    assert len(found) == 7
    for draw, batch in zip(draws, found):
        own = documents.batch(draw.rows, draw.uniforms)
        assert torch.equal(batch.inputs.tokens, own.inputs.tokens)
        assert torch.equal(batch.fact_mask, own.fact_mask)
        assert batch.inputs.sizes is not None
        assert own.inputs.sizes is not None
        assert batch.inputs.sizes[1:] == own.inputs.sizes[1:]
        assert own.inputs.sizes.num_tokens == int(own.inputs.mask.sum())
        assert batch.all_have_facts


def training(folder: Path) -> subprocess.Popen[str]:
    """A run with a worker, in a group of its own, after its first step."""
    sets = [*SETS, "train.workers=1", "train.log=1", "phases=[{train={segments=3, steps=99999}}]"]
    words = [word for own in sets for word in ("--set", own)]
    command = [sys.executable, "-m", "mnemic", "train", "keeps", "--out", str(folder), *words]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = subprocess.Popen([*command, "--device", "cpu"], start_new_session=True, **pipes)
    assert started.stderr is not None
    assert "step 1 " in started.stderr.readline()
    return started


def test_a_group_that_is_asked_to_end_saves_first(tmp_path: Path) -> None:
    """As ``timeout`` and Ctrl-C do it: the signal goes to the workers, too."""
    run = training(tmp_path / "run")
    os.killpg(run.pid, signal.SIGTERM)
    _, told = run.communicate(timeout=60)
    *steps, heard, said = (line for line in told.splitlines() if line and not line.startswith("phase"))
    assert steps == []  # one line each, of the run alone: workers are silent
    assert run.returncode == 130
    assert re.match(r"stopped at phase 1 of 1, step \d+, and saved; to go on: mnemic train keeps --out ", said)
    assert heard.startswith("stopping after this step")
    assert load_checkpoint(tmp_path / "run").progress.step > 0


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc")
def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    run = training(tmp_path / "run")
    tasks = Path(f"/proc/{run.pid}/task").glob("*/children")
    workers = [Path("/proc") / own for path in tasks for own in path.read_text("utf-8").split()]
    run.kill()
    run.communicate()
    limit = time.monotonic() + 20
    while any(path.is_dir() for path in workers) and time.monotonic() < limit:
        time.sleep(0.05)
    assert workers
    assert not [path for path in workers if path.is_dir()]


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"leave out train\.accumulate"):
        TrainSettings(workers=1, accumulate=2)
    with pytest.raises(ConfigError, match=r"train\.workers is at least 0"):
        TrainSettings(workers=-1)
    recipe = load_recipe("memn2n", ["data.kind=generated", "data.tasks=[1]", "train.workers=1"])
    with pytest.raises(ConfigError, match="batches of long documents"):
        list(fit(recipe, tmp_path / "run", device="cpu"))
