"""Mean average precision against numbers that are worked out by hand."""

import pytest
import torch
from torch import Tensor

from mnemic.evaluate.pictures.detection import compute_average_precision, interpolate_precision
from mnemic.respond.pictures.detections import Boxes, Detections

NUM_CLASSES = 2
PLACES = torch.tensor([[0.25, 0.25, 0.2, 0.2], [0.75, 0.25, 0.2, 0.2], [0.25, 0.75, 0.2, 0.2]])


def make_targets() -> Boxes:
    """Make one picture with two things of class 0 and one of class 1."""
    return Boxes(PLACES[None], torch.tensor([[0, 0, 1]]), torch.ones(1, 3, dtype=torch.bool))


def predict(boxes: Tensor, classes: list[int], scores: list[float]) -> Detections:
    """Make predictions of one picture with such probabilities of their class."""
    probabilities = torch.full((len(classes), NUM_CLASSES + 1), 1e-6)
    probabilities[range(len(classes)), classes] = torch.tensor(scores)
    probabilities[:, -1] = 1 - torch.tensor(scores)
    return Detections(probabilities.log()[None], boxes[None])


def test_right_boxes_have_a_precision_of_one_in_any_order() -> None:
    detections = predict(PLACES.flip(0), [1, 0, 0], [0.9, 0.6, 0.8])
    assert compute_average_precision(detections, make_targets()) == pytest.approx(1)


def test_a_second_prediction_of_a_box_is_wrong() -> None:
    # Class 0: right, wrong (again the first box), right; class 1 is not predicted at all.
    boxes = PLACES[[0, 0, 1]]
    detections = predict(boxes, [0, 0, 0], [0.9, 0.8, 0.7])
    # Precision is 1 up to a recall of 1/2 (51 of 101 recalls), then 2/3.
    class_0 = (51 + 50 * 2 / 3) / 101
    assert compute_average_precision(detections, make_targets(), (0.5,)) == pytest.approx(class_0 / 2)


def test_a_box_counts_up_to_the_threshold_of_its_overlap() -> None:
    moved = PLACES.clone()
    moved[:, 0] += 0.05  # an overlap of 0.15 · 0.2 to 0.25 · 0.2: 0.6
    detections = predict(moved, [0, 0, 1], [0.9, 0.8, 0.7])
    values = [compute_average_precision(detections, make_targets(), (limit,)) for limit in (0.5, 0.59, 0.61)]
    assert values == pytest.approx([1, 1, 0])
    assert compute_average_precision(detections, make_targets()) == pytest.approx(0.2, abs=0.11)


def test_a_picture_finds_no_box_of_another() -> None:
    targets = Boxes(PLACES[:2, None], torch.zeros(2, 1, dtype=torch.long), torch.ones(2, 1, dtype=torch.bool))
    first, second = (predict(PLACES[0, None], [0], [score]) for score in (0.9, 0.8))
    detections = Detections(*(torch.cat(pair) for pair in zip(first[:2], second[:2])))
    assert compute_average_precision(detections, targets, (0.5,)) == pytest.approx(51 / 101)


def test_precision_without_predictions_is_zero() -> None:
    assert interpolate_precision(torch.zeros(0, dtype=torch.bool), 3) == 0
