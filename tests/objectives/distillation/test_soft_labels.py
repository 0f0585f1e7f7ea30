"""Soft labels: exact values, the factor temperature², several teachers, masked tokens."""

from collections import namedtuple
from math import log
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives import OBJECTIVES
from mnemic.objectives.distillation.soft_labels import HARD_LOSSES, soft_label_loss
from mnemic.recipe import ConfigError, build
from mnemic.respond.spans import SpanHead

Batch = namedtuple("Batch", ["inputs", "targets", "owner"])
Output = namedtuple("Output", ["logits"])


class Fixed(nn.Module):
    """A network whose logits are its weights, whatever it reads."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits.clone())

    def forward(self, inputs: Any) -> Output:
        return Output(self.logits)


def texts(targets: Tensor) -> Batch:
    """A batch of texts with one window each."""
    return Batch(None, targets, torch.arange(len(targets)))


def distil(hard: str, *teachers: nn.Module, **options: Any) -> Any:
    return build(OBJECTIVES, {"kind": "distil", "hard": {"kind": hard}, **options}, teachers=teachers)


def test_soft_labels_by_hand() -> None:
    """At temperature 2, logits 2·ln 3 and 0 are probabilities 3/4 and 1/4."""
    teacher = Fixed(torch.tensor([[2 * log(3), 0.0]]))
    student = Fixed(torch.tensor([[0.0, 2 * log(4)]]))  # 1/5 and 4/5
    loss = distil("classes", teacher, soft_weight=0.25)(student, texts(torch.tensor([1])))
    soft = -4 * (0.75 * log(1 / 5) + 0.25 * log(4 / 5))
    hard = -log(16 / 17)  # at temperature 1: 1/17 and 16/17
    assert loss.total.item() == pytest.approx(0.75 * hard + 0.25 * soft, abs=1e-5)
    assert int(loss.num_targets) == 1
    assert {name: float(mean) for name, mean in loss.means.items()} == pytest.approx({"hard": hard, "soft": soft})


def test_the_gradient_keeps_its_size_at_any_temperature() -> None:
    """T² · CE has the gradient T (softmax(s/T) - softmax(t/T)), which tends to (s - t) / c."""
    torch.manual_seed(0)
    student_logits, teacher_logits = torch.randn(3, 5), torch.randn(3, 5)
    batch = texts(torch.zeros(3, dtype=torch.long))
    for temperature in (0.5, 1.0, 4.0):
        student = Fixed(student_logits)
        distil("classes", Fixed(teacher_logits), soft_weight=1.0, temperature=temperature)(
            student, batch
        ).total.backward()
        probabilities = [(logits / temperature).softmax(-1) for logits in (student_logits, teacher_logits)]
        torch.testing.assert_close(student.logits.grad, temperature * (probabilities[0] - probabilities[1]))
    student = Fixed(student_logits)
    distil("classes", Fixed(teacher_logits), soft_weight=1.0, temperature=1000.0)(student, batch).total.backward()
    difference = student_logits - teacher_logits
    limit = (difference - difference.mean(-1, keepdim=True)) / 5
    torch.testing.assert_close(student.logits.grad, limit, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_a_student_equal_to_its_teacher_has_no_gradient(temperature: float) -> None:
    torch.manual_seed(0)
    logits = torch.randn(4, 3)
    student = Fixed(logits)
    loss = distil("classes", Fixed(logits), soft_weight=1.0, temperature=temperature)(
        student, texts(torch.tensor([0, 1, 2, 0]))
    )
    loss.total.backward()
    assert loss.total.item() > 0  # the entropy of the teacher
    assert student.logits.grad is not None
    assert float(student.logits.grad.abs().max()) < 1e-6


def test_a_number_is_compared_by_squared_error() -> None:
    student, teachers = Fixed(torch.tensor([[1.0], [5.0]])), [Fixed(torch.full((2, 1), x)) for x in (2.0, 4.0)]
    targets = torch.tensor([0.0, IGNORE])
    loss = distil("numbers", *teachers, soft_weight=0.5, temperature=7.0)(student, texts(targets))
    assert loss.total.item() == pytest.approx(0.5 * 1 + 0.5 * 4)  # (1 - 0)² and (1 - mean of 2 and 4)²
    assert int(loss.num_targets) == 1


def test_the_squared_error_of_logits_by_hand() -> None:
    """(1 - 3)² + (2 + 1)² from the teachers' mean; the text without a target does not count."""
    student = Fixed(torch.tensor([[1.0, 2.0], [9.0, 9.0]]))
    teachers = [Fixed(torch.tensor([logits, [0.0, 0.0]])) for logits in ([2.0, -1.0], [4.0, -1.0])]
    objective = distil("classes", *teachers, soft_weight=1.0, loss="logits", temperature=7.0)
    loss = objective(student, texts(torch.tensor([0, IGNORE])))
    assert loss.total.item() == pytest.approx(4 + 9)
    assert int(loss.num_targets) == 1
    loss.total.backward()
    torch.testing.assert_close(student.logits.grad, torch.tensor([[-4.0, 6.0], [0.0, 0.0]]))


