"""A run from recipe to checkpoint: stopped, killed, resumed, shared by processes, logged."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import Tensor, nn

from mnemic.learn import checkpoint as checkpoints
from mnemic.learn import disk
from mnemic.learn.__main__ import main
from mnemic.learn.checkpoint import Checkpoint, Progress, load, save, weights_of
from mnemic.learn.disk import CheckpointError, digest, old_of
from mnemic.learn.fit import fit
from mnemic.learn.optimise import Sgd
from mnemic.network import assemble
from mnemic.objectives import OBJECTIVES, Carried, Loss
from mnemic.objectives.answer import AnswerLoss
from mnemic.recipe import ConfigError, Recipe
from mnemic.recipe import load as load_recipe
from mnemic.text import Words

FILES = {
    "recipe.json", "weights.safetensors", "tokenizer.json",
    "progress.json", "progress.safetensors", "manifest.json",
}  # fmt: skip
# Two phases of 2 epochs, 7 steps an epoch; saved every 5 steps, so mostly within an epoch.
SMALL = [
    'data={kind="generated", tasks=[1], count=62}',
    "model.width=6",
    "train.batch=8",
    "train.epochs=2",
    "phases.0.train.epochs=2",
    "train.save=5",
    "train.validate=1",
]
ADAMW = ['train.optimiser={kind="adamw"}', 'train.clip={kind="norm"}', 'train.reduce="mean"']
ADAMW += ['phases.0.train.clip={kind="norm"}', 'train.schedule={kind="cosine"}']
MOMENTUM = ["train.optimiser.momentum=0.5", "train.optimiser.decay=0.01", "train.rate=0.001"]
OPTIMISERS = {"sgd": [], "momentum": MOMENTUM, "adamw": ADAMW}


def small(*sets: str) -> Recipe:
    return load_recipe("memn2n", [*SMALL, *sets])


def finish(recipe: Recipe, folder: Path, **options: Any) -> Path:
    for _ in fit(recipe, folder, **options):
        pass
    return folder


def weights_in(run: Path) -> bytes:
    return (run / "checkpoint" / "weights.safetensors").read_bytes()


def log_of(run: Path) -> list[dict[str, str]]:
    """The rows of log.tsv, without the seconds."""
    with (run / "log.tsv").open(encoding="utf-8", newline="") as file:
        return [
            {name: value for name, value in row.items() if name != "seconds"}
            for row in csv.DictReader(file, delimiter="\t")
        ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed; do not change it."""
    torch.set_num_threads(1)
    return finish(small(), tmp_path_factory.mktemp("finished") / "run")


# The checkpoint --------------------------------------------------------------------------------


def some(seed: int = 0, **changes: Any) -> Checkpoint:
    """A checkpoint with something of everything."""
    recipe = small()
    torch.manual_seed(seed)
    words = Words.of(["the milk is here", "where is the milk"], extra=["milk,football"])
    sizes = {"vocab": len(words), "longest": 6}
    given: dict[str, Any] = {
        "recipe": recipe,
        "seed": seed,
        "sizes": sizes,
        "tokenizer": words,
        "network": assemble(recipe["model"], sizes),
        "progress": Progress(phase=1, step=3, history=[{"loss": 0.1, "validation": None}]),
        "state": {
            "dice": torch.get_rng_state(),
            "optimiser.0.exp_avg": torch.randn(3, 2).T,  # not contiguous
            "optimiser.0.step": torch.tensor(3.0),
        },
    }
    return Checkpoint(**{**given, **changes})


def same_checkpoint(one: Checkpoint, other: Checkpoint) -> None:
    for name in ("recipe", "seed", "sizes", "tokenizer", "progress"):
        assert getattr(one, name) == getattr(other, name), name
    for first, second in (
        (weights_of(one.network), weights_of(other.network)),
        (dict(one.state), dict(other.state)),
    ):
        assert first.keys() == second.keys()
        for name in first:
            assert first[name].dtype == second[name].dtype
            assert torch.equal(first[name], second[name]), name


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    before = some()
    save(tmp_path / "checkpoint", before)
    same_checkpoint(load(tmp_path), before)  # the run's folder
    same_checkpoint(load(tmp_path / "checkpoint"), before)  # or the checkpoint itself
    assert not load(tmp_path).network.training
    network = load(tmp_path).network
    assert network.respond.table is network.encode.tables[-1]  # tied again


