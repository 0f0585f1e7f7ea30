"""Files of version 0.1, in ``files_0_1``, can be loaded, asked and trained further."""

import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from learn_runs import finish, small, weights_in

from mnemic import Memory
from mnemic.checkpoint.atomic_files import CheckpointError, hash_file, write_json
from mnemic.checkpoint.folder import load_checkpoint, save_checkpoint
from mnemic.checkpoint.tensors import read_tensors, write_tensors
from mnemic.files import read_json
from mnemic.predict import ask_story
from mnemic.predict.long_text import answer_from_memory, load_state
from mnemic.predict.text_tasks import classify_texts
from mnemic.recipe.migrate import STATE
from mnemic.train.run import fit

FILES = Path(__file__).parents[1] / "files_0_1"
NAMES = ("memn2n", "memn2n-stopped", "keeps", "bert-mass", "bert-classes")
ADAM = ['train.optimizer={kind="adam"}', "train.keep=best", "train.patience=2"]


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    return read_tensors(folder / "checkpoint" / "weights.safetensors")


def manifest_of(folder: Path) -> dict[str, Any]:
    return read_json(folder / "checkpoint" / "manifest.json")


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_of_format_1_loads_and_is_saved_as_format_2(name: str, tmp_path: Path) -> None:
    assert manifest_of(FILES / name)["format"] == 1
    checkpoint = load_checkpoint(FILES / name)
    assert checkpoint.progress.done == (name != "memn2n-stopped")
    save_checkpoint(tmp_path / "again", checkpoint)
    assert read_json(tmp_path / "again" / "manifest.json")["format"] == 2
    again = load_checkpoint(tmp_path / "again")
    assert (again.recipe, dict(again.sizes), again.labels) == (
        checkpoint.recipe,
        dict(checkpoint.sizes),
        checkpoint.labels,
    )
    weights = (FILES / name / "checkpoint" / "weights.safetensors").read_bytes()
    assert (tmp_path / "again" / "weights.safetensors").read_bytes() == weights


def test_old_networks_answer() -> None:
    story = ask_story(load_checkpoint(FILES / "memn2n"), ["Mary went to the office."], "Where is Mary?")
    assert story.text == "bathroom"  # two epochs: it knows no better, and knew no better
    film = classify_texts(load_checkpoint(FILES / "bert-classes"), ["a fine good film"])[0]
    assert (film.label, film.probability) == ("bad", pytest.approx(0.76764, abs=1e-4))


@pytest.mark.parametrize("name", ["keeps", "bert-mass"])
def test_an_old_memory_file_gives_the_answer_it_gave(name: str) -> None:
    before = read_json(FILES / f"{name}.answer.json")
    checkpoint = load_checkpoint(FILES / name)
    state = load_state(checkpoint, FILES / f"{name}.mem")
    answer = answer_from_memory(checkpoint, state, before["question"])
    assert (answer.text, answer.seen, answer.total) == tuple(before[key] for key in ("answer", "seen", "total"))
    assert answer.probability == pytest.approx(before["probability"], abs=1e-5)
    assert [(span.start, span.end) for span in answer.evidence] == [
        (span["start"], span["end"]) for span in before["evidence"]
    ]
    assert [span.weight for span in answer.evidence] == pytest.approx(
        [span["weight"] for span in before["evidence"]], abs=1e-5
    )
    assert (state.filled, state.slots) == (before["filled"], before["size"])


def test_an_old_memory_of_documents_gives_the_answer_it_gave(tmp_path: Path) -> None:
    before = read_json(FILES / "notes.answer.json")
    with Memory(shutil.copy(FILES / "notes.db", tmp_path / "notes.db")) as memory:
        answer = memory.ask(before["question"])
        assert answer.text == before["answer"]
        assert memory.text(1)[before["start"] : before["end"]] == before["answer"]
    evidence = [(passage.start, passage.end, passage.line) for passage in answer.evidence]
    assert evidence == [(row["start"], row["end"], row["line"]) for row in before["evidence"]]


def test_an_old_run_that_was_stopped_ends_like_one_that_was_not(tmp_path: Path) -> None:
    """To the bit on the kind of machine that wrote them; others round sums in another way."""
    shutil.copytree(FILES / "memn2n-stopped", tmp_path / "stopped")
    finish(small(), tmp_path / "stopped")
    finish(small(), tmp_path / "whole")
    expected = read_weights(tmp_path / "whole")
    for folder in (tmp_path / "stopped", FILES / "memn2n"):
        torch.testing.assert_close(read_weights(folder), expected, atol=1e-4, rtol=1e-3)
    assert manifest_of(tmp_path / "stopped")["format"] == 2


def test_what_an_optimizer_kept_under_its_old_names_is_restored(tmp_path: Path) -> None:
    """Adam's moments, the best weights and dropout's random state."""
    recipe = small(*ADAM)
    steps = fit(recipe, tmp_path / "stopped")
    list(islice(steps, 10))
    steps.close()
    path = tmp_path / "stopped" / "checkpoint" / "progress.safetensors"
    tensors = read_tensors(path)
    assert {name.split(".")[0] for name in tensors} == {"optimizer", "rng_state", "sums", "best"}
    for old, new in STATE.items():
        tensors = {old + name.removeprefix(new) if name.startswith(new) else name: t for name, t in tensors.items()}
    assert {"dice", "best.waited"} < tensors.keys()
    write_tensors(path, tensors)
    manifest = manifest_of(tmp_path / "stopped")
    files = manifest["files"] | {path.name: hash_file(path)}
    write_json(path.with_name("manifest.json"), manifest | {"format": 1, "files": files})
    finish(recipe, tmp_path / "stopped")
    assert weights_in(tmp_path / "stopped") == weights_in(finish(recipe, tmp_path / "whole"))


def test_a_newer_format_is_refused_in_one_line(tmp_path: Path) -> None:
    shutil.copytree(FILES / "memn2n", tmp_path / "run")
    newer = manifest_of(tmp_path / "run") | {"format": 3, "mnemic": "0.9"}
    write_json(tmp_path / "run" / "checkpoint" / "manifest.json", newer)
    with pytest.raises(
        CheckpointError, match=r"has format 3; .* formats 1 to 2: use the mnemic that wrote it"
    ) as caught:
        load_checkpoint(tmp_path / "run")
    assert "\n" not in str(caught.value)
