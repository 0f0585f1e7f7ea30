"""Layer distillation: the layer map, real tokens alone, exact values, gradients, mistakes."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.packed import PackedMask
from mnemic.models import WindowBatch, build_model
from mnemic.models.text_model import PackedBatch
from mnemic.objectives import OBJECTIVES
from mnemic.objectives.distillation.layers import score_error, state_error
from mnemic.recipe import ConfigError, build

VOCAB, LENGTHS = 20, (5, 3, 1)


def network(depth: int, width: int, seed: int, *, heads: int = 2, norm: str = "post", **encode: Any) -> Any:
    """A small text model in eval mode, whose weights are far from their start."""
    torch.manual_seed(seed)
    stack = {"kind": "encoder", "depth": depth, "norm": norm, "attention": {"kind": "full", "heads": heads}}
    embeddings = {"kind": "sum", "segments": 2}
    encode = {"kind": "transformer", "embeddings": embeddings, "stack": stack} | encode
    model = {"width": width, "encode": encode, "respond": {"kind": "classes"}}
    built = build_model(model, {"vocab": VOCAB, "max_length": 8, "classes": 2}).eval()
    for weight in built.parameters():
        nn.init.normal_(weight, std=0.5)
    return built


def teacher_of(*arguments: Any, **options: Any) -> Any:
    return network(*arguments, **options).requires_grad_(False)


def layers(student: Any, *teachers: Any, **options: Any) -> Any:
    return build(OBJECTIVES, {"kind": "layers", **options}, teachers=teachers, network=student)


def windows(lengths: tuple[int, ...] = LENGTHS, extra: int = 0) -> Any:
    """Random windows of these lengths, with ``extra`` columns of padding."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(1, VOCAB, (len(lengths), 8), generator=generator)
    mask = torch.arange(max(lengths) + extra) < torch.tensor(lengths).unsqueeze(1)
    tokens = rows[:, : mask.shape[1]]
    return SimpleNamespace(inputs=WindowBatch(tokens, mask, (tokens % 2) * mask, mask))


def one_text(batch: Any, number: int) -> tuple[Tensor, Tensor]:
    """The tokens and segments of one window, without padding, 1 n."""
    inputs = batch.inputs
    real = inputs.mask[number]
    return inputs.tokens[number][real].unsqueeze(0), inputs.segment_ids[number][real].unsqueeze(0)