def test_logits_of_windows_are_merged_and_tags_compared_token_by_token() -> None:
    batch = Batch(None, torch.tensor([1]), torch.tensor([0, 0]))
    logits = torch.tensor([[1.0, 0.0], [3.0, 0.0]])  # 2 and 0 on average
    objective = distil("classes", Fixed(torch.zeros(2, 2)), soft_weight=1.0, loss="logits")
    assert objective(Fixed(logits), batch).total.item() == pytest.approx(4)
    tags = torch.tensor([[[1.0, 2.0, 0.0], [5.0, 5.0, 5.0]]])  # 1 2 3
    objective = distil("tags", Fixed(torch.zeros(1, 2, 3)), soft_weight=1.0, loss="logits")
    batch = Batch(None, torch.tensor([[0, IGNORE]]), torch.tensor([0]))
    assert objective(Fixed(tags), batch).total.item() == pytest.approx(1 + 4)


def test_windows_are_merged_before_they_are_compared() -> None:
    """Two windows of one text give the loss of their mean; the teacher's windows, too."""
    torch.manual_seed(0)
    student, teacher, targets = torch.randn(3, 2), torch.randn(3, 2), torch.tensor([0, 1])
    batch = Batch(None, targets, torch.tensor([0, 0, 1]))

    def merge(logits: Tensor) -> Tensor:
        return torch.stack([logits[:2].mean(0), logits[2]])

    loss = distil("classes", Fixed(teacher))(Fixed(student), batch)
    merged = distil("classes", Fixed(merge(teacher)))(Fixed(merge(student)), texts(targets))
    torch.testing.assert_close(loss.total, merged.total)


def slow_span_loss(student: Tensor, teachers: list[Tensor], targets: Tensor, temperature: float) -> float:
    """The mean over ends of T² · CE, number by number."""
    losses = []
    for window, end in ((w, e) for w in range(len(student)) for e in range(2) if targets[w, e] != IGNORE):
        rows = [(t[window, end].double() / temperature).exp() for t in teachers]
        probabilities = sum(row / row.sum() for row in rows) / len(rows)
        scores = (student[window, end].double() / temperature).exp()
        columns = [c for c in range(student.shape[-1]) if scores[c] > 0]
        losses.append(-sum(float(probabilities[c] * (scores[c] / scores.sum()).log()) for c in columns))
    return temperature**2 * sum(losses) / len(losses)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_both_ends_and_no_answer_have_soft_labels(temperature: float) -> None:
    """Logits of real heads, with masked tokens and a window of padding; the slow twin agrees."""
    torch.manual_seed(0)
    states, mask = torch.randn(4, 6, 8), torch.rand(4, 6) < 0.7
    student, *teachers = [SpanHead(8, dropout=0.0)(None, None, states, mask).detach() for _ in range(3)]
    targets = torch.tensor([[0, 0], [2, 3], [1, 1], [IGNORE, IGNORE]])
    network = Fixed(student)
    loss = distil("spans", *map(Fixed, teachers), soft_weight=1.0, temperature=temperature)(
        network, Batch(None, targets, torch.arange(4))
    )
    expected = slow_span_loss(student, teachers, targets, temperature)
    assert (loss.total / loss.num_targets).item() == pytest.approx(expected, rel=1e-5)
    assert float(loss.num_targets) == 3  # windows, as without a teacher
    loss.total.backward()
    gradient = network.logits.grad
    assert gradient is not None
    assert bool(gradient.isfinite().all())
    assert not gradient[3].any()  # padding
    assert not gradient[:, :, 1:].masked_select(~mask.unsqueeze(1)).any()  # tokens that are no answer
    assert bool((gradient[:3, :, 0] != 0).all())  # "no answer"