def test_a_checkpoint_is_these_plain_files_and_nothing_else(finished: Path) -> None:
    """Every file is JSON or safetensors; nothing is, or holds, a pickle."""
    folder = finished / "checkpoint"
    assert {path.name for path in folder.iterdir()} == FILES
    assert {path.name for path in finished.iterdir() if not path.name.startswith("events")} == {
        "checkpoint",
        "log.tsv",
    }
    for path in folder.iterdir():
        if path.suffix == ".json":
            assert isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
        else:
            data = path.read_bytes()
            header = int.from_bytes(data[:8], "little")
            described = json.loads(data[8 : 8 + header])  # a safetensors header: plain JSON
            ends = [part["data_offsets"][1] for part in described.values()]
            assert max(ends, default=0) == len(data) - 8 - header  # and nothing behind the tensors


def test_every_weight_is_stored_once(finished: Path) -> None:
    stored = load_file(finished / "checkpoint" / "weights.safetensors")
    assert "respond.table" not in stored  # the tied matrix has one name
    assert {name for name, _ in load(finished).network.named_parameters()} == set(stored)


def reseal(folder: Path) -> None:
    """Make the manifest agree with files that were changed."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"] = {name: digest(folder / name) for name in manifest["files"]}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: w.pop("memory.time.2"), "has no weight 'memory.time.2', which its recipe needs"),
        (lambda w: w.update(extra=torch.zeros(2)), "has a weight 'extra', which its recipe does"),
        (
            lambda w: w.update({"encode.tables.0": w["encode.tables.0"][:, :5].clone()}),
            r"'encode.tables.0' has shape \(\d+, 5\), its recipe wants \(\d+, 6\)",
        ),
    ],
    ids=["missing", "extra", "shape"],
)
def test_weights_are_loaded_strictly(
    finished: Path, tmp_path: Path, change: Callable[[dict[str, Tensor]], None], says: str
) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    weights = load_file(folder / "weights.safetensors")
    change(weights)
    save_file(weights, folder / "weights.safetensors")
    reseal(folder)
    with pytest.raises(CheckpointError, match=rf"weights\.safetensors:? .*{says}|{says}"):
        load(folder)


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("harm", ["missing", "cut short", "changed", "empty"])
def test_a_harmed_file_is_named(finished: Path, tmp_path: Path, name: str, harm: str) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    path = folder / name
    data = path.read_bytes()
    if harm == "missing":
        path.unlink()
    elif harm == "changed":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    else:
        path.write_bytes(data[: len(data) // 2] if harm == "cut short" else b"")
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path)
    said = str(caught.value)
    # A changed digest in the manifest accuses the file it is the digest of.
    named = str(folder) if (name, harm) == ("manifest.json", "changed") else str(path)
    assert named in said
    assert "\n" not in said


def test_a_broken_tensor_file_is_named_even_when_the_manifest_agrees(
    finished: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    (folder / "weights.safetensors").write_bytes(b"\x08" + b"\0" * 20)
    reseal(folder)
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is no valid safetensors"):
        load(folder)


def test_another_format_is_refused(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="has format 99; this version reads 1"):
        load(folder)


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*mnemic train"):
        load(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        load(tmp_path / "nowhere")


class Killed(BaseException):
    """Stands in for a kill: nothing in the library catches it."""


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``deadly(n)``: the n-th operation on the disk, counted from 0, is not done, nor any later."""
    left = [10**9]

    def mortal(function: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*given: Any, **options: Any) -> Any:
            if left[0] <= 0:
                raise Killed
            left[0] -= 1
            return function(*given, **options)

        return operation

    for home, name in [
        (checkpoints, "write_json"), (checkpoints, "save_file"), (checkpoints, "flush"),
        (os, "rename"), (shutil, "rmtree"), (Path, "mkdir"), (disk, "flush"),
    ]:  # fmt: skip
        monkeypatch.setattr(home, name, mortal(getattr(home, name)))

    def arm(count: int) -> None:
        left[0] = count

    return arm


