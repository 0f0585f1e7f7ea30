"""Distillation: a student learns from the soft labels of trained teachers.

Shapes: b texts or windows, c classes, columns or tags, … one axis more for spans and tags.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.models.evaluating import evaluating
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.distillation.soft_weight import SoftLossSchedule
from mnemic.objectives.retrieve_and_read import RetrieveAndReadLoss
from mnemic.objectives.text_tasks import ClassLoss, NumberLoss, SpanLoss, TagLoss, squared_error
from mnemic.recipe import ConfigError, build, join_words, kind_name
from mnemic.respond.merge_windows import average_windows

# Losses of right labels, which call the network once and have ``batch.targets``.
HARD_LOSSES: dict[str, Callable[..., Any]] = {
    "classes": ClassLoss,
    "numbers": NumberLoss,
    "retrieve-and-read": RetrieveAndReadLoss,
    "spans": SpanLoss,
    "tags": TagLoss,
}

LOGIT_LOSSES = ("classes", "numbers", "tags")  # whose logits are all finite


class DistilLoss:
    """The loss of the right labels, mixed with a loss of teachers' soft labels.

    ``(1 - soft_weight) · hard + soft_weight · soft`` (Hinton et al. 2015, arXiv:1503.02531, section
    2). ``hard`` is the objective of the data; ``soft`` is ``temperature``² times the cross-entropy
    between the probabilities of teacher and student, both at that temperature: without the factor
    its gradient would shrink as the temperature grows. The soft labels of several teachers are the
    mean of their probabilities. A number's soft label is the teachers' mean prediction, compared by
    squared error, without a temperature. For answers both ends have soft labels, of which "no
    answer" is one; ``retrieve-and-read`` has them for its answers, not for its retrieval. With
    ``loss="logits"`` the soft loss of classes, numbers and tags is the squared distance to the
    teachers' mean logits (Tang et al. 2019, arXiv:1903.12136), without a temperature.

    For the first ``delay`` steps of a phase the loss is that of the labels alone; then
    ``soft_weight`` is reached within ``ramp_up`` steps. Teachers may read more of each example than
    the student does (``batch.teacher``; privileged features, Xu et al. 2020, arXiv:1907.05171).
    """

    needs_teacher = True
    wraps = "hard"

    def __init__(
        self,
        *,
        hard: Mapping[str, Any],
        soft_weight: float = 0.5,
        temperature: float = 2.0,
        loss: Literal["probabilities", "logits"] = "probabilities",
        delay: int = 0,
        ramp_up: int = 0,
        teachers: Sequence[nn.Module] = (),
    ) -> None:
        if not 0 <= soft_weight <= 1 or not temperature > 0:
            values = f"soft_weight = {soft_weight}, temperature = {temperature}"
            raise ConfigError(f"distil takes a soft_weight from 0 to 1 and a temperature above 0, not {values}")
        if loss == "logits" and kind_name(hard) not in LOGIT_LOSSES:
            known = join_words(LOGIT_LOSSES)
            raise ConfigError(f'distil.loss = "logits" is for {known}; leave it out for {kind_name(hard)!r}')
        self.compare = compare_logits if loss == "logits" else partial(soft_label_loss, temperature=temperature)
        self.hard = build(HARD_LOSSES, hard)
        self.soft_weight = SoftLossSchedule(soft_weight, delay=delay, ramp_up=ramp_up, name="distil_step")
        self.teachers = tuple(teachers)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        recorder = OutputRecorder(network)
        hard = self.hard(recorder, batch, carried)
        losses, weight = {"hard": hard}, self.soft_weight.read(carried)
        if weight:  # else the teachers need not read
            teacher_batch = select_teacher_batch(batch)
            teacher_inputs = getattr(teacher_batch, "reading_inputs", teacher_batch.inputs)
            teacher_logits = [compute_frozen(teacher, teacher_inputs).logits for teacher in self.teachers]
            losses["soft"] = self.compare(recorder.output.logits, teacher_logits, batch, teacher_batch)
        loss = sum_weighted(losses, {"hard": 1 - weight, "soft": weight})
        means = {**(loss.means or {}), **(hard.means or {})}
        return loss._replace(carried=self.soft_weight.count(hard.carried), means=means)


class OutputRecorder:
    """Call a network and keep its last output, for a second loss."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.output: Any = None

    def __call__(self, inputs: Any) -> Any:
        self.output = self.network(inputs)
        return self.output