def test_a_sure_teacher_is_a_hard_label() -> None:
    torch.manual_seed(0)
    student, targets = torch.randn(3, 2, 5), torch.tensor([[0, 0], [2, 4], [1, 1]])
    sure = 1e4 * nn.functional.one_hot(targets, 5).float()
    batch = Batch(None, targets, torch.arange(3))
    soft = distil("spans", Fixed(sure), soft_weight=1.0, temperature=1.0)(Fixed(student), batch)
    hard = build(OBJECTIVES, {"kind": "spans"})(Fixed(student), batch)
    torch.testing.assert_close(soft.total, hard.total)


@pytest.mark.parametrize("kind", ["classes", "numbers", "spans", "tags"])
def test_without_soft_weight_it_is_the_hard_loss(kind: str) -> None:
    torch.manual_seed(0)
    shape, targets = {
        "classes": ((4, 3), torch.tensor([0, 2, 1, IGNORE])),
        "numbers": ((4, 1), torch.tensor([0.5, 2.0, 1.0, IGNORE])),
        "spans": ((4, 2, 6), torch.tensor([[0, 0], [2, 3], [1, 1], [IGNORE, IGNORE]])),
        "tags": ((4, 2, 6), torch.tensor([[0, 0], [2, 3], [1, IGNORE], [IGNORE, IGNORE]])),
    }[kind]
    student, teacher = Fixed(torch.randn(shape)), Fixed(torch.randn(shape))
    batch = Batch(None, targets, torch.arange(4))
    loss = distil(kind, teacher, soft_weight=0.0)(student, batch)
    expected = build(OBJECTIVES, {"kind": kind})(student, batch)
    torch.testing.assert_close(loss.total, expected.total)
    torch.testing.assert_close(loss.num_targets, expected.num_targets)


def test_several_teachers_are_the_mean_of_their_probabilities() -> None:
    """Not of their logits: 9/10 and 1/2 give 7/10."""
    teachers = [torch.tensor([[log(9.0), 0.0]]), torch.zeros(1, 2)]
    student = torch.tensor([[log(4.0), 0.0]])  # 4/5 and 1/5
    loss = soft_label_loss(student, teachers, texts(torch.tensor([0])), temperature=1.0)
    assert loss.total.item() == pytest.approx(-(0.7 * log(0.8) + 0.3 * log(0.2)), abs=1e-6)
    same = soft_label_loss(student, teachers[:1] * 3, texts(torch.tensor([0])), temperature=1.0)
    torch.testing.assert_close(same, soft_label_loss(student, teachers[:1], texts(torch.tensor([0])), temperature=1.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "distil needs hard"),
        ({"hard": {"kind": "masked"}}, f"no kind 'masked' here.*known kinds: {', '.join(HARD_LOSSES)}"),
        ({"hard": {"kind": "spans"}, "temperature": 0}, "a temperature above 0, not"),
        ({"hard": {"kind": "spans"}, "soft_weight": 1.5}, "a soft_weight from 0 to 1 .* not soft_weight = 1.5"),
        ({"hard": {"kind": "spans"}, "loss": "logits"}, r'"logits" is for classes, numbers, tags; .* for \'spans\''),
        ({"hard": {"kind": "classes"}, "loss": "square"}, "distil.loss is .*, not 'square'"),
        ({"hard": {"kind": "spans"}, "teachers": []}, "distil does not take 'teachers'"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(OBJECTIVES, {"kind": "distil", **options}, teachers=())
