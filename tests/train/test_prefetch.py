"""Batches that worker processes prefetch are the same as without workers."""

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
    recipe = load_recipe("bert-mass-selective", [*SETS, *sets])
    lengths = (3, 1)  # segments, of a phase each
    return recipe | {"phases": [{"train": {"segments": n, "steps": 5}} for n in lengths]}


def test_a_run_with_workers_ends_with_the_same_bits(tmp_path: Path) -> None:
    for workers in (0, 1):
        recipe = recipe_of(f"train.workers={workers}")
        for _ in fit(recipe, tmp_path / str(workers), device="cpu"):
            pass
    without_workers, with_workers = (weights_of(load_checkpoint(tmp_path / name).network) for name in ("0", "1"))
    for name, weight in without_workers.items():
        assert torch.equal(weight, with_workers[name]), name


def test_batches_come_in_the_order_of_their_draws() -> None:
    documents = build(DATASETS, recipe_of()["data"]).load().train
    uniforms = torch.rand(7, 3, 1)
    all_indices = [BatchIndices(torch.arange(3 * n, 3 * n + 3), uniforms[n]) for n in range(7)]
    prefetcher = Prefetcher(documents)
    with closing(prefetcher):
        batches = list(prefetcher.iterate_batches(documents, iter(all_indices), 1))
        pool = prefetcher.pool
        longer_batch = next(
            prefetcher.iterate_batches(documents.with_segments(9), iter(all_indices), 1)
        )  # of another phase
        assert prefetcher.pool is pool  # the workers need not start again
        assert longer_batch.inputs.tokens.shape[1] > batches[0].inputs.tokens.shape[1]
    assert len(batches) == 7
    for indices, batch in zip(all_indices, batches):
        expected = documents.batch(indices.rows, indices.uniforms)
        assert torch.equal(batch.inputs.tokens, expected.inputs.tokens)
        assert torch.equal(batch.fact_mask, expected.fact_mask)
        assert batch.inputs.sizes is not None
        assert expected.inputs.sizes is not None
        assert batch.inputs.sizes[1:] == expected.inputs.sizes[1:]
        assert expected.inputs.sizes.num_tokens == int(expected.inputs.mask.sum())
        assert batch.all_have_facts


def start_training(folder: Path) -> subprocess.Popen[str]:
    """Start a run with a worker in a process group; wait for one step."""
    sets = [*SETS, "train.workers=1", "train.log=1", "phases=[{train={segments=3, steps=99999}}]"]
    options = [option for override in sets for option in ("--set", override)]
    command = [sys.executable, "-m", "mnemic", "train", "bert-mass-selective", "--out", str(folder), *options]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*command, "--device", "cpu"], start_new_session=True, **pipes)
    assert process.stderr is not None
    assert "step 1 " in process.stderr.readline()
    return process


def test_a_group_that_is_asked_to_end_saves_first(tmp_path: Path) -> None:
    """Like ``timeout`` and Ctrl-C: the signal goes to the workers, too."""
    run = start_training(tmp_path / "run")
    os.killpg(run.pid, signal.SIGTERM)
    _, errors = run.communicate(timeout=60)
    *steps, first_message, last_message = (
        line for line in errors.splitlines() if line and not line.startswith("phase")
    )
    assert steps == []  # one line each, of the run alone: workers are silent
    assert run.returncode == 130
    assert re.match(
        r"stopped at phase 1 of 1, step \d+, and saved; to go on: mnemic train bert-mass-selective --out ", last_message
    )
    assert first_message.startswith("stopping after this step")
    assert load_checkpoint(tmp_path / "run").progress.step > 0


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc")
def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    run = start_training(tmp_path / "run")
    tasks = Path(f"/proc/{run.pid}/task").glob("*/children")
    workers = [Path("/proc") / process_id for path in tasks for process_id in path.read_text("utf-8").split()]
    run.kill()
    run.communicate()
    deadline = time.monotonic() + 20
    while any(path.is_dir() for path in workers) and time.monotonic() < deadline:
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
