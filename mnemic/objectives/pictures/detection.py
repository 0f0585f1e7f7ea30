"""The loss of detecting objects: classes and boxes of the predictions that match best.

Shapes: b pictures, q predicted boxes, o boxes of a picture, c classes, k matched pairs.
"""

import torch
from torch import Tensor, nn

from mnemic.objectives.pictures.boxes import BoxPairs, match_boxes, measure_overlap
from mnemic.respond.pictures.detections import Boxes, Detections

# Weights of the matching costs and losses, as in DETR's table of hyperparameters.
CLASS_COST, DISTANCE_WEIGHT, OVERLAP_WEIGHT = 1.0, 5.0, 2.0
NO_OBJECT_WEIGHT = 0.1  # of predictions that match no box, which are most


def compute_detection_loss(detections: Detections, targets: Boxes) -> Tensor:
    """Compute the mean loss of a batch of pictures.

    DETR (Carion et al. 2020, arXiv:2005.12872, equations 1 and 2): cross-entropy of the class, the
    distance of the box (L1) and 1 - GIoU, for the predictions that the cheapest matching pairs with
    boxes; the others are to predict that there is nothing. Box losses are divided by the number of
    boxes.
    """
    pairs = match_boxes(compute_costs(detections, targets), targets.mask)
    class_logits, nothing = detections.class_logits, detections.class_logits.shape[-1] - 1
    classes = torch.full(class_logits.shape[:2], nothing, device=class_logits.device)
    classes[pairs.pictures, pairs.predicted] = targets.classes[pairs.pictures, pairs.boxes]
    weights = class_logits.new_ones(nothing + 1)
    weights[nothing] = NO_OBJECT_WEIGHT
    class_loss = nn.functional.cross_entropy(class_logits.flatten(0, 1), classes.flatten(), weights)
    return class_loss + compute_box_loss(detections, targets, pairs)


def compute_box_loss(detections: Detections, targets: Boxes, pairs: BoxPairs) -> Tensor:
    """Compute the mean loss of matched boxes; 0 without any."""
    predicted = detections.boxes[pairs.pictures, pairs.predicted]  # k 4
    boxes = targets.boxes[pairs.pictures, pairs.boxes]
    distance = (predicted - boxes).abs().sum()
    overlap = (1 - measure_overlap(predicted, boxes).generalized).sum()
    return (DISTANCE_WEIGHT * distance + OVERLAP_WEIGHT * overlap) / max(len(boxes), 1)


@torch.no_grad()
def compute_costs(detections: Detections, targets: Boxes) -> Tensor:
    """Compute what it costs to match each prediction with each box, b q o.

    Where the loss has the logarithm of the class's probability, the cost has the probability, which
    is of the size of the other parts.
    """
    probabilities = detections.class_logits.softmax(-1)
    columns = targets.classes.unsqueeze(1).expand(-1, probabilities.shape[1], -1)
    class_cost = -probabilities.gather(2, columns)
    predicted, boxes = detections.boxes.unsqueeze(2), targets.boxes.unsqueeze(1)  # b q 1 4, b 1 o 4
    distance = (predicted - boxes).abs().sum(-1)
    overlap = measure_overlap(predicted, boxes).generalized
    return CLASS_COST * class_cost + DISTANCE_WEIGHT * distance - OVERLAP_WEIGHT * overlap
