"""Slot rewriting against its equations in plain loops, its stop, and what only it can do.

Shapes: b batch, n sentences, m queries, s slots, r rows, k steps, h heads, d width.
"""

from math import erf, exp, log, sqrt
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.overrides import TorchFunctionMode

from mnemic.memory import Reading
from mnemic.memory.slot_rewriting import RewritingStep, SlotRewritingMemory, build_slot_geometry
from mnemic.recipe import ConfigError

D, SLOTS = 6, 5
Vector = list[float]


# Reference loops -------------------------------------------------------------------------------


def dot(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def add(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def scale(factor: float, vector: Vector) -> Vector:
    return [factor * number for number in vector]


def sigmoid(number: float) -> float:
    return 1 / (1 + exp(-number))


def apply(layer: Any, vector: Vector) -> Vector:
    biases = [0.0] * len(layer.weight) if layer.bias is None else layer.bias.tolist()
    return [dot(row, vector) + bias for row, bias in zip(layer.weight.tolist(), biases, strict=True)]


def normalize(layer: nn.LayerNorm, vector: Vector) -> Vector:
    mean = sum(vector) / len(vector)
    variance = sum((number - mean) ** 2 for number in vector) / len(vector)
    weights, biases = layer.weight.tolist(), layer.bias.tolist()
    return [(x - mean) / sqrt(variance + layer.eps) * w + b for x, w, b in zip(vector, weights, biases, strict=True)]


def project(step: RewritingStep, row: Vector, part: int, head: int) -> Vector:
    """Compute a head's query (part 0), key (1) or value (2) of a row."""
    size = len(row) // step.heads
    return apply(step.project, row)[part * len(row) + head * size :][:size]


def read_nearest(logits: list[float], order: list[int]) -> dict[int, float]:
    """Look at slots in order; stop at the first that matches."""
    weights, is_looking = {}, 1.0
    for slot in order:
        weights[slot] = is_looking * sigmoid(logits[slot])
        is_looking *= 1 - sigmoid(logits[slot])
    return weights


def read_all(logits: list[float], slots: list[int]) -> dict[int, float]:
    """Share 1 among the slots, and nothing, whose score is 0."""
    total = 1 + sum(exp(logits[slot]) for slot in slots)
    return {slot: exp(logits[slot]) / total for slot in slots}


def reference_weights(step: RewritingStep, rows: list[Vector], row: int, head: int) -> dict[int, float]:
    """Compute what a head of a row reads; the last row is the question."""
    question = len(rows) - 1
    query = project(step, rows[row], 0, head)
    products = [dot(query, project(step, slot, 1, head)) / sqrt(len(query)) for slot in rows[:-1]]
    behind = list(range(row))[::-1]
    ahead = list(range(question)) if row == question else list(range(row + 1, question))
    if head < step.num_behind + step.num_ahead:
        logits = [product + step.nearest_bias[head].item() for product in products]
        return read_nearest(logits, behind if head < step.num_behind else ahead)
    assert step.slopes is not None
    slopes = [log(1 + exp(side[head - step.num_behind - step.num_ahead].item())) for side in step.slopes]
    scores = [
        product - slopes[0 if slot < row else 1] * log(1 + abs(row - slot)) for slot, product in enumerate(products)
    ]
    return read_all(scores, [slot for slot in range(question) if slot != row])


def reference_step(step: RewritingStep, rows: list[Vector]) -> tuple[list[Vector], list[dict[int, float]]]:
    """Rewrite all rows, or the question alone; return what its heads read, too."""
    context = [normalize(step.norm_read, row) for row in rows]
    question = len(rows) - 1
    new_rows, question_reads = list(rows), list[dict[int, float]]()
    for row in range(question + 1) if step.rewrite else [question]:
        mixed: Vector = []
        for head in range(step.heads):
            weights = reference_weights(step, context, row, head)
            if row == question:
                question_reads.append(weights)
            values = [project(step, state, 2, head) for state in context]
            output = add([0.0] * len(values[0]), *(scale(weight, values[slot]) for slot, weight in weights.items()))
            if row != question:
                assert step.question_bias is not None
                query, key = project(step, context[row], 0, head), project(step, context[question], 1, head)
                match = sigmoid(dot(query, key) / sqrt(len(key)) + step.question_bias[head].item())
                output = add(output, scale(match, values[question]))
            mixed += output
        state = add(rows[row], apply(step.join, mixed))
        hidden = apply(step.widen, normalize(step.norm_feed, state))
        hidden = [number * (1 + erf(number / sqrt(2))) / 2 for number in hidden]
        new_rows[row] = add(state, apply(step.narrow, hidden))
    return new_rows, question_reads


class Expected(NamedTuple):
    """What the loops compute for one question."""

    found: Vector
    weights: list[list[Vector]]  # k h s
    shares: Vector  # k


def reference_read(memory: SlotRewritingMemory, states: list[Vector], question: Vector) -> Expected:
    slots = [normalize(memory.norm_sentence, state) for state in states[-memory.num_slots :]]
    rows = [*slots, normalize(memory.norm_question, question)]
    found, running, shares, weights = [0.0] * len(question), 1.0, [], []
    for number in range(memory.num_steps):
        rows, reads = reference_step(memory.step, rows)
        output = normalize(memory.norm_found, rows[-1])
        probability = float(number == memory.num_steps - 1)
        if memory.stop is not None and not probability:
            probability = sigmoid(apply(memory.stop, output)[0])
        weights.append([[running * read.get(slot, 0.0) for slot in range(len(slots))] for read in reads])
        shares.append(running * probability)
        found = add(found, scale(shares[-1], output))
        running -= shares[-1]
    return Expected(found, weights, shares)


def make_memory(**options: Any) -> SlotRewritingMemory:
    """Build a memory in double precision, with weights far from those at the start."""
    torch.manual_seed(0)
    memory = SlotRewritingMemory(D, slots=SLOTS, **options).double().eval()
    with torch.no_grad():
        for weight in memory.parameters():
            weight.add_(torch.randn_like(weight) * 0.5)
    return memory


def read_all_real(memory: SlotRewritingMemory, states: Tensor, query: Tensor) -> Reading:
    """Write sentences (b n d), each real, and read with questions (b m d)."""
    sentences, questions = (tensor.unsqueeze(2).expand(-1, -1, 2, -1) for tensor in (states, query))
    mask = torch.ones(states.shape[:2], dtype=torch.bool)
    return memory.read(memory.write(memory.empty(len(states), sentences), sentences, mask).state, questions)


OPTIONS: list[dict[str, Any]] = [
    {"steps": 1, "heads": 1, "rewrite": False},  # one read of one head
    {"steps": 1, "heads": 3, "rewrite": False, "stop": False},  # of several
    {"steps": 3, "heads": 2, "rewrite": False},
    {"steps": 1, "heads": 6},
    {"steps": 3, "heads": 6},
    {"steps": 3, "heads": 2, "stop": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("count", [1, 3, SLOTS, SLOTS + 3])
def test_a_read_equals_the_equations(options: dict[str, Any], count: int) -> None:
    memory = make_memory(**options)
    states, query = torch.randn(1, count, D).double(), torch.randn(1, 2, D).double()
    with torch.no_grad():
        reading = read_all_real(memory, states, query)
        for number in range(2):
            expected = reference_read(memory, states[0].tolist(), query[0, number].tolist())
            torch.testing.assert_close(reading.found[0, number], torch.tensor(expected.found).double())
            torch.testing.assert_close(reading.weights[0, :, :, number], torch.tensor(expected.weights).double())
            if memory.stop is None:
                assert reading.gates is reading.steps is None
                continue
            torch.testing.assert_close(reading.gates[0, :, number], torch.tensor(expected.shares).double())
            steps = sum(number * share for number, share in enumerate(expected.shares, start=1))
            assert reading.steps[0, number].item() == pytest.approx(steps)


# Shared weights and rewriting ------------------------------------------------------------------


def test_steps_share_their_weights() -> None:
    def count(**options: Any) -> int:
        return sum(weight.numel() for weight in SlotRewritingMemory(16, **options).parameters())

    assert count(steps=2) == count(steps=6) == count(steps=20)
    assert count(steps=1) == count(steps=6, stop=False)


def test_slots_are_rewritten_by_each_other_unless_that_is_off() -> None:
    """The first sentence decides what the second one becomes, or only what is read of it."""
    mask = torch.ones(1, 1, 2, dtype=torch.bool)
    for rewrite in (True, False):
        step = make_memory(rewrite=rewrite, heads=2).step
        geometry = build_slot_geometry(mask, torch.float64)
        rows, changed = torch.randn(2, 1, 1, 3, D).double()
        changed[:, :, 1:] = rows[:, :, 1:]
        rewritten, other = (step(states, geometry, step.distance_penalty(geometry))[0] for states in (rows, changed))
        assert torch.equal(other[:, :, 1], rewritten[:, :, 1]) == (not rewrite)
        assert torch.equal(rewritten[:, :, 1], rows[:, :, 1]) == (not rewrite)
        assert not torch.equal(other[:, :, 2], rewritten[:, :, 2])


# Nearest matches -------------------------------------------------------------------------------


def weigh(step: RewritingStep, products: Tensor) -> Tensor:
    """Compute the weights (h r s) of products (h r s), with all slots filled."""
    geometry = build_slot_geometry(torch.ones(1, 1, products.shape[-1], dtype=torch.bool), products.dtype)
    with torch.no_grad():
        return step.weigh_slots(products[None, None], geometry, step.distance_penalty(geometry))[1][0, 0]


def test_of_equal_slots_the_latest_or_the_earliest_is_read() -> None:
    """One head looks back, one ahead; the question has all slots on both sides."""
    step = RewritingStep(8, heads=3, rewrite=True, dropout=0.0)
    products = torch.full((3, 6, 5), -60.0)
    for row, slot in [(5, 1), (5, 3), (4, 1), (4, 3), (2, 1), (2, 3), (0, 3)]:
        products[..., row, slot] = 60.0
    weights = weigh(step, products)
    behind, ahead = weights[0].round(), weights[1].round()
    assert [row.nonzero().flatten().tolist() for row in behind] == [[], [], [1], [], [3], [3]]
    assert [row.nonzero().flatten().tolist() for row in ahead] == [[3], [], [3], [], [], [1]]
    all_matches = weights[2, 5]
    assert all_matches[[1, 3]].min() > 0.05  # none hides another
    assert all_matches.sum().item() == pytest.approx(1)


def test_what_matches_nothing_leaves_the_rest_unread() -> None:
    memory = make_memory(heads=2)
    with torch.no_grad():
        memory.step.nearest_bias.fill_(-60.0)
    weights = read_all_real(memory, torch.randn(1, 4, D).double(), torch.randn(1, 1, D).double()).weights
    assert weights[:, :, 0].max() < 1e-9
    assert 0 < weights[:, 0, 1].sum() < 1  # a softmax also has nothing to choose


def test_only_the_order_tells_equal_sentences_apart_at_any_distance() -> None:
    """Sentences that match nothing, between the others, change no nearest match."""
    step = RewritingStep(8, heads=1, rewrite=True, dropout=0.0)
    for gap in (0, 3, 60):
        products = torch.full((1, gap + 3, gap + 2), -60.0)
        products[0, -1, 0] = 1.0
        assert weigh(step, products)[0, -1, 0].item() == pytest.approx(sigmoid(1.0 + step.nearest_bias.item()))


def test_free_slots_between_sentences_are_no_distance() -> None:
    """Distances count filled slots, however many are free between them."""
    mask = torch.tensor([[[True, False, False, True, True]]])
    filled = mask[0, 0].nonzero().flatten()
    rows = torch.cat([filled, torch.tensor([5])])
    sparse, dense = (
        build_slot_geometry(slots, torch.float64) for slots in (mask, torch.ones(1, 1, 3, dtype=torch.bool))
    )
    for with_gaps, without in zip(sparse[:4], dense[:4]):
        torch.testing.assert_close(with_gaps[..., rows, :][..., filled], without)
    assert sparse.not_behind[..., ~mask[0, 0]].all()


# The stop --------------------------------------------------------------------------------------


def test_shares_of_the_steps_add_up_to_one() -> None:
    memory = make_memory(steps=4, heads=2)
    reading = read_all_real(memory, torch.randn(7, 4, D).double(), torch.randn(7, 2, D).double())
    assert reading.gates.shape == (7, 4, 2)
    assert reading.gates.gt(0).all()
    torch.testing.assert_close(reading.gates.sum(1), torch.ones(7, 2).double())
    assert reading.steps.gt(1).all()
    assert reading.steps.lt(4).all()


def test_a_certain_stop_ends_reading_and_answer() -> None:
    """What would come after the first step is neither in the answer nor in the evidence."""
    memory, states, query = make_memory(steps=4, heads=2), torch.randn(2, 4, D), torch.randn(2, 1, D)
    single = SlotRewritingMemory(D, steps=1, heads=2, slots=SLOTS).double().eval()
    single.load_state_dict({name: weight for name, weight in memory.state_dict().items() if "stop" not in name})
    with torch.no_grad():
        memory.stop.weight.zero_()
        memory.stop.bias.fill_(100.0)
    reading, expected = (read_all_real(network, states.double(), query.double()) for network in (memory, single))
    torch.testing.assert_close(reading.found, expected.found)
    torch.testing.assert_close(reading.weights[:, :1], expected.weights)
    assert reading.weights[:, 1:].max() < 1e-40
    torch.testing.assert_close(reading.steps, torch.ones(2, 1).double())
    with torch.no_grad():
        memory.stop.bias.fill_(-100.0)
    assert read_all_real(memory, states.double(), query.double()).steps.min().item() == pytest.approx(4)


# Graphs, options -------------------------------------------------------------------------------


LOOKS = {getattr(Tensor, name) for name in ("item", "tolist", "nonzero", "__bool__", "__int__", "__float__")}


class NoLooks(TorchFunctionMode):
    """Refuse what waits for a value, as a recording of a CUDA graph does."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func not in LOOKS, func
        return func(*args, **(kwargs or {}))


def test_training_never_looks_at_values() -> None:
    memory = SlotRewritingMemory(8, heads=2, dropout=0.1).train()
    states, mask = torch.randn(2, 4, 2, 8), torch.rand(2, 4) < 0.5
    with NoLooks():
        written = memory.write(memory.empty(2, states), states, mask)
        memory.read(written.state, torch.randn(2, 1, 2, 8)).found.sum().backward()
        with pytest.raises(AssertionError):
            bool(mask.any())


def test_dropout_is_different_for_every_run() -> None:
    memory = SlotRewritingMemory(8, heads=2, dropout=0.5).train()
    states, query = torch.randn(1, 4, 2, 8), torch.randn(1, 1, 2, 8)
    written = memory.write(memory.empty(1, states), states, torch.ones(1, 4, dtype=torch.bool))
    found = vmap(lambda _: memory.read(written.state, query).found, randomness="different")(torch.zeros(2))
    assert not torch.allclose(found[0], found[1])
    memory.eval()
    torch.testing.assert_close(memory.read(written.state, query).found, memory.read(written.state, query).found)


def test_options_that_do_not_fit_are_refused() -> None:
    for options in ({"steps": 0}, {"heads": 0}, {"heads": 3}, {"slots": 0}, {"steps": 10**6}):
        with pytest.raises(ConfigError):
            SlotRewritingMemory(8, **options)
