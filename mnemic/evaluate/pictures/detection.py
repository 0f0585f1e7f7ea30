"""Mean average precision of detected boxes.

Shapes: b pictures, q predicted boxes, o boxes of a picture.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from mnemic.objectives.pictures.boxes import measure_overlap
from mnemic.respond.pictures.detections import Boxes, Detections

THRESHOLDS = tuple(0.5 + 0.05 * step for step in range(10))  # of the overlap, as COCO's
NUM_RECALLS = 101  # at which COCO reads the precision, from 0 to 1


def compute_average_precision(
    detections: Detections, targets: Boxes, thresholds: Sequence[float] = THRESHOLDS
) -> float:
    """Compute the mean average precision over classes and thresholds, as COCO does: 0 to 1.

    Each prediction counts as its likeliest class, with that probability as its score. In the order
    of the scores it takes the free box of its class that it overlaps most; it is right if there is
    one with an IoU of at least the threshold. Precision at a recall is the best at that recall or
    beyond (COCO's interpolation).
    """
    scores, classes = detections.class_logits.softmax(-1)[..., :-1].max(-1)  # b q
    overlaps = measure_overlap(detections.boxes.unsqueeze(2), targets.boxes.unsqueeze(1)).iou  # b q o
    precisions = []
    for class_id in targets.classes[targets.mask].unique().tolist():
        pictures, predicted = (classes == class_id).nonzero(as_tuple=True)
        order = scores[pictures, predicted].argsort(descending=True, stable=True)
        pictures, predicted = pictures[order], predicted[order]
        is_box = targets.mask & (targets.classes == class_id)
        candidates = overlaps[pictures, predicted].masked_fill(~is_box[pictures], -1.0)  # k o
        for threshold in thresholds:
            is_right = mark_true_positives(candidates.tolist(), pictures.tolist(), threshold)
            precisions.append(interpolate_precision(torch.tensor(is_right), int(is_box.sum())))
    return sum(precisions) / max(len(precisions), 1)


def mark_true_positives(candidates: list[list[float]], pictures: list[int], threshold: float) -> list[bool]:
    """Mark which predictions, best first, find a box that no prediction before them has."""
    matched: set[tuple[int, int]] = set()
    is_right = []
    for overlaps, picture in zip(candidates, pictures):
        free = [(overlap, box) for box, overlap in enumerate(overlaps) if (picture, box) not in matched]
        overlap, box = max(free, default=(-1.0, -1))
        is_right.append(overlap >= threshold)
        if is_right[-1]:
            matched.add((picture, box))
    return is_right


def interpolate_precision(is_right: Tensor, num_boxes: int) -> float:
    """Compute the mean precision over 101 recalls, of predictions that are best first."""
    if not len(is_right):
        return 0.0
    num_right = is_right.double().cumsum(0)
    precision = num_right / torch.arange(1, len(is_right) + 1)
    best = precision.flip(0).cummax(0).values.flip(0)  # at this recall or beyond
    recall = num_right / num_boxes
    index = torch.searchsorted(recall, torch.linspace(0, 1, NUM_RECALLS, dtype=torch.float64) - 1e-9)
    return float(torch.cat([best, best.new_zeros(1)])[index].mean())