@torch.no_grad()
def run_layers(encode: Any, tokens: Tensor, segments: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Run an encoder layer by layer: all its states (n d) and scores (h n n) on one text."""
    mask = torch.ones_like(tokens, dtype=torch.bool)
    x = encode.embeddings(tokens, mask, segments=segments)
    states, scores = [x[0]], []
    for block in encode.stack.blocks:
        query_input = block.around_attention.pre_norm(x)[0]
        project = block.attention.project
        query, key = (linear(query_input).unflatten(-1, (project.heads, -1)) for linear in (project.query, project.key))
        scores.append(torch.einsum("qhc,khc->hqk", query, key) / query.shape[-1] ** 0.5)
        x = block(x, mask[:, None, None])
        states.append(x[0])
    return states, scores


@torch.no_grad()
def slow_losses(student: Any, teacher: Any, projection: Tensor, batch: Any, layer_map: list[int]) -> dict[str, float]:
    """Each loss token by token; ``layer_map`` has the teacher's layer of each of the student's."""
    totals, num_tokens = {"attention": 0.0, "hidden": 0.0, "embeddings": 0.0}, 0
    for number in range(len(batch.inputs.tokens)):
        text = one_text(batch, number)
        states, scores = run_layers(student.encode, *text)
        teacher_states, teacher_scores = run_layers(teacher.encode, *text)
        for token in range(text[0].shape[1]):
            num_tokens += 1
            pairs = [(0, 0), *((layer + 1, target + 1) for layer, target in enumerate(layer_map))]
            for layer, target in pairs:
                error = projection @ states[layer][token] - teacher_states[target][token]
                totals["hidden" if layer else "embeddings"] += float(error.square().mean())
            for layer, target in enumerate(layer_map):
                difference = scores[layer][:, token] - teacher_scores[target][:, token]  # h n
                totals["attention"] += float(difference.square().mean())
    return {name: total / num_tokens for name, total in totals.items()}


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("depths", "layer_map"), [((2, 4), [1, 3]), ((1, 3), [2]), ((2, 2), [0, 1]), ((2, 6), [2, 5])])
def test_losses_equal_their_slow_twin(norm: str, depths: tuple[int, int], layer_map: list[int]) -> None:
    """With another width; the attention of layer i has layer i·k + k - 1 as its target."""
    student, teacher = network(depths[0], 8, 0, norm=norm), teacher_of(depths[1], 12, 1, norm=norm)
    loss = layers(student, teacher, attention=0.5, hidden=2.0, embeddings=3.0)
    nn.init.normal_(loss.projection.weight)
    result = loss(student, windows())
    expected = slow_losses(student, teacher, loss.projection.weight, windows(), layer_map)
    means = {name: float(mean) for name, mean in result.means.items()}
    assert means == pytest.approx(expected, rel=1e-4)
    weighted = 0.5 * expected["attention"] + 2 * expected["hidden"] + 3 * expected["embeddings"]
    assert (result.total / result.num_targets).item() == pytest.approx(weighted, rel=1e-4)
    assert int(result.num_targets) == sum(LENGTHS)


def test_scores_by_hand() -> None:
    """Two tokens and one of padding: only four of nine scores count, -inf never does."""
    hidden = float("-inf")
    scores = torch.tensor([[[[1.0, 2.0, hidden], [3.0, 4.0, hidden], [9.0, 9.0, hidden]]]], requires_grad=True)
    teacher_scores = torch.tensor([[[[1.0, 0.0, hidden], [0.0, 0.0, hidden], [0.0, 0.0, hidden]]]])
    mask = torch.tensor([[True, True, False]])
    error = score_error(scores, teacher_scores, mask)
    assert error.item() == (0 + 4) / 2 + (9 + 16) / 2
    error.backward()
    assert scores.grad is not None
    assert torch.equal(scores.grad, torch.tensor([[[[0.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]]]))
    states = torch.tensor([[[1.0, 2.0], [0.0, 4.0], [7.0, 7.0]]])
    assert state_error(states, torch.zeros(1, 3, 2), mask).item() == (1 + 4) / 2 + 16 / 2


def test_padding_the_batch_and_packing_change_nothing() -> None:
    student, teacher = network(1, 8, 0), teacher_of(2, 12, 1)
    loss = layers(student, teacher)
    whole = loss(student, windows()).total
    torch.testing.assert_close(loss(student, windows(extra=3)).total, whole)
    shards = [
        SimpleNamespace(inputs=WindowBatch(*(value[n : n + 1] for value in windows().inputs[:4]))) for n in (0, 1, 2)
    ]
    parts = [loss(student, shard) for shard in shards]
    torch.testing.assert_close(sum(part.total for part in parts), whole)  # accumulated gradients are exact
    assert sum(int(part.num_targets) for part in parts) == sum(LENGTHS)
    texts = [one_text(windows(), number) for number in (2, 1, 0)]  # packed: the shortest first
    tokens, segments = (torch.cat(ids, 1) for ids in zip(*texts))
    packed = PackedMask.from_lengths([1, 3, 5], torch.device("cpu"))
    batch = PackedBatch(tokens, packed, segments, packed.token_positions(), tokens > 0, tokens, tokens > 0)
    torch.testing.assert_close(loss(student, SimpleNamespace(inputs=batch)).total, whole)
    inputs = windows().inputs
    corpus = SimpleNamespace(tokens=inputs.tokens, mask=inputs.mask, segments=inputs.segment_ids)
    torch.testing.assert_close(loss(student, corpus).total, whole)


def test_a_student_equal_to_its_teacher_has_no_loss() -> None:
    """The projection starts as the identity where the widths are equal."""
    student, teacher = network(2, 8, 0), teacher_of(2, 8, 0)
    result = layers(student, teacher)(student, windows())
    result.total.backward()
    assert result.total.item() == 0
    assert all(weight.grad is None or not weight.grad.any() for weight in student.parameters())


def test_gradients_are_those_of_the_loss() -> None:
    """Finite differences; the teacher and the head of the student have none."""
    student, teacher = network(1, 8, 0), teacher_of(2, 12, 1)
    loss = layers(student, teacher)
    loss(student, windows()).total.backward()
    query = student.encode.stack.blocks[0].attention.project.query.weight
    for weight in (query, student.encode.embeddings.tokens, loss.projection.weight):
        step = torch.zeros_like(weight)
        step[3, 1] = 1e-2
        totals = []
        for sign in (1, -1):
            with torch.no_grad():
                weight += sign * step
                totals.append(float(loss(student, windows()).total))
                weight -= sign * step
        assert float(weight.grad[3, 1]) == pytest.approx((totals[0] - totals[1]) / 2e-2, rel=1e-2)
    assert all(weight.grad is not None for name, weight in student.encode.named_parameters() if "out" not in name)
    assert all(weight.grad is None for weight in [*teacher.parameters(), *student.respond.parameters()])


@pytest.mark.parametrize("name", ["attention", "hidden", "embeddings"])
def test_a_weight_of_zero_leaves_a_loss_out(name: str) -> None:
    student, teacher = network(1, 8, 0), teacher_of(2, 12, 1)
    result = layers(student, teacher, **{name: 0})(student, windows())
    assert set(result.means) == {"attention", "hidden", "embeddings"} - {name}
    assert (result.total / result.num_targets).item() == pytest.approx(sum(map(float, result.means.values())), rel=1e-5)


def test_only_the_projection_belongs_to_the_objective() -> None:
    student = network(1, 8, 0)
    objective = layers(student, teacher_of(2, 12, 1))
    assert {name: tuple(weight.shape) for name, weight in objective.named_parameters()} == {
        "projection.weight": (12, 8)
    }


def test_mistakes_are_named() -> None:
    student, teacher = network(2, 8, 0), teacher_of(4, 8, 1)
    with pytest.raises(ConfigError, match=r"layers of one teacher, and teacher.folder names 2"):
        layers(student, teacher, teacher)
    with pytest.raises(ConfigError, match=r"the teacher's 3 layers are no multiple of the student's 2: set model\."):
        layers(student, teacher_of(3, 8, 1))
    with pytest.raises(ConfigError, match=r"the teacher's 1 layers are no multiple of the student's 2"):
        layers(student, teacher_of(1, 8, 1))
    other_heads = teacher_of(4, 8, 1, heads=4)
    with pytest.raises(ConfigError, match=r"has 2 attention heads, its teacher 4: set .*heads=4, or .*attention=0"):
        layers(student, other_heads)
    assert layers(student, other_heads, attention=0)(student, windows()).total.item() > 0
    recurrent = build_model(
        {"width": 8, "encode": {"kind": "recurrent"}, "respond": {"kind": "classes"}},
        {"vocab": VOCAB, "max_length": 8, "classes": 2},
    )
    with pytest.raises(ConfigError, match=r"layers compares Transformers: model.encode.kind of the student is not"):
        layers(recurrent, teacher)
    with pytest.raises(ConfigError, match="has to be above 0"):
        layers(student, teacher, attention=0, hidden=0, embeddings=0)
