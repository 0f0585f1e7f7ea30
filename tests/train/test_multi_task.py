"""Several tasks at once: batches of one task each, a head per task, and one loss."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from learn_runs import finish, stop_after

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.evaluate.intervals import wilson_interval
from mnemic.evaluate.text_metrics import compute_report
from mnemic.models import IGNORE
from mnemic.objectives.multi_task import MultiTaskLoss
from mnemic.objectives.text_tasks import ClassLoss, NumberLoss
from mnemic.recipe import ConfigError, Recipe, build, load_recipe
from mnemic.train.initialize import build_network
from mnemic.train.phases import build_sampler, read_phases

TASKS = (
    'data.tasks=[{ name = "good", kind = "classes" }, { name = "mood", kind = "pairs", metric = "f1" }, '
    '{ name = "score", kind = "pairs", labels = "numbers", metric = "pearson" }]'
)
TINY = [
    TASKS, "data.length=32", "data.overlap=8", "data.test_file=test", 'data.tokenizer={kind="wordpiece", vocab=200}',
    "model.width=32", "model.encode.stack.depth=1", "model.encode.stack.attention.heads=2", "train.batch=16",
    "train.rate=0.003",
]  # fmt: skip
COUNTS = {"good": 80, "mood": 160, "score": 48}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write texts of two classes, and pairs with a class or a number."""
    root = tmp_path_factory.mktemp("multi-task")
    text_files.classes(root / "good", COUNTS["good"])
    text_files.pairs(root / "mood", COUNTS["mood"])
    text_files.pairs(root / "score", COUNTS["score"], numbers=True)
    return root


def recipe_of(files: Path, *sets: str) -> Recipe:
    return load_recipe("mt-dnn-glue", [f"data.folder={files}", *TINY, "data.validation=0.25", *sets])


@pytest.fixture(scope="module")
def loaded(files: Path) -> Any:
    return build(DATASETS, recipe_of(files)["data"]).load()


def make_network(loaded: Any, files: Path) -> Any:
    return build_network(recipe_of(files)["model"], loaded.sizes, 0).eval()


def test_outputs_are_those_of_all_tasks(loaded: Any) -> None:
    assert loaded.labels == ("good: bad", "good: good", "mood: 0", "mood: 1", "score: number")
    assert loaded.sizes["classes"] == 5
    assert loaded.train.outputs.mT.tolist() == [[0, 2, 0], [2, 2, 0], [4, 1, 1]]
    assert Counter(loaded.train.groups.tolist()) == {0: 60, 1: 120, 2: 36}


def test_joined_texts_are_those_of_each_task(loaded: Any) -> None:
    start = 0
    for number, dataset in enumerate(loaded.train.datasets):
        rows = torch.arange(len(dataset))
        batch, single = loaded.train.batch(rows + start), dataset.batch(rows)
        for name in ("tokens", "mask", "segment_ids", "answer_mask"):
            assert torch.equal(getattr(batch.inputs, name), getattr(single.inputs, name))
        assert torch.equal(batch.owner, single.owner)
        assert torch.equal(batch.targets.values, single.targets.float())
        assert (batch.targets.first == [0, 2, 4][number]).all()
        start += len(dataset)


