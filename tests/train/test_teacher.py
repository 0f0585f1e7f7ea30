"""Runs with a teacher: what a student learns, what is saved, resumed and refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from learn_runs import TINY_READER, finish, stop_after, weights_in
from text_runs import files, run_of, tiny, trained
from torch import nn

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import find_checkpoint, load_checkpoint, save_checkpoint, weights_of
from mnemic.models import build_model
from mnemic.objectives import OBJECTIVES
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, Recipe, build, load_recipe
from mnemic.respond.merge_windows import average_windows
from mnemic.train.run import load_data
from mnemic.train.teacher import load_teachers

CPU = torch.device("cpu")


def student(kind: str, *sets: str, teacher: Path | None = None) -> Recipe:
    """A student half as wide as its teacher, with the teacher's data and vocabulary."""
    teacher = teacher or run_of(kind)
    hard = "classes" if kind == "pairs" else kind
    return tiny(
        kind, run_of(kind).parent, "model.width=16",
        f'data.tokenizer={{kind="stored", folder="{find_checkpoint(teacher)}"}}',
        f'objective={{kind="distil", hard={{kind="{hard}"}}}}', f"teacher.folder={teacher}", "train.batch=16", *sets,
    )  # fmt: skip


def test_a_student_learns_from_soft_labels_alone(tmp_path: Path) -> None:
    """The labels of its files are wrong: all it can know comes from the teacher."""
    folder = files("classes", tmp_path)
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    swapped = {"good": "bad", "bad": "good"}
    lines = [json.dumps(row | {"label": swapped[row["label"]]}) + "\n" for row in rows]
    (folder / "train.jsonl").write_text("".join(lines), encoding="utf-8")
    recipe = student(
        "classes", f"data.folder={folder}", "objective.soft_weight=1.0", "train.keep=last", "train.validate=0"
    )
    run = finish(recipe, tmp_path / "run", device="cpu")
    texts, labels = zip(*((row["text"], row["label"]) for row in rows[:60]))
    predicted = [row.label for row in load(run).classify(texts)]
    assert sum(label == right for label, right in zip(predicted, labels)) >= 55  # what the teacher knows


def test_only_the_student_is_saved_and_the_teacher_is_unchanged(tmp_path: Path) -> None:
    teacher = run_of("classes")
    files_before = {path: path.read_bytes() for path in (teacher / "checkpoint").iterdir()}
    run = finish(student("classes", "train.steps=3"), tmp_path / "run", device="cpu")
    assert {path: path.read_bytes() for path in (teacher / "checkpoint").iterdir()} == files_before
    checkpoint = load_checkpoint(run)
    expected = build_model(checkpoint.recipe["model"], dict(checkpoint.sizes))
    assert {name: weight.shape for name, weight in weights_of(checkpoint.network).items()} == {
        name: weight.shape for name, weight in weights_of(expected).items()
    }
    checkpoint_bytes = sum(path.stat().st_size for path in (run / "checkpoint").glob("*.safetensors"))
    assert checkpoint_bytes < (teacher / "checkpoint" / "weights.safetensors").stat().st_size


def test_a_student_needs_no_teacher_once_it_is_trained(tmp_path: Path) -> None:
    teacher = tmp_path / "teacher"
    save_checkpoint(teacher, load_checkpoint(run_of("classes")))
    recipe = student("classes", "train.steps=3", teacher=teacher)
    run = finish(recipe, tmp_path / "run", device="cpu")
    teacher.rename(tmp_path / "elsewhere")
    assert load(run).classify(["a lovely house"])[0].label in ("good", "bad")
    stored = recipe | {"data": recipe["data"] | {"tokenizer": {"kind": "stored", "folder": str(run / "checkpoint")}}}
    with pytest.raises(CheckpointError, match=r"teacher.folder: no checkpoint in"):
        finish(stored, tmp_path / "other", device="cpu")


