"""Matching and losses of boxes: the cheapest of all matchings, and overlaps by counting pixels."""

import sys
from itertools import permutations

import pytest
import torch
from torch import Tensor

from mnemic.objectives.pictures.boxes import match_boxes, measure_overlap
from mnemic.objectives.pictures.detection import compute_costs, compute_detection_loss
from mnemic.respond.pictures.detections import Boxes, Detections

GRID = 40  # cells of a side of the picture that overlaps are counted on


def draw_box(box: Tensor) -> Tensor:
    """Return which cells of the grid a box covers."""
    x, y, width, height = (round(float(number) * GRID) for number in box)
    cells = torch.zeros(GRID, GRID, dtype=torch.bool)
    cells[y - height // 2 : y + height // 2, x - width // 2 : x + width // 2] = True
    return cells


def make_boxes(count: int, seed: int) -> Tensor:
    """Make boxes on the grid, with an even number of cells on each side."""
    generator = torch.Generator().manual_seed(seed)
    size = 2 * torch.randint(1, 8, (count, 2), generator=generator)
    center = torch.randint(8, GRID - 8, (count, 2), generator=generator)
    return torch.cat([center, size], 1) / GRID


def test_overlaps_are_those_of_counted_cells() -> None:
    first, second = make_boxes(30, seed=0), make_boxes(30, seed=1)
    overlap = measure_overlap(first, second)
    for row, (cells, others) in enumerate(zip(map(draw_box, first), map(draw_box, second))):
        union = int((cells | others).sum())
        rows, columns = (torch.nonzero((cells | others).any(axis)).squeeze(1) for axis in (1, 0))
        hull = int((rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1))
        iou = int((cells & others).sum()) / union
        assert float(overlap.iou[row]) == pytest.approx(iou, abs=1e-5)
        assert float(overlap.generalized[row]) == pytest.approx(iou - (hull - union) / hull, abs=1e-5)


def test_boxes_that_do_not_touch_still_have_a_gradient() -> None:
    predicted = torch.tensor([0.2, 0.2, 0.1, 0.1], requires_grad=True)
    measure_overlap(predicted, torch.tensor([0.8, 0.8, 0.1, 0.1])).generalized.backward()
    assert predicted.grad is not None
    assert (predicted.grad[:2] > 0).all()  # nearer is better


def test_a_matching_is_the_cheapest_of_all() -> None:
    costs = torch.randn(12, 5, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(3) < torch.randint(0, 4, (12, 1), generator=torch.Generator().manual_seed(1))
    pairs = match_boxes(costs, mask)
    assert len(pairs.boxes) == int(mask.sum())
    for picture, is_box in enumerate(mask):
        rows = pairs.pictures == picture
        cost = float(costs[picture, pairs.predicted[rows], pairs.boxes[rows]].sum())
        columns = is_box.nonzero().squeeze(1)
        best = min(float(costs[picture, list(order), columns].sum()) for order in permutations(range(5), len(columns)))
        assert cost == pytest.approx(best, abs=1e-5)
        assert len(set(pairs.predicted[rows].tolist())) == len(columns)


def make_targets() -> Boxes:
    boxes = make_boxes(6, seed=3).view(2, 3, 4)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    return Boxes(boxes, torch.tensor([[0, 1, 0], [2, 2, 1]]), mask)


def test_the_right_answer_in_any_order_costs_nothing() -> None:
    targets = make_targets()
    logits = torch.full((2, 4, 4), -30.0)
    logits[..., 3] = 30.0  # nothing
    boxes = torch.full((2, 4, 4), 0.5)
    for picture, count in ((0, 2), (1, 3)):
        for box in range(count):
            query = 3 - box
            logits[picture, query] = -30.0
            logits[picture, query, targets.classes[picture, box]] = 30.0
            boxes[picture, query] = targets.boxes[picture, box]
    assert float(compute_detection_loss(Detections(logits, boxes), targets)) == pytest.approx(0, abs=1e-4)
    assert float(compute_detection_loss(Detections(-logits, boxes), targets)) > 1


def test_padding_boxes_change_nothing() -> None:
    targets = make_targets()
    generator = torch.Generator().manual_seed(0)
    logits, boxes = torch.randn(2, 4, 4, generator=generator), torch.rand(2, 4, 4, generator=generator)
    loss = compute_detection_loss(Detections(logits, boxes), targets)
    targets.boxes[0, 2], targets.classes[0, 2] = 0.3, 2
    torch.testing.assert_close(compute_detection_loss(Detections(logits, boxes), targets), loss)
    assert compute_costs(Detections(logits, boxes), targets).shape == (2, 4, 3)


def test_too_few_predictions_are_refused() -> None:
    with pytest.raises(ValueError, match="2 predictions do not match 3 boxes; set more queries"):
        match_boxes(torch.zeros(1, 2, 3), torch.ones(1, 3, dtype=torch.bool))


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ValueError, match=r"pip install 'mnemic\[pictures\]'"):
        match_boxes(torch.zeros(1, 3, 3), torch.ones(1, 3, dtype=torch.bool))
