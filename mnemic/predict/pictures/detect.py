"""Detect the objects in pictures.

Shapes: n pictures, c channels, y rows and x columns of pixels, q predicted boxes.
"""

from typing import TYPE_CHECKING, Any

import torch

from mnemic.models.evaluating import evaluating
from mnemic.models.pictures.task_network import TaskInputs
from mnemic.predict.captions import to_tensor
from mnemic.predict.methods import check_method
from mnemic.predict.results import DetectedObject
from mnemic.respond.pictures.tasks import DETECTION

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


@torch.no_grad()
def detect_objects(checkpoint: "Checkpoint", pictures: Any, *, threshold: float = 0.5) -> list[list[DetectedObject]]:
    """Detect objects whose class has at least the probability ``threshold``, likeliest first."""
    check_method(checkpoint, "detect")
    network, sizes = checkpoint.network, checkpoint.sizes
    tensor = to_tensor(pictures, sizes["channels"], sizes["side"]).to(network.device)
    with evaluating(network):
        detections = network(TaskInputs(DETECTION, tensor)).logits.layers[-1]
        scores, classes = detections.class_logits.softmax(-1)[..., :-1].max(-1)  # n q
        attributes = network.respond.detect.score_attributes(detections.states, classes).argmax(-1)  # n q
    num_classes = sizes["task_classes"][DETECTION]
    names, attribute_names = checkpoint.labels[:num_classes], checkpoint.labels[num_classes:]
    center, size = detections.boxes.split(2, -1)
    corners = torch.cat([center - size / 2, center + size / 2], -1).clamp(0, 1).tolist()
    return [
        [
            DetectedObject(
                names[int(classes[row, query])],
                attribute_names[int(attributes[row, query])],
                tuple(corners[row][query]),
                float(scores[row, query]),
            )
            for query in scores[row].argsort(descending=True).tolist()
            if scores[row, query] >= threshold
        ]
        for row in range(len(tensor))
    ]