def test_teachers_learn_nothing_and_drop_nothing(tmp_path: Path) -> None:
    """Trained with the student's dropout on, a teacher keeps its bits, mode and gradients."""
    recipe = student("classes", "train.steps=4")
    data = load_data(recipe)
    (teacher,) = load_teachers(recipe, data, CPU)
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    network: nn.Module = build_model(recipe["model"], data.sizes).train()
    objective = build(OBJECTIVES, recipe["objective"], teachers=(teacher,))
    objective(network, data.train.batch(torch.arange(8))).total.backward()
    assert all(weight.grad is not None for weight in network.parameters())
    assert all(weight.grad is None and not weight.requires_grad for weight in teacher.parameters())
    assert not any(module.training for module in teacher.modules())
    for name, weight in teacher.state_dict().items():
        assert torch.equal(weight, before[name])


@pytest.mark.parametrize("stop", [3, 11])
def test_a_stopped_student_ends_with_the_same_bits(tmp_path: Path, stop: int) -> None:
    recipe = student("classes", "train.steps=14", "train.save=5")
    uninterrupted = finish(recipe, tmp_path / "whole", device="cpu")
    stop_after(stop, recipe, tmp_path / "stopped", device="cpu")
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "stopped") == weights_in(uninterrupted)
    plain = finish(student("classes", "train.steps=14", "objective.soft_weight=0.0"), tmp_path / "plain", device="cpu")
    assert weights_in(plain) != weights_in(uninterrupted)  # the teacher does matter


def test_a_number_is_learned_from_its_teacher(tmp_path: Path) -> None:
    run = finish(student("numbers", "objective.soft_weight=1.0"), tmp_path / "run", device="cpu")
    pairs = [("a small house lovely", "is it lovely"), ("a small house awful", "is it lovely")]
    expected = [row.number for row in trained("numbers").rate(pairs)]
    predicted = [row.number for row in load(run).rate(pairs)]
    assert predicted == pytest.approx(expected, abs=0.8)
    assert predicted[0] - predicted[1] > 2.5


def test_an_answer_and_no_answer_are_learned_from_a_teacher(tmp_path: Path) -> None:
    recipe = student("spans", "objective.soft_weight=1.0", "train.epochs=6", "train.rate=0.005")
    model = load(finish(recipe, tmp_path / "run", device="cpu"))
    texts = ["the old train ran past in Lima a small house", "the old train ran past a small house today"]
    answers = [model.answer("where was it ?", text) for text in texts]
    assert [answer.has_answer for answer in answers] == [True, False]
    assert answers[0].quote(texts[0]) == "Lima"


def test_a_reader_has_soft_labels_for_its_answers(tmp_path: Path) -> None:
    """Packed batches; retrieval learns as it does without a teacher."""
    text_files.retrieval(tmp_path, 40)
    sets = [*TINY_READER, f"data.folder={tmp_path}"]
    teacher = finish(load_recipe("reader", [*sets, "train.epochs=0"]), tmp_path / "teacher", device="cpu")
    hard = '{kind="retrieve-and-read", label_smoothing=0.1}'
    sets += [f'objective={{kind="distil", hard={hard}}}', f"teacher.folder={teacher}", "train.steps=2"]
    recipe = load_recipe("reader", sets)
    finish(recipe, tmp_path / "run", device="cpu")
    (row,) = load_checkpoint(tmp_path / "run").progress.history
    assert row["losses"].keys() == {"hard", "soft", "spans", "keys", "passages"}
    assert row["loss"] == pytest.approx(0.5 * row["losses"]["hard"] + 0.5 * row["losses"]["soft"], rel=1e-5)
    data = load_data(recipe)
    teachers = load_teachers(recipe, data, CPU)
    batch = data.train.batch(torch.arange(4), torch.full((4, data.train.num_uniforms), 0.5))
    loss = build(OBJECTIVES, recipe["objective"], teachers=teachers)(teachers[0], batch)
    logits = teachers[0](batch.inputs).logits / 2
    entropy = -(logits.softmax(-1) * logits.log_softmax(-1).clamp(min=-1e9)).sum(-1).mean()
    torch.testing.assert_close(loss.means["soft"], 4 * entropy)  # a teacher of itself


