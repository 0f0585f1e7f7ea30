"""How well a network does each of its tasks about scenes.

Shapes: b examples, t texts.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.pictures.tasks import TaskDataset
from mnemic.evaluate.pictures.detection import compute_average_precision
from mnemic.models.evaluating import evaluating
from mnemic.objectives.pictures.boxes import match_boxes
from mnemic.objectives.pictures.detection import compute_costs
from mnemic.respond.pictures.detections import Detections
from mnemic.respond.pictures.tasks import TASKS

EXAMPLES_PER_BATCH = 250  # changes memory use, not results


@torch.no_grad()
def compute_task_metrics(network: nn.Module, dataset: TaskDataset) -> dict[str, float]:
    """Compute the metrics of a network's tasks, in percent, their mean first.

    ``detection``: mean average precision, as COCO's; ``colors``: the accuracy of matched boxes'
    attributes, which is no part of the mean. Other tasks have the accuracy of their answers.
    """
    with evaluating(network):
        values = {
            name: measure_detection(network, dataset)
            if name == "detection"
            else measure_answers(network, dataset, name)
            for name in dataset.task_names
        }
        colors = {"colors": measure_colors(network, dataset)} if "detection" in values else {}
    values = {"mean": sum(values.values()) / len(values)} | values | colors
    return {name: 100 * value for name, value in values.items()}


def measure_answers(network: Any, dataset: TaskDataset, name: str) -> float:
    """Measure the accuracy on all texts of a task."""
    texts = dataset.texts[TASKS.index(name) - 1]
    rows = torch.arange(len(dataset), device=dataset.device).repeat_interleave(texts.counts)  # t
    num_right = 0
    for text_rows in torch.arange(len(rows), device=rows.device).split(EXAMPLES_PER_BATCH):
        batch = dataset.text_batch(name, text_rows, rows[text_rows])
        num_right += int((network(batch.inputs).logits.class_logits.argmax(1) == batch.targets).sum())
    return num_right / len(rows)


def detect_all(network: Any, dataset: TaskDataset) -> Detections:
    """Detect the objects of all scenes, by the last layer of the decoder."""
    batches = torch.arange(len(dataset), device=dataset.device).split(EXAMPLES_PER_BATCH)
    layers = [network(dataset.detection_batch(rows).inputs).logits.layers[-1] for rows in batches]
    return Detections(*(torch.cat(tensors) for tensors in zip(*layers)))


def measure_detection(network: Any, dataset: TaskDataset) -> float:
    """Measure the mean average precision of boxes with their shapes."""
    return compute_average_precision(detect_all(network, dataset), dataset.boxes)


def measure_colors(network: Any, dataset: TaskDataset) -> float:
    """Measure how often the color of a matched box is right, told its predicted shape."""
    detections, targets = detect_all(network, dataset), dataset.boxes
    assert detections.states is not None
    assert targets.attributes is not None
    pairs = match_boxes(compute_costs(detections, targets), targets.mask)
    states = detections.states[pairs.pictures, pairs.predicted]
    classes = detections.class_logits[pairs.pictures, pairs.predicted, :-1].argmax(-1)
    colors: Tensor = network.respond.detect.score_attributes(states, classes).argmax(-1)
    return float((colors == targets.attributes[pairs.pictures, pairs.boxes]).double().mean())