@pytest.mark.parametrize("again", [False, True], ids=["first kill", "killed before"])
def test_a_kill_at_any_moment_of_saving_leaves_a_whole_checkpoint(
    tmp_path: Path, deadly: Callable[[int], None], again: bool
) -> None:
    """One disk operation further each time, until saving gets through."""
    old, new = some(1), some(2)
    seen = set()
    for count in range(100):
        folder = tmp_path / str(count) / "checkpoint"
        save(folder, old)
        if again:  # what a kill between the two renames leaves
            os.rename(folder, old_of(folder))
            (folder.parent / ".checkpoint.new").mkdir()
            (folder.parent / ".checkpoint.new" / "weights.safetensors").write_bytes(b"half")
        deadly(count)
        try:
            save(folder, new)
            through = True
        except Killed:
            through = False
        deadly(10**9)
        found = load(folder.parent)
        same_checkpoint(found, new if found.seed == 2 else old)
        seen.add((found.seed, (folder / "manifest.json").is_file()))
        save(folder, new)  # the next save gets over what is lying about
        same_checkpoint(load(folder.parent), new)
        assert {path.name for path in folder.parent.iterdir()} == {"checkpoint"}
        if through:
            break
    else:
        pytest.fail("saving never got through")
    assert (2, True) in seen
    assert (1, False) in seen  # between the two renames the old one is used


def test_a_torn_file_in_a_new_folder_is_never_looked_at(tmp_path: Path) -> None:
    save(tmp_path / "checkpoint", some())
    shutil.copytree(tmp_path / "checkpoint", tmp_path / ".checkpoint.new")
    (tmp_path / ".checkpoint.new" / "weights.safetensors").write_bytes(b"half")
    same_checkpoint(load(tmp_path), some())


def test_what_is_put_in_place_has_reached_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file and the folder itself are flushed before the rename that makes them count."""
    done: list[str] = []
    flush, rename = disk.flush, os.rename
    for home in (checkpoints, disk):
        monkeypatch.setattr(home, "flush", lambda p: (done.append(f"flush {p.name}"), flush(p)))
    monkeypatch.setattr(os, "rename", lambda a, b: (done.append("rename"), rename(a, b)))
    save(tmp_path / "checkpoint", some())
    before = done[: done.index("rename")]
    assert set(before) == {f"flush {name}" for name in (*FILES, ".checkpoint.new")}
    assert done[-1] == f"flush {tmp_path.name}"


# Going on --------------------------------------------------------------------------------------


class NoisyLoss:
    """The answer's loss with global dice in it, as dropout has."""

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        loss = AnswerLoss()(network, batch, carried)
        return loss._replace(total=loss.total * (0.5 + torch.rand(())))


@pytest.mark.parametrize(
    ("optimiser", "stops"),
    [("sgd", [3]), ("sgd", [14]), ("momentum", [17, 9]), ("adamw", [5, 1]), ("adamw", [7, 7, 7])],
)
def test_a_stopped_run_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimiser: str, stops: list[int]
) -> None:
    """Closed within an epoch, at its end, at a phase's end; with dice like dropout's."""
    monkeypatch.setitem(OBJECTIVES, "noisy", NoisyLoss)
    recipe = small(*OPTIMISERS[optimiser], "objective.kind=noisy")
    whole = finish(recipe, tmp_path / "whole")
    for count in stops:
        steps = fit(recipe, tmp_path / "stopped")
        reports = list(islice(steps, count))
        assert len(reports) == count
        steps.close()
        assert where(tmp_path / "stopped") == (reports[-1].phase, reports[-1].step)  # saved here
        torch.rand(count)  # someone else's dice
    finish(recipe, tmp_path / "stopped")
    assert weights_in(tmp_path / "stopped") == weights_in(whole)
    assert log_of(tmp_path / "stopped") == log_of(whole)
    assert numbers_in(tmp_path / "stopped") == numbers_in(whole)


