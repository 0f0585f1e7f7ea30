"""Calibrate a span reader's probability of "no answer" by Platt scaling.

Of the texts with a calibrated probability of 30 %, three in ten hold no answer.

Shapes: e texts.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.data.text_tasks.batches import TextDataset
from mnemic.predict.windows import predict_spans
from mnemic.respond.spans import SpanHead

NEWTON_STEPS = 100  # more than Newton's method needs to converge
LOGIT_EPS = 1e-15  # distance to 0 and 1 that float64 still resolves


class Calibration(NamedTuple):
    """p(no answer) = sigmoid(``scale`` · (no-answer logit - best logit) + ``shift``)."""

    scale: float
    shift: float


def calibrate_no_answer(network: nn.Module, dataset: TextDataset) -> Calibration:
    """Calibrate a span reader's probability of no answer, in place.

    Fits Platt scaling on texts with and without answers, and folds it into the span head's weights.
    All logits of a window are scaled alike, so the best answer stays the best; only its
    probability changes. Texts with and without an answer have the same total weight, however many
    there are of each.
    """
    spans = predict_spans(network, dataset)
    no_answer = torch.tensor([span.no_answer_probability for span in spans], dtype=torch.float64)
    is_unanswerable = torch.tensor([not example.answers for example in dataset.examples])
    calibration = fit_platt_scaling(no_answer.logit(LOGIT_EPS), is_unanswerable)
    apply_calibration(network.respond, calibration)  # type: ignore[arg-type]
    return calibration


def fit_platt_scaling(logits: Tensor, is_unanswerable: Tensor) -> Calibration:
    """Fit Platt scaling (Platt 1999) by Newton's method: ``logits`` e, ``is_unanswerable`` e.

    Platt's targets, slightly off 0 and 1, keep the scale finite if the classes are separable.
    Returns the identity if a class is missing or the fitted scale is not positive.
    """
    counts = is_unanswerable.sum(), (~is_unanswerable).sum()
    if not all(counts):
        return Calibration(1.0, 0.0)
    targets = torch.where(is_unanswerable, (counts[0] + 1) / (counts[0] + 2), 1 / (counts[1] + 2)).double()
    weights = torch.where(is_unanswerable, 1 / counts[0], 1 / counts[1]).double()
    inputs = torch.stack([logits, torch.ones_like(logits)], 1)  # e 2
    theta = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for _ in range(NEWTON_STEPS):
        probability = (inputs @ theta).sigmoid()
        gradient = inputs.T @ (weights * (probability - targets))
        hessian = inputs.T @ ((weights * probability * (1 - probability)).unsqueeze(1) * inputs)
        step = torch.linalg.solve(hessian + 1e-9 * torch.eye(2, dtype=torch.float64), gradient)
        theta = theta - step.clamp(-1, 1)
    scale, shift = theta.tolist()
    return Calibration(scale, shift) if scale > 0 else Calibration(1.0, 0.0)


@torch.no_grad()
def apply_calibration(respond: SpanHead, calibration: Calibration) -> None:
    """Scale the span head's weights and shift its no-answer bias, in place.

    A span's logit is the sum over start and end: each gets half of the shift.
    """
    for linear in (respond.ends, respond.none):
        linear.weight.mul_(calibration.scale)
        linear.bias.mul_(calibration.scale)
    respond.none.bias.add_(calibration.shift / 2)
