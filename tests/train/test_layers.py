"""Runs that learn a teacher's layers: learned, saved, resumed, refused."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from learn_runs import TINY_READER, finish, stop_after, weights_in
from safetensors.torch import load_file
from text_runs import run_of, tiny, trained
from torch import nn

from mnemic.checkpoint.folder import find_checkpoint, load_checkpoint, weights_of
from mnemic.models import build_model
from mnemic.objectives.distillation.layers import read_packed_tokens, read_tokens
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.train import phases
from mnemic.train.phases import build_objective, read_phases
from mnemic.train.run import fit, load_data
from mnemic.train.teacher import load_teachers

LAYERS = 'objective={kind="layers"}'
DISTIL = 'objective={kind="distil", hard={kind="classes"}, soft_weight=1.0, temperature=1.0}'


def student(*sets: str, teacher: Path | None = None) -> Recipe:
    """A student half as wide as its teacher, with its data and vocabulary."""
    teacher = teacher or run_of("classes")
    tokenizer = f'data.tokenizer={{kind="stored", folder="{find_checkpoint(teacher)}"}}'
    options = ["model.width=16", tokenizer, LAYERS, f"teacher.folder={teacher}", "train.batch=16", "train.keep=last"]
    return tiny("classes", run_of("classes").parent, *options, "train.validate=0", *sets)


def two_phases(*sets: str) -> Recipe:
    """Layers first, then prediction."""
    recipe = student(DISTIL, *sets)
    train = {"steps": 8, "save": 5}
    return recipe | {"phases": [{"objective": {"kind": "layers"}, "train": train}, {"train": train}]}


def state_in(run: Path) -> dict[str, Any]:
    """All tensors of a run's checkpoint but the weights of its network."""
    paths = [path for path in (run / "checkpoint").glob("*.safetensors") if path.name != "weights.safetensors"]
    return {name: tensor for path in paths for name, tensor in load_file(path).items()}


def test_a_student_learns_its_teachers_layers_then_its_answers(tmp_path: Path) -> None:
    """The loss of the layers falls; then soft labels alone make it answer as its teacher does."""
    recipe = student(DISTIL, "train.rate=0.005")
    recipe["phases"] = [{"objective": {"kind": "layers"}, "train": {"epochs": 4}}, {"train": {"epochs": 3}}]
    run = finish(recipe, tmp_path / "run", device="cpu")
    rows = load_checkpoint(run).progress.history
    layer_rows = [row for row in rows if row["phase"] == 1]
    assert layer_rows[-1]["loss"] < 0.6 * layer_rows[0]["loss"]
    assert layer_rows[-1]["losses"]["attention"] < layer_rows[0]["losses"]["attention"]
    texts = ["a lovely house", "an awful house", "the train was lovely", "the train was awful"]
    assert [row.label for row in load(run).classify(texts)] == [row.label for row in trained("classes").classify(texts)]


@pytest.mark.parametrize("stop", [7, 11])
def test_a_stopped_run_ends_with_the_same_bits(tmp_path: Path, stop: int) -> None:
    """Stopped among the layers or after them; saved after step 5, too."""
    recipe = two_phases()
    uninterrupted = finish(recipe, tmp_path / "whole", device="cpu")
    stop_after(stop, recipe, tmp_path / "stopped", device="cpu")
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "stopped") == weights_in(uninterrupted)


def test_the_projection_is_trained_and_is_no_part_of_the_student(tmp_path: Path) -> None:
    recipe = two_phases()
    steps = fit(recipe, tmp_path / "run", device="cpu")
    projections = []
    for number in (3, 4):
        for _ in islice(steps, number):
            pass
        steps.close()
        projections.append(state_in(tmp_path / "run")["objective.projection.weight"])
        steps = fit(recipe, tmp_path / "run", device="cpu")
    assert projections[0].shape == (32, 16)
    assert not torch.equal(*projections)
    list(steps)
    assert not any(name.startswith("objective.") for name in state_in(tmp_path / "run"))
    checkpoint = load_checkpoint(tmp_path / "run")
    expected = build_model(checkpoint.recipe["model"], dict(checkpoint.sizes))
    assert {name: weight.shape for name, weight in weights_of(checkpoint.network).items()} == {
        name: weight.shape for name, weight in weights_of(expected).items()
    }