class CarryingLoss:
    """Each step's loss is weighted with a moving average that the step before handed on."""

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        loss = AnswerLoss()(network, batch)
        mean = loss.total.new_ones(1) if carried is None else carried["mean"]
        assert not mean.requires_grad  # gradients end at a step's border
        return Loss(
            loss.total / (1 + mean.sum()), loss.targets, {"mean": 0.9 * mean + loss.total / 300}
        )


@pytest.mark.parametrize("stop", [3, 9, 17])
def test_what_steps_hand_on_survives_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    monkeypatch.setitem(OBJECTIVES, "carrying", CarryingLoss)
    recipe = small('objective={kind="carrying"}')
    whole = finish(recipe, tmp_path / "whole")
    stopped = fit(recipe, tmp_path / "stopped")
    for _ in islice(stopped, stop):
        pass
    stopped.close()
    held = load(tmp_path / "stopped").state
    assert [name for name in held if name.startswith("carried.")] == ["carried.mean"]
    finish(recipe, tmp_path / "stopped")
    assert weights_in(tmp_path / "stopped") == weights_in(whole)
    plain = finish(small(), tmp_path / "plain")
    assert weights_in(plain) != weights_in(whole)  # what is carried does matter


def test_a_run_killed_between_two_phases_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after a phase's own save: the next phase rolls as it would have anyway."""
    monkeypatch.setitem(OBJECTIVES, "noisy", NoisyLoss)
    recipe = small("objective.kind=noisy")
    whole = finish(recipe, tmp_path / "whole")
    for report in fit(recipe, tmp_path / "whole2"):
        if (report.phase, report.step) == (1, 1):
            kept = shutil.copytree(tmp_path / "whole2", tmp_path / "killed")
            break
    progress = load(Path(kept)).progress
    assert (progress.phase, progress.step, len(progress.history)) == (1, 0, 2)
    finish(recipe, tmp_path / "killed")
    assert weights_in(tmp_path / "killed") == weights_in(whole)


