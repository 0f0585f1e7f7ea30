"""A checkpoint on disk: plain files, written atomically, loaded strictly."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from learn_runs import small
from safetensors.torch import load_file, save_file
from torch import Tensor

from mnemic.checkpoint import atomic_files as disk
from mnemic.checkpoint import folder as checkpoints
from mnemic.checkpoint.atomic_files import CheckpointError, backup_path_of, hash_file
from mnemic.checkpoint.folder import Checkpoint, TrainingProgress, load_checkpoint, save_checkpoint, weights_of
from mnemic.models import build_model
from mnemic.text import WordTokenizer

FILES = {
    "recipe.json", "weights.safetensors", "tokenizer.json",
    "progress.json", "progress.safetensors", "manifest.json",
}  # fmt: skip


def make_checkpoint(seed: int = 0, **changes: Any) -> Checkpoint:
    """Make a checkpoint with values in all fields."""
    recipe = small()
    torch.manual_seed(seed)
    tokenizer = WordTokenizer.from_texts(["the milk is here", "where is the milk"], extra=["milk,football"])
    sizes = {"vocab": len(tokenizer), "max_length": 6}
    fields: dict[str, Any] = {
        "recipe": recipe,
        "seed": seed,
        "sizes": sizes,
        "tokenizer": tokenizer,
        "network": build_model(recipe["model"], sizes),
        "progress": TrainingProgress(phase=1, step=3, history=[{"loss": 0.1, "validation": None}]),
        "state": {
            "rng_state": torch.get_rng_state(),
            "optimizer.0.exp_avg": torch.randn(3, 2).T,  # not contiguous
            "optimizer.0.step": torch.tensor(3.0),
        },
    }
    return Checkpoint(**{**fields, **changes})


def assert_equal_checkpoints(first_checkpoint: Checkpoint, second_checkpoint: Checkpoint) -> None:
    for name in ("recipe", "seed", "sizes", "tokenizer", "progress"):
        assert getattr(first_checkpoint, name) == getattr(second_checkpoint, name), name
    for first, second in (
        (weights_of(first_checkpoint.network), weights_of(second_checkpoint.network)),
        (dict(first_checkpoint.state), dict(second_checkpoint.state)),
    ):
        assert first.keys() == second.keys()
        for name in first:
            assert first[name].dtype == second[name].dtype
            assert torch.equal(first[name], second[name]), name


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    before = make_checkpoint()
    save_checkpoint(tmp_path / "checkpoint", before)
    assert_equal_checkpoints(load_checkpoint(tmp_path), before)  # the run's folder
    assert_equal_checkpoints(load_checkpoint(tmp_path / "checkpoint"), before)  # or the checkpoint itself
    assert not load_checkpoint(tmp_path).network.training
    network = load_checkpoint(tmp_path).network
    assert network.respond.table is network.encode.tables[-1]  # tied again


def test_a_checkpoint_is_these_plain_files_and_nothing_else(finished: Path) -> None:
    """Every file is JSON or safetensors; nothing is, or holds, a pickle."""
    folder = finished / "checkpoint"
    assert {path.name for path in folder.iterdir()} == FILES
    assert {path.name for path in finished.iterdir() if not path.name.startswith("events")} == {"checkpoint", "log.tsv"}
    for path in folder.iterdir():
        if path.suffix == ".json":
            assert isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
        else:
            data = path.read_bytes()
            header = int.from_bytes(data[:8], "little")
            header_json = json.loads(data[8 : 8 + header])  # a safetensors header: plain JSON
            ends = [entry["data_offsets"][1] for entry in header_json.values()]
            assert max(ends, default=0) == len(data) - 8 - header  # and nothing behind the tensors


def test_every_weight_is_stored_once(finished: Path) -> None:
    stored = load_file(finished / "checkpoint" / "weights.safetensors")
    assert "respond.table" not in stored  # the tied matrix has one name
    assert {name for name, _ in load_checkpoint(finished).network.named_parameters()} == set(stored)


def update_manifest(folder: Path) -> None:
    """Make the manifest agree with files that were changed."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"] = {name: hash_file(folder / name) for name in manifest["files"]}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
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
    finished: Path, tmp_path: Path, change: Callable[[dict[str, Tensor]], None], message: str
) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    weights = load_file(folder / "weights.safetensors")
    change(weights)
    save_file(weights, folder / "weights.safetensors")
    update_manifest(folder)
    with pytest.raises(CheckpointError, match=rf"weights\.safetensors:? .*{message}|{message}"):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("damage", ["missing", "cut short", "changed", "empty"])
