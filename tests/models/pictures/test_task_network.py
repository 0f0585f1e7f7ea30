"""UniT: what its decoders share, and what a task reads."""

from typing import Any

import pytest
import torch

from mnemic.data.pictures.tasks import SceneTasks, TaskDataset
from mnemic.evaluate.pictures.tasks import compute_task_metrics
from mnemic.models import build_model
from mnemic.models.pictures.task_network import TaskInputs, TaskNetwork
from mnemic.objectives.pictures.tasks import TaskLoss
from mnemic.recipe import ConfigError, load_recipe
from mnemic.respond.pictures.tasks import TASKS

WIDTH, QUERIES = 16, 6


@pytest.fixture(scope="module")
def loaded() -> Any:
    return SceneTasks(count=12, validation_size=4, test_size=6).load()


def make_network(sizes: dict[str, Any], **options: Any) -> TaskNetwork:
    torch.manual_seed(0)
    model = load_recipe("unit", [f"model.width={WIDTH}"])["model"]
    network = build_model({**model, "respond": {"kind": "tasks", "queries": QUERIES, **options}}, sizes)
    assert isinstance(network, TaskNetwork)
    return network.eval()


def batches_of(dataset: TaskDataset) -> dict[str, Any]:
    """Return a batch of each task."""
    rows = torch.arange(4)
    starts = {name: dataset.texts[number].starts[rows] for number, name in enumerate(TASKS[1:])}
    batches = {name: dataset.text_batch(name, text_rows, rows) for name, text_rows in starts.items()}
    return {"detection": dataset.detection_batch(rows), **batches}


def test_each_task_has_answers_of_its_shape(loaded: Any) -> None:
    network = make_network(loaded.sizes)
    outputs = {name: network(batch.inputs).logits for name, batch in batches_of(loaded.train).items()}
    assert [layer.boxes.shape for layer in outputs["detection"].layers] == [(4, QUERIES, 4)] * 2
    assert outputs["detection"].layers[-1].class_logits.shape == (4, QUERIES, 6)
    shapes = [tuple(outputs[name].class_logits.shape) for name in TASKS[1:]]
    assert shapes == [(4, 19), (4, 2), (4, 19)]


def test_a_task_gives_gradients_to_what_it_uses(loaded: Any) -> None:
    for shared in (True, False):
        network = make_network(loaded.sizes, shared=shared)
        for name, batch in batches_of(loaded.train).items():
            network.zero_grad()
            loss = TaskLoss()(network, batch)
            (loss.total / loss.num_targets).backward()
            parts = {key.partition(".")[0] for key, weight in network.named_parameters() if weight.grad is not None}
            assert parts == {"encode", "ask", "respond"} - {"detection": {"ask"}, "reading": {"encode"}}.get(
                name, set()
            )
            decoders = [any(w.grad is not None for w in decoder.parameters()) for decoder in network.respond.decoders]
            assert decoders == ([True] if shared else [task == name for task in TASKS])


def test_padding_and_the_batch_change_nothing(loaded: Any) -> None:
    network = make_network(loaded.sizes)
    inputs = batches_of(loaded.train)["questions"].inputs
    together = network(inputs).logits.class_logits
    length = int(inputs.mask[1].sum())
    alone = TaskInputs(inputs.task, inputs.pictures[1:2], inputs.words[1:2, :length], inputs.mask[1:2, :length])
    torch.testing.assert_close(network(alone).logits.class_logits, together[1:2])


def test_the_task_is_told_to_picture_and_text(loaded: Any) -> None:
    """Detection and questions see one picture differently, before any query."""
    network = make_network(loaded.sizes)
    regions = network.encode(torch.rand(1, 3, 48, 48))
    seen = [network.respond.join_states(task, regions, None, None)[0] for task in (0, 1)]
    assert (seen[0] - seen[1]).abs().max() > 1e-3
    words = torch.tensor([[3, 4]])
    encoded = [network(TaskInputs(task, None, words, words > 0)).words for task in (2, 3)]
    assert (encoded[0] - encoded[1]).abs().max() > 1e-3


def test_every_task_of_a_few_scenes_is_learned(loaded: Any) -> None:
    network = make_network(loaded.sizes, depth=1).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    losses: dict[str, list[float]] = {name: [] for name in TASKS}
    for _ in range(25):
        for name, batch in batches_of(loaded.train).items():
            loss = TaskLoss()(network, batch)
            optimizer.zero_grad()
            (loss.total / loss.num_targets).backward()
            optimizer.step()
            losses[name].append(float(loss.total.detach()))
    assert all(min(values[-5:]) < 0.5 * values[0] for values in losses.values()), losses
    assert set(compute_task_metrics(network, loaded.train)) == {"mean", *TASKS, "colors"}


def test_words_need_an_encoder() -> None:
    model = dict(load_recipe("unit")["model"])
    del model["ask"]
    with pytest.raises(ConfigError, match=r"add model\.ask, an encoder of tokens"):
        build_model(model, {"vocab": 9, "max_length": 9, "channels": 3, "side": 48})
