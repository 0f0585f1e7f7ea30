"""Make a reader's doubts true: of texts for which it says 30 %, three in ten hold no answer.

Shapes: e texts.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.text_tasks.batches import TextSet
from mnemic.evaluate.text_metrics import longest_of
from mnemic.predict.windows import spans
from mnemic.respond.spans import Spans

STEPS = 100  # of Newton's method, which ends long before
NEAREST = 1e-15  # to 0 or 1: as near as float64 tells apart


class Calibration(NamedTuple):
    """p(no answer) = sigmoid(``scale`` · (none - best) + ``shift``), of scores."""

    scale: float
    shift: float


def calibrate(network: nn.Module, texts: TextSet) -> Calibration:
    """Fit a scale and a shift on texts with and without answers, and put them into R's weights.

    Scores of a window are all scaled alike, so the best answer stays the best; what changes is how
    sure it is. Texts without an answer weigh as much as those with one, however many there are.
    """
    said = spans(network, texts, longest_of(network))
    doubts = torch.tensor([own.none for own in said], dtype=torch.float64)
    none = torch.tensor([not own.answers for own in texts.examples])
    found = fitted(doubts.logit(NEAREST), none)
    respond = network.respond
    assert isinstance(respond, Spans)
    fold(respond, found)
    return found


def fitted(margins: Tensor, none: Tensor) -> Calibration:
    """Platt's scaling (Platt 1999), by Newton's method: ``margins`` e, ``none`` e.

    His targets, a little off 0 and 1, keep the scale finite where no text is on the wrong side.
    """
    counts = none.sum(), (~none).sum()
    if not all(counts):
        return Calibration(1.0, 0.0)
    targets = torch.where(none, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2)).double()
    weights = torch.where(none, 1 / counts[0], 1 / counts[1]).double()
    inputs = torch.stack([margins, torch.ones_like(margins)], 1)  # e 2
    theta = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for _ in range(STEPS):
        chance = (inputs @ theta).sigmoid()
        slope = inputs.T @ (weights * (chance - targets))
        bend = inputs.T @ ((weights * chance * (1 - chance)).unsqueeze(1) * inputs)
        step = torch.linalg.solve(bend + 1e-9 * torch.eye(2, dtype=torch.float64), slope)
        theta = theta - step.clamp(-1, 1)
    scale, shift = theta.tolist()
    return Calibration(scale, shift) if scale > 0 else Calibration(1.0, 0.0)


@torch.no_grad()
def fold(respond: Spans, own: Calibration) -> None:
    """Both ends are scored: each takes half of the shift."""
    for part in (respond.ends, respond.none):
        part.weight.mul_(own.scale)
        part.bias.mul_(own.scale)
    respond.none.bias.add_(own.shift / 2)