def test_a_harmed_file_is_named(finished: Path, tmp_path: Path, name: str, damage: str) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    path = folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "changed":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    else:
        path.write_bytes(data[: len(data) // 2] if damage == "cut short" else b"")
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(tmp_path)
    message = str(caught.value)
    # A changed digest in the manifest accuses the file it is the digest of.
    expected_path = str(folder) if (name, damage) == ("manifest.json", "changed") else str(path)
    assert expected_path in message
    assert "\n" not in message


def test_a_broken_tensor_file_is_named_even_when_the_manifest_agrees(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    (folder / "weights.safetensors").write_bytes(b"\x08" + b"\0" * 20)
    update_manifest(folder)
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is no valid safetensors"):
        load_checkpoint(folder)


def test_another_format_is_refused(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished / "checkpoint", tmp_path / "checkpoint"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}), encoding="utf-8")
    with pytest.raises(
        CheckpointError, match="has format 99; this version reads formats 1 to 2: use the mnemic that wrote it"
    ):
        load_checkpoint(folder)


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*mnemic train"):
        load_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        load_checkpoint(tmp_path / "nowhere")


class Killed(BaseException):
    """Simulates a kill: nothing in the library catches it."""


@pytest.fixture
def kill_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that lets only ``count`` more disk operations happen."""
    remaining = [10**9]

    def count_down(function: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **kwargs: Any) -> Any:
            if remaining[0] <= 0:
                raise Killed
            remaining[0] -= 1
            return function(*args, **kwargs)

        return operation

    for owner, name in [
        (checkpoints, "write_json"), (checkpoints, "write_tensors"),
        (os, "rename"), (shutil, "rmtree"), (Path, "mkdir"), (disk, "flush_to_disk"),
    ]:  # fmt: skip
        monkeypatch.setattr(owner, name, count_down(getattr(owner, name)))

    def arm(count: int) -> None:
        remaining[0] = count

    return arm


@pytest.mark.parametrize("again", [False, True], ids=["first kill", "killed before"])
def test_a_kill_at_any_moment_of_saving_leaves_a_whole_checkpoint(
    tmp_path: Path, kill_after: Callable[[int], None], again: bool
) -> None:
    """Kill after 0, 1, 2 … disk operations, until saving succeeds."""
    old, new = make_checkpoint(1), make_checkpoint(2)
    outcomes = set()
    for count in range(100):
        folder = tmp_path / str(count) / "checkpoint"
        save_checkpoint(folder, old)
        if again:  # what a kill between the two renames leaves
            os.rename(folder, backup_path_of(folder))
            (folder.parent / ".checkpoint.new").mkdir()
            (folder.parent / ".checkpoint.new" / "weights.safetensors").write_bytes(b"half")
        kill_after(count)
        try:
            save_checkpoint(folder, new)
            succeeded = True
        except Killed:
            succeeded = False
        kill_after(10**9)
        loaded = load_checkpoint(folder.parent)
        assert_equal_checkpoints(loaded, new if loaded.seed == 2 else old)
        outcomes.add((loaded.seed, (folder / "manifest.json").is_file()))
        save_checkpoint(folder, new)  # the next save gets over what is lying about
        assert_equal_checkpoints(load_checkpoint(folder.parent), new)
        assert {path.name for path in folder.parent.iterdir()} == {"checkpoint"}
        if succeeded:
            break
    else:
        pytest.fail("saving never got through")
    assert (2, True) in outcomes
    assert (1, False) in outcomes  # between the two renames the old one is used


def test_a_torn_file_in_a_new_folder_is_never_looked_at(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "checkpoint", make_checkpoint())
    shutil.copytree(tmp_path / "checkpoint", tmp_path / ".checkpoint.new")
    (tmp_path / ".checkpoint.new" / "weights.safetensors").write_bytes(b"half")
    assert_equal_checkpoints(load_checkpoint(tmp_path), make_checkpoint())


def test_what_is_put_in_place_has_reached_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files and the folder are flushed before the final rename."""
    done: list[str] = []
    flush, rename = disk.flush_to_disk, os.rename
    monkeypatch.setattr(disk, "flush_to_disk", lambda p: (done.append(f"flush {p.name}"), flush(p)))
    monkeypatch.setattr(os, "rename", lambda a, b: (done.append("rename"), rename(a, b)))
    save_checkpoint(tmp_path / "checkpoint", make_checkpoint())
    before = done[: done.index("rename")]
    assert set(before) == {f"flush {name}" for name in (*FILES, ".checkpoint.new")}
    assert done[-1] == f"flush {tmp_path.name}"


def test_a_checkpoint_is_short_to_look_at(tmp_path: Path) -> None:
    assert repr(make_checkpoint()) == "Checkpoint(MemoryNetwork, at step 3 of phase 1)"
    save_checkpoint(tmp_path / "run", make_checkpoint(progress=TrainingProgress(done=True)))
    assert repr(load_checkpoint(tmp_path / "run")) == f"Checkpoint('{tmp_path / 'run'}': MemoryNetwork, trained)"