@torch.no_grad()
def compute_frozen(teacher: nn.Module, inputs: Any) -> Any:
    """Compute a teacher's output without dropout and without gradients, even while it learns."""
    with evaluating(teacher):
        return teacher(inputs)


def select_teacher_batch(batch: Any) -> Any:
    """Return the batch as teachers read it, which may be more than the student's."""
    teacher_batch = getattr(batch, "teacher", None)
    return batch if teacher_batch is None else teacher_batch


def soft_label_loss(
    logits: Tensor, teacher_logits: Sequence[Tensor], batch: Any, teacher_batch: Any = None, *, temperature: float
) -> Loss:
    """Compare a student with its teachers at every target that is not IGNORE.

    Windows of a text are merged where the text has one target; then teachers may have other windows
    of it, those of ``teacher_batch``. Targets say where to compare; their values are not used.
    """
    logits, teacher_logits = merge_windows(logits, teacher_logits, batch, teacher_batch)
    is_valid = batch.targets != IGNORE
    if batch.targets.is_floating_point():
        predictions = torch.stack(tuple(teacher_logits)).mean(0).squeeze(-1)
        return Loss(*squared_error(logits, predictions.masked_fill(~is_valid, IGNORE)))
    return Loss(*soft_cross_entropy(logits, average_probabilities(teacher_logits, temperature), is_valid, temperature))


def compare_logits(logits: Tensor, teacher_logits: Sequence[Tensor], batch: Any, teacher_batch: Any = None) -> Loss:
    """Sum the squared distances to the teachers' mean logits.

    Every target that is not IGNORE counts.
    """
    logits, teacher_logits = merge_windows(logits, teacher_logits, batch, teacher_batch)
    is_valid = batch.targets != IGNORE
    distances = (logits - torch.stack(tuple(teacher_logits)).mean(0)).square().sum(-1)  # b …
    return Loss((distances * is_valid).sum(), is_valid.sum())


def merge_windows(
    logits: Tensor, teacher_logits: Sequence[Tensor], batch: Any, teacher_batch: Any = None
) -> tuple[Tensor, Sequence[Tensor]]:
    """Merge the windows of each text, if a text has one target.

    Teachers may have other windows of it, those of ``teacher_batch``.
    """
    if batch.targets.dim() > 1:
        return logits, teacher_logits
    num_texts, teacher_owner = len(batch.targets), (teacher_batch or batch).owner
    merged = [average_windows(values, teacher_owner, num_texts) for values in teacher_logits]
    return average_windows(logits, batch.owner, num_texts), merged


def average_probabilities(teacher_logits: Sequence[Tensor], temperature: float) -> Tensor:
    """Average the teachers' probabilities at a temperature, b … c."""
    return torch.stack([(logits.float() / temperature).softmax(-1) for logits in teacher_logits]).mean(0)


def soft_cross_entropy(
    logits: Tensor, probabilities: Tensor, is_valid: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy with soft labels times temperature², and its count.

    ``logits`` and ``probabilities`` b … c, ``is_valid`` b …
    """
    log_probs = (logits.float() / temperature).log_softmax(-1)
    log_probs = log_probs.masked_fill(probabilities == 0, 0)  # masked tokens: 0 times -infinity
    losses = -(probabilities * log_probs).sum(-1)  # b …
    return temperature**2 * (losses * is_valid).sum(), is_valid.sum()