def test_a_batch_is_of_one_task_and_tasks_come_by_size(loaded: Any, files: Path) -> None:
    (phase,) = read_phases(recipe_of(files))
    sampler = build_sampler(phase, make_network(loaded, files), loaded.train, [torch.arange(len(loaded.train))], [0])
    steps = sampler.iterate_from(0)
    tasks = [loaded.train.groups[next(steps).rows].unique().tolist() for _ in range(sampler.steps_per_epoch)]
    assert all(len(task) == 1 for task in tasks)
    assert Counter(task[0] for task in tasks) == {0: 60 // 16, 1: 120 // 16, 2: 36 // 16}
    assert tasks != sorted(tasks)  # in a random order
    rows = torch.cat([indices.rows for indices, _ in zip(sampler.iterate_from(0), range(sampler.steps_per_epoch))])
    assert len(rows.unique()) == len(rows)  # each once an epoch
    with pytest.raises(ConfigError, match=r"less than a batch: lower train\.batch"):
        _ = build_sampler(
            phase._replace(settings=read_phases(recipe_of(files, "train.batch=40"))[0].settings),
            make_network(loaded, files), loaded.train, [torch.arange(len(loaded.train))], [0],
        ).steps_per_epoch  # fmt: skip


def test_the_loss_is_that_of_each_task_by_itself(loaded: Any, files: Path) -> None:
    """Also if a batch has texts of all tasks; other tasks' outputs get no gradient."""
    network, loss = make_network(loaded, files), MultiTaskLoss()
    total, start, all_rows = 0.0, 0, []
    for number, dataset in enumerate(loaded.train.datasets):
        rows = torch.arange(8)
        first, count, _ = loaded.train.outputs[:, number].tolist()

        class OneTask(torch.nn.Module):
            """The outputs of one task alone."""

            def forward(self, inputs: Any, first: int = first, count: int = count) -> Any:
                output = network(inputs)
                return output._replace(logits=output.logits[:, first : first + count])

        alone = (NumberLoss() if dataset.metrics == "numbers" else ClassLoss())(OneTask(), dataset.batch(rows))
        joint = loss(network, loaded.train.batch(rows + start))
        torch.testing.assert_close(joint.total, alone.total)
        assert joint.num_targets == alone.num_targets == 8
        total += float(alone.total.detach())
        network.zero_grad()
        joint.total.backward()
        gradient = network.respond.head.out.bias.grad
        is_task = torch.zeros(5, dtype=torch.bool)
        is_task[first : first + count] = True
        assert (gradient[~is_task] == 0).all()
        assert (gradient[is_task] != 0).all()
        all_rows.append(rows + start)
        start += len(dataset)
    mixed = loss(network, loaded.train.batch(torch.cat(all_rows)))
    assert float(mixed.total.detach()) == pytest.approx(total, rel=1e-5)
    batch = loaded.train.batch(torch.arange(4))
    unknown = batch._replace(targets=batch.targets._replace(values=torch.full((4,), float(IGNORE))))
    assert loss(network, unknown).num_targets == 0
    assert loss(network, unknown).total == 0


def test_tasks_are_learned_together_and_resumed(files: Path, tmp_path: Path) -> None:
    """Classes, pairs and numbers are learned by one network; a stopped run ends with its bits."""
    recipe = recipe_of(files, "train.epochs=12", "train.validate=12", "train.save=20")
    finish(recipe, tmp_path / "run", device="cpu")
    stop_after(31, recipe, tmp_path / "stopped", device="cpu")
    finish(recipe, tmp_path / "stopped", device="cpu")
    first, second = (load_checkpoint(tmp_path / name) for name in ("run", "stopped"))
    for weight, again in zip(first.network.parameters(), second.network.parameters()):
        assert torch.equal(weight, again)
    test = build(DATASETS, recipe["data"]).dataset("test", first.tokenizer, first.labels)
    report = compute_report(first.network, test, num_models=2)
    metrics = report.metrics
    count = len(test.datasets[test.names.index("good")])
    assert 0 < count < len(test)
    interval = [100 * end for end in wilson_interval(metrics["good"] / 100, count)]
    assert report.intervals["good"] == pytest.approx(interval)
    assert report.bounds.keys() == report.intervals.keys() == {"good"}  # not F1, correlation or mean
    assert list(metrics) == ["mean", "good", "mood", "score"]
    assert metrics["mean"] == pytest.approx(sum(list(metrics.values())[1:]) / 3)
    assert metrics["good"] > 80
    assert metrics["score"] > 60


def test_mistakes_are_named(files: Path, loaded: Any) -> None:
    with pytest.raises(ConfigError, match=r"data\.tasks lists tasks"):
        build(DATASETS, {"kind": "multi-task", "folder": "."})
    with pytest.raises(ConfigError, match="known kinds: classes, pairs"):
        build(DATASETS, {"kind": "multi-task", "folder": ".", "tasks": [{"name": "a", "kind": "spans"}]})
    with pytest.raises(ConfigError, match="a name of its own"):
        build(DATASETS, {"kind": "multi-task", "folder": ".", "tasks": [{"name": "a"}, {"name": "a"}]})
    source = build(DATASETS, recipe_of(files)["data"])
    with pytest.raises(ValueError, match=r"has not learned the task 'mood'; it knows good"):
        source.dataset("test", loaded.tokenizer, ("good: bad", "good: good"))