def test_several_teachers_are_the_mean_of_their_probabilities(tmp_path: Path) -> None:
    """A teacher and one with its classes swapped: every soft label is one half."""
    swapped = load_checkpoint(run_of("classes"))
    with torch.no_grad():
        for weight in swapped.network.respond.out.parameters():
            weight.copy_(weight.flip(0))
    save_checkpoint(tmp_path / "swapped", swapped)
    folders = json.dumps([str(run_of("classes")), str(tmp_path / "swapped")])
    recipe = student("classes", f"teacher.folder={folders}", "objective.soft_weight=1.0", "train.keep=last")
    data = load_data(recipe)
    teachers, batch = load_teachers(recipe, data, CPU), data.train.batch(torch.arange(9))
    loss = build(OBJECTIVES, recipe["objective"], teachers=teachers)(teachers[0], batch)
    logits = average_windows(teachers[0](batch.inputs).logits, batch.owner, 9) / 2
    torch.testing.assert_close(loss.means["soft"], -4 * logits.log_softmax(-1).mean(-1).mean())
    model, texts = load(finish(recipe, tmp_path / "run", device="cpu")), ["a lovely house", "an awful house"]
    for row, sure_row in zip(model.classify(texts), trained("classes").classify(texts)):
        assert abs(dict(row.ranked)["good"] - 0.5) < 0.15
        assert abs(dict(sure_row.ranked)["good"] - 0.5) > 0.35  # what one teacher would say


def other_teacher(tmp_path: Path, **changes: Any) -> Path:
    """Save the classes' teacher with something changed."""
    checkpoint = load_checkpoint(run_of("classes"))
    values = {name: getattr(checkpoint, name) for name in checkpoint.__dataclass_fields__} | changes
    save_checkpoint(tmp_path / "changed", type(checkpoint)(**values))
    return tmp_path / "changed"


def test_what_is_no_teacher_of_this_student_is_refused(tmp_path: Path) -> None:
    data = load_data(student("classes"))

    def load_from(folder: Any, **sections: Any) -> None:
        load_teachers(student("classes") | {"teacher": {"folder": folder}} | sections, data, CPU)

    with pytest.raises(ConfigError, match=r"is for answer, rerank, the student for classify, rate: take a teacher"):
        load_from(str(run_of("spans")))
    with pytest.raises(ConfigError, match=r"another vocabulary than the student: set data.tokenizer=\{kind=\"stored\""):
        load_from(str(run_of("numbers")))
    with pytest.raises(ConfigError, match="has the labels good, bad, the data has bad, good"):
        load_from(str(other_teacher(tmp_path, labels=("good", "bad"))))
    with pytest.raises(CheckpointError, match=r"teacher.folder: no checkpoint in"):
        load_from(str(tmp_path / "nowhere"))
    for folder in ("", [], ["a", ""]):
        with pytest.raises(ConfigError, match=r"teacher.folder is the folder of a trained network, or a list, not"):
            load_from(folder)
    with pytest.raises(ConfigError, match=r"teacher does not take 'folders' .did you mean 'folder'"):
        load_from("", teacher={"folders": []})
    with pytest.raises(ConfigError, match=r"teacher.folder is .*, not 7"):
        load_from(7)


def test_longer_windows_than_a_teacher_reads_are_refused() -> None:
    recipe = student("classes")
    data = load_data(recipe)
    limit = load_checkpoint(run_of("classes")).network.encode.max_length
    longer = data._replace(sizes=data.sizes | {"max_length": limit + 1})
    with pytest.raises(ConfigError, match=f"reads at most {limit} tokens.*set data.length={limit}"):
        load_teachers(recipe, longer, CPU)


def test_recipes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    recipe = student("classes")
    without = {key: value for key, value in recipe.items() if key != "teacher"}
    with pytest.raises(ConfigError, match=r"'distil', which learns from a trained network: set teacher.folder=DIR"):
        finish(without, tmp_path / "run", device="cpu")
    with pytest.raises(ConfigError, match=r"objective.kind is 'spans', but data of kind 'classes' needs 'classes'"):
        finish(recipe | {"objective": {"kind": "distil", "hard": {"kind": "spans"}}}, tmp_path / "run", device="cpu")
    with pytest.raises(ConfigError, match=r"\[teacher\] is for objectives of kind distil"):
        finish(recipe | {"objective": {"kind": "classes"}}, tmp_path / "run", device="cpu")
