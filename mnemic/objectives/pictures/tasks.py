"""The loss of a network with several tasks: that of the task of the batch."""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.models.contract import unwrap_network
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.pictures.boxes import match_boxes
from mnemic.objectives.pictures.detection import compute_costs, compute_detection_loss
from mnemic.respond.pictures.detections import Boxes, Detections


class TaskLoss:
    """Compute the loss of a batch's task: cross-entropy, or the losses of boxes.

    As in UniT (Hu and Singh 2021). Detection sums the losses of all layers of the decoder (DETR;
    Carion et al. 2020, section 3.2); attributes are learned for the boxes that the last layer
    matches.
    """

    single_process = True  # a step leaves the weights of other tasks without a gradient

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        logits, targets = network(batch.inputs).logits, batch.targets
        if logits.class_logits is not None:
            loss = nn.functional.cross_entropy(logits.class_logits, targets)
            count = len(targets)
        else:
            losses = [compute_detection_loss(layer, targets) for layer in logits.layers]
            heads = unwrap_network(network).respond.detect
            loss = torch.stack(losses).sum() + compute_attribute_loss(heads, logits.layers[-1], targets)
            count = len(targets.boxes)
        return Loss(loss * count, torch.tensor(count, device=loss.device), carried)


def compute_attribute_loss(heads: Any, detections: Detections, targets: Boxes) -> Tensor:
    """Compute the mean cross-entropy of the attributes of matched boxes, told their class."""
    pairs = match_boxes(compute_costs(detections, targets), targets.mask)
    assert detections.states is not None
    assert targets.attributes is not None
    states = detections.states[pairs.pictures, pairs.predicted]
    scores = heads.score_attributes(states, targets.classes[pairs.pictures, pairs.boxes])
    attributes = targets.attributes[pairs.pictures, pairs.boxes]
    return nn.functional.cross_entropy(scores, attributes, reduction="sum") / max(len(attributes), 1)
