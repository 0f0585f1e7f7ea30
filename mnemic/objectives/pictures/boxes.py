"""Match predicted boxes with those of a picture, and compare both.

A box is its center, width and height, as shares of the picture. Shapes: b pictures, q predicted
boxes, o boxes of a picture, k boxes.
"""

from typing import NamedTuple

import torch
from torch import Tensor

EPSILON = 1e-9  # the least area


class Overlap(NamedTuple):
    """How far two boxes cover the same area."""

    iou: Tensor  # the share of their union that both cover, 0 to 1
    generalized: Tensor  # less the share of the smallest box around them that neither covers, -1 to 1


class BoxPairs(NamedTuple):
    """Which predicted box belongs to which box of a picture; k pairs of all pictures."""

    pictures: Tensor  # k
    predicted: Tensor  # k, numbers of predicted boxes
    boxes: Tensor  # k, numbers of the picture's boxes


def match_boxes(costs: Tensor, mask: Tensor) -> BoxPairs:
    """Match each box with another prediction, at the least total cost (Kuhn 1955, Hungarian).

    ``costs`` b q o, ``mask`` b o is False where there is no box. SciPy computes it.
    """
    try:
        from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ValueError("matching boxes needs scipy: pip install 'mnemic[pictures]'") from error
    if costs.shape[1] < int(mask.sum(1).max()):
        raise ValueError(f"{costs.shape[1]} predictions do not match {int(mask.sum(1).max())} boxes; set more queries")
    numbers, is_box = costs.detach().cpu().double().nan_to_num().numpy(), mask.cpu().numpy()
    pairs: list[tuple[int, int, int]] = []
    for picture, columns in enumerate(row.nonzero()[0] for row in is_box):
        predicted, matches = linear_sum_assignment(numbers[picture][:, columns])
        pairs += [(picture, *pair) for pair in zip(predicted.tolist(), columns[matches].tolist())]
    return BoxPairs(*torch.tensor(pairs, dtype=torch.long, device=costs.device).view(-1, 3).unbind(1))


def measure_overlap(first: Tensor, second: Tensor) -> Overlap:
    """Measure the overlap of boxes (… 4), which are broadcast.

    The generalized one (GIoU; Rezatofighi et al. 2019, arXiv:1902.09630) has a gradient even if
    two boxes do not touch.
    """
    start, end = find_corners(first)
    other_start, other_end = find_corners(second)
    shared = (torch.minimum(end, other_end) - torch.maximum(start, other_start)).clamp(min=0).prod(-1)
    union = (end - start).prod(-1) + (other_end - other_start).prod(-1) - shared
    hull = (torch.maximum(end, other_end) - torch.minimum(start, other_start)).prod(-1)
    iou = shared / union.clamp(min=EPSILON)
    return Overlap(iou, iou - (hull - union) / hull.clamp(min=EPSILON))


def find_corners(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the left top and the right bottom corner of boxes (… 4), … 2 each."""
    center, size = boxes.split(2, -1)
    return center - size / 2, center + size / 2