def test_the_teacher_is_frozen_and_the_seed_alone_makes_the_projection() -> None:
    recipe = student()
    data = load_data(recipe)
    (teacher,) = load_teachers(recipe, data, torch.device("cpu"))
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    network: nn.Module = build_model(recipe["model"], data.sizes).train()
    (phase,) = read_phases(recipe)
    state = torch.get_rng_state()
    first, second, other = (build_objective(phase, network, teachers=(teacher,), seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.projection.weight, second.projection.weight)
    assert not torch.equal(first.projection.weight, other.projection.weight)
    first(network, data.train.batch(torch.arange(8))).total.backward()
    assert first.projection.weight.grad is not None
    assert all(weight.grad is None and not weight.requires_grad for weight in teacher.parameters())
    assert not any(module.training for module in teacher.modules())
    assert all(torch.equal(weight, before[name]) for name, weight in teacher.state_dict().items())


def test_accumulated_gradients_are_those_of_the_batch(tmp_path: Path) -> None:
    still = ["model.encode.stack.dropout=0.0", "model.encode.embeddings.dropout=0.0", "train.steps=3"]
    still += ['train.optimizer={kind="sgd"}', "train.rate=0.05"]  # Adam does not see how large gradients are
    runs = [
        finish(student(*still, f"train.accumulate={count}"), tmp_path / str(count), device="cpu") for count in (1, 4)
    ]
    first, second = (load_checkpoint(run).progress.history[-1]["losses"] for run in runs)
    assert first == pytest.approx(second, rel=1e-4)
    whole, accumulated = (weights_of(load_checkpoint(run).network) for run in runs)
    for name, weight in whole.items():
        torch.testing.assert_close(accumulated[name], weight, atol=2e-5, rtol=0)


def test_packed_texts_and_their_passages_are_learned_from(tmp_path: Path) -> None:
    """The batches of the data kind ``retrieval`` are packed."""
    text_files.retrieval(tmp_path, 40)
    sets = [*TINY_READER, f"data.folder={tmp_path}", "model.encode.stack.depth=2", "train.validate=0"]
    teacher = finish(load_recipe("reader", [*sets, "train.epochs=0"]), tmp_path / "teacher", device="cpu")
    sets += [LAYERS, f"teacher.folder={teacher}", "train.steps=2", "model.encode.stack.depth=1"]
    finish(load_recipe("reader", sets), tmp_path / "run", device="cpu")
    (row,) = load_checkpoint(tmp_path / "run").progress.history
    assert row["losses"].keys() == {"attention", "hidden", "embeddings"}
    assert row["loss"] == pytest.approx(sum(row["losses"].values()), rel=1e-5)


def test_windows_of_retrieval_are_learned_from_if_asked_for(tmp_path: Path) -> None:
    text_files.retrieval(tmp_path, 40)
    dataset = load_data(load_recipe("reader", [*TINY_READER, f"data.folder={tmp_path}"]))
    batch = dataset.train.batch(torch.arange(6))
    for read in (read_tokens, read_packed_tokens):
        reading, every = read(batch), read(batch, retrieval=True)
        assert every.mask.sum() == batch.inputs.tokens.numel() > reading.mask.sum()
        assert reading.mask.sum() == batch.reading_inputs.tokens.numel()


def test_recipes_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story_options = ['data={kind="generated-babi", tasks=[1], count=20}', f"teacher.folder={run_of('classes')}"]
    with pytest.raises(ConfigError, match=r"'layers', which reads texts in windows: data.kind is .*classes"):
        finish(load_recipe("memn2n", [*story_options, LAYERS]), tmp_path / "run", device="cpu")
    with pytest.raises(ConfigError, match=r"the teacher's 1 layers are no multiple of the student's 2"):
        finish(student("model.encode.stack.depth=2"), tmp_path / "run", device="cpu")
    later = two_phases("model.encode.stack.depth=2")
    later["phases"].reverse()  # found before the first phase, too
    with pytest.raises(ConfigError, match=r"no multiple of the student's 2"):
        next(fit(later, tmp_path / "run", device="cpu"))
    spans = student() | {"phases": [{}, {"objective": {"kind": "spans"}}]}
    with pytest.raises(ConfigError, match=r"objective.kind is 'spans', but data of kind 'classes' needs"):
        next(fit(spans, tmp_path / "run", device="cpu"))
    monkeypatch.setattr(phases, "world_size", lambda: 2)
    with pytest.raises(ConfigError, match=r"'layers', which trains in one process: start it without torchrun"):
        read_phases(student())