def test_an_interrupt_within_a_step_leaves_the_last_checkpoint(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the weights moved, before the step counted: nothing half done is saved."""
    step, calls = Sgd.step, []

    def interrupted(optimiser: Sgd, closure: None = None) -> None:
        step(optimiser, closure)
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Sgd, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finish(small(), tmp_path / "run")
    assert where(tmp_path / "run") == (0, 5)
    assert weights_in(finish(small(), tmp_path / "run")) == weights_in(finished)


def test_a_finished_run_stays_finished(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    assert list(fit(small(), run)) == []
    assert weights_in(run) == weights_in(finished)
    assert load(run).progress.done
    assert log_of(run) == log_of(finished)


def test_the_last_checkpoint_holds_the_recipes_own_model(finished: Path) -> None:
    """Not the linear start's, nor any phase's."""
    done = load(finished)
    assert done.network.memory.softmax
    assert done.progress.phase == 2
    assert not done.state


def test_a_folder_of_another_run_is_left_alone(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    for recipe, seed in ((small("train.rate=0.1"), 0), (small(), 1)):
        with pytest.raises(ConfigError, match=r"of another recipe or seed; .*--fresh"):
            next(fit(recipe, run, seed=seed))
    assert weights_in(run) == weights_in(finished)
    finish(small(), run, seed=1, fresh=True)
    assert load(run).seed == 1
    assert weights_in(run) != weights_in(finished)
    assert len(log_of(run)) == len(log_of(finished))
    assert numbers_in(run).keys() == numbers_in(finished).keys()  # nothing of the run before


def test_seeds_give_runs_of_their_own(finished: Path, tmp_path: Path) -> None:
    other = finish(small(), tmp_path / "other", seed=1)
    again = finish(small(), tmp_path / "again")
    assert weights_in(other) != weights_in(finished)
    assert weights_in(again) == weights_in(finished)


@pytest.mark.parametrize("device", ["tpu9", "cuda:0"])
def test_a_device_that_is_not_there(tmp_path: Path, device: str) -> None:
    if device.startswith("cuda") and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigError, match=device):
        next(fit(small(), tmp_path, device=device))


# The log ---------------------------------------------------------------------------------------


def numbers_in(run: Path) -> dict[tuple[int, str], float]:
    """What TensorBoard reads: (step, tag) → number; a number told twice must be the same."""
    found: dict[tuple[int, str], float] = {}
    for path in sorted(run.glob("events.out.tfevents.*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                number = value.tensor.float_val[0]
                assert found.setdefault((event.step, value.tag), number) == number
    return found


def test_the_log_is_a_table_with_a_row_an_epoch(finished: Path) -> None:
    rows = log_of(finished)
    assert [(row["phase"], row["epoch"], row["step"]) for row in rows] == [
        ("1", "1", "7"), ("1", "2", "14"), ("2", "1", "7"), ("2", "2", "14"),
    ]  # fmt: skip
    assert all(0 < float(row["loss"]) < 10 and float(row["norm"]) > 0 for row in rows)
    assert all(float(row["rate"]) == 0.005 for row in rows)
    assert all(0 <= float(row["validation"]) <= 100 for row in rows)


def test_a_row_is_the_mean_of_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The losses of the very steps, taken where the objective computes them."""
    losses = []

    class Told(AnswerLoss):
        def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
            loss = super().__call__(network, batch, carried)
            losses.append((loss.total / loss.targets).item())
            return loss

    monkeypatch.setitem(OBJECTIVES, "told", Told)
    run = finish(small("objective.kind=told"), tmp_path / "run")
    assert len(losses) == 28
    means = [sum(losses[first : first + 7]) / 7 for first in range(0, 28, 7)]
    assert [float(row["loss"]) for row in log_of(run)] == pytest.approx(means, rel=1e-5)


def test_a_run_without_validation_says_so(tmp_path: Path) -> None:
    run = finish(small("train.validate=0"), tmp_path / "run")
    assert {row["validation"] for row in log_of(run)} == {"-"}
    nothing_held = finish(small("data.validation=0.0"), tmp_path / "other")
    assert {row["validation"] for row in log_of(nothing_held)} == {"-"}


def test_tensorboard_reads_the_numbers_of_the_log(finished: Path) -> None:
    """Its own reader, which checks every checksum; steps count on over the phases."""
    found = numbers_in(finished)
    rows = log_of(finished)
    assert sorted({step for step, _ in found}) == [7, 14, 21, 28]
    for step, row in zip((7, 14, 21, 28), rows, strict=True):
        for name in ("loss", "norm", "rate", "validation"):
            assert found[step, f"train/{name}"] == pytest.approx(float(row[name]), rel=1e-5)
    assert len(found) == 16


# Real processes --------------------------------------------------------------------------------

# A bare training machine: what only the command line and the tests need cannot be imported.
BARE = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"{{name}} is not on this machine", name=name)
sys.meta_path.insert(0, Nothing())
"""
MISSING = {"typer", "click", "rich", "sentencex", "matplotlib", "tensorboard", "pytest"}
# Long enough to be killed in the middle: 2 phases of 140 steps.
LONG = ["phases.0.train.epochs=20", "train.epochs=20", "train.validate=5", "train.save=10"]


@pytest.fixture
def bare_machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a process on a machine with torch, numpy, tokenizers, safetensors."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BARE.format(missing=MISSING), encoding="utf-8")
    root = Path(__file__).parents[1]
    path = os.pathsep.join([str(folder), str(root)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def command(out: Path, sets: Sequence[str]) -> list[str]:
    given = [word for text in sets for word in ("--set", text)]
    return ["-m", "mnemic.learn", "memn2n", "--out", str(out), "--device", "cpu", *given]


def where(run: Path) -> tuple[int, int]:
    """Phase and step of a run's checkpoint, (-1, 0) if there is none at this moment."""
    try:
        progress = json.loads((run / "checkpoint" / "progress.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return -1, 0
    return progress["phase"], progress["step"]


def kill_at(run: Path, sets: Sequence[str], phase: int, env: dict[str, str]) -> None:
    """Start training and kill -9 it once it has saved in the middle of ``phase``."""
    process = subprocess.Popen(
        [sys.executable, *command(run, sets)], env=env, stdout=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 60
        while where(run) < (phase, 20):
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < until, "the run never got to where it should be killed"
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(("optimiser", "phase"), [("sgd", 1), ("adamw", 0)])
def test_a_run_killed_for_real_ends_with_the_same_bits(
    tmp_path: Path, bare_machine: dict[str, str], optimiser: str, phase: int
) -> None:
    """kill -9, then the same command again, on a machine without typer, rich and sentencex."""
    sets = [*SMALL, *OPTIMISERS[optimiser], *LONG]
    run = tmp_path / "run"
    kill_at(run, sets, phase, bare_machine)
    assert not load(run).progress.done
    done = subprocess.run(
        [sys.executable, *command(run, sets)],
        env=bare_machine, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("phase 2 of 2  step 140 of 140  loss ")
    whole = finish(load_recipe("memn2n", sets), tmp_path / "whole", device="cpu")
    assert weights_in(run) == weights_in(whole)
    assert log_of(run) == log_of(whole)
    assert numbers_in(run) == numbers_in(whole)


def test_the_bare_machine_is_bare(bare_machine: dict[str, str]) -> None:
    """The proof above would be empty if the blocked packages could be imported."""
    tries = "\n".join(
        f"try:\n    import {name}\n    raise SystemExit({name!r})\nexcept ImportError: pass"
        for name in sorted(MISSING)
    )
    done = subprocess.run([sys.executable, "-c", tries], env=bare_machine, check=False)
    assert done.returncode == 0


def test_two_processes_learn_what_one_does(tmp_path: Path, bare_machine: dict[str, str]) -> None:
    """torchrun with gloo: the same batches, loss curve and weights as one process."""
    sets = [*SMALL, *ADAMW]
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with subprocess.Popen(
        [sys.executable, *start, *command(tmp_path / "two", sets)],
        env=bare_machine, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as launcher:  # fmt: skip
        try:
            told, complaints = launcher.communicate(timeout=150)
        finally:
            launcher.terminate()  # it stops its workers, which a kill would leave behind
    assert launcher.returncode == 0, complaints[-2000:]
    assert "Warning" not in complaints
    assert len(told.splitlines()) == 4  # one process speaks for both
    one = finish(load_recipe("memn2n", sets), tmp_path / "one", device="cpu")
    ours, theirs = log_of(tmp_path / "two"), log_of(one)
    assert len(ours) == len(theirs) == 4
    for row, other in zip(ours, theirs, strict=True):
        for name in ("phase", "epoch", "step", "rate", "validation"):
            assert row[name] == other[name]
        for name in ("loss", "norm"):
            assert float(row[name]) == pytest.approx(float(other[name]), rel=1e-4)
    first, second = (weights_of(load(tmp_path / name).network) for name in ("two", "one"))
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-4, rtol=0)


# The module's own command ----------------------------------------------------------------------


def test_the_command_says_each_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [word for text in SMALL for word in ("--set", text)]
    words = ["memn2n", "--out", str(tmp_path / "run"), "--device", "cpu", *sets]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("phase 1 of 2  step 7 of 14  loss ")
    assert "validation" in lines[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "no recipe 'nothing'"),
        (["memn2n", "--set", "train.rate"], "KEY=VALUE"),
        (["memn2n", "--set", "train.rate=fast"], "train.rate is a number, not 'fast'"),
        (["memn2n"], "stories needs folder"),
        (["memn2n", "--data", "nowhere/at/all"], "nowhere/at/all"),
        (["memn2n", *("--set", SMALL[0]), "--device", "abacus"], "no device 'abacus'"),
        (["memn2n", *("--set", SMALL[0]), "--set", "train.batch=1000"], "a batch of 1000 cannot"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert says in said.err
    assert said.err.count("\n") == 1


def test_a_harmed_checkpoint_is_one_line_and_exit_code_2(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    path = run / "checkpoint" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    sets = [word for text in SMALL for word in ("--set", text)]
    assert main(["memn2n", "--out", str(run), *sets]) == 2
    said = capsys.readouterr().err
    assert f"{path} was changed or cut short" in said
    assert said.count("\n") == 1


@pytest.fixture(autouse=True)
def no_threads_left_behind() -> Iterator[None]:
    """Runs may set the number of threads; the bits above need one."""
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)
