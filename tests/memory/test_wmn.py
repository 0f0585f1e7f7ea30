"""The working memory network's read and relations against their equations in plain loops.

Shapes: b batch, n sentences, m queries, s slots, k hops, h heads, d width.
"""

from math import exp, sqrt, tanh
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.memory import Reading
from mnemic.memory.wmn import WMN
from mnemic.respond.relation import RelationHead

D, VOCAB, SLOTS = 4, 9, 5
Vector = list[float]


# Reference loops -------------------------------------------------------------------------------


def dot(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def apply(matrix: Tensor, vector: Vector, bias: Tensor | None = None) -> Vector:
    """Compute ``matrix · vector + bias``, row by row."""
    biases = [0.0] * len(matrix) if bias is None else bias.tolist()
    return [dot(row, vector) + b for row, b in zip(matrix.tolist(), biases, strict=True)]


def add(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def sigmoid(number: float) -> float:
    return 1 / (1 + exp(-number))


def gru(cell: Any, x: Vector, h: Vector) -> Vector:
    """Compute r, z and h̃ of a GRU, each from its third of the weights."""
    from_input = [apply(w, x, b) for w, b in zip(cell.given.weight.chunk(3), cell.given.bias.chunk(3))]
    from_state = [apply(w, h, b) for w, b in zip(cell.back.weight.chunk(3), cell.back.bias.chunk(3))]
    reset, update = ([sigmoid(a + b) for a, b in zip(from_input[gate], from_state[gate])] for gate in (0, 1))
    new = [tanh(a + r * b) for a, r, b in zip(from_input[2], reset, from_state[2])]
    return [(1 - z) * n + z * old for z, n, old in zip(update, new, h)]


def reference_read(memory: WMN, states: list[Vector], question: Vector) -> tuple[list[Vector], list[list[Vector]]]:
    """Compute the working buffer and the weights of each hop and head."""
    newest = states[-memory.num_slots :]
    slots = list(newest)
    if memory.time is not None:
        ages = memory.time.table.tolist()
        slots = [gru(memory.time.cell, ages[len(newest) - 1 - i], m) for i, m in enumerate(newest)]
    if memory.blank is not None:
        slots += [memory.blank.tolist()] * (memory.num_slots - len(newest))  # one by one
    output, buffer, weights = question, [], []
    for hop in range(memory.hops):
        first, second = memory.transition
        query = apply(second.weight, apply(first.weight, output, first.bias), second.bias)
        heads_output: Vector = []
        weights.append([])
        for head in memory.keys[hop].weight.chunk(memory.heads):
            keys = [apply(head, slot) for slot in slots]
            if memory.tanh:
                keys = [[tanh(number) for number in key] for key in keys]
            exponentials = [exp(dot(query, key) / sqrt(D)) for key in keys]
            head_weights = [exponential / sum(exponentials) for exponential in exponentials]
            heads_output += add(
                [0.0] * D, *([p * v for v in slot] for p, slot in zip(head_weights, slots, strict=True))
            )
            weights[-1].append(head_weights[: len(newest)])
        output = apply(memory.join[hop].weight, heads_output)
        buffer.append(output)
    return buffer, weights


def reference_relate(respond: RelationHead, buffer: list[Vector], question: Vector) -> Vector:
    """Compute Σ_ij g([o_i; o_j; u]), pair by pair."""
    total = [0.0] * respond.out.in_features
    for first in buffer:
        for second in buffer:
            x = first + second + question  # concatenates lists
            for layer in respond.layers:
                x = [max(number, 0.0) for number in apply(layer.weight, x, layer.bias)]
            total = add(total, x)
    return apply(respond.out.weight, total)


def make_memory(**options: Any) -> WMN:
    """Build a memory in double precision, with weights far from a uniform softmax."""
    memory = WMN(D, slots=SLOTS, **options).double().eval()
    with torch.no_grad():
        for weight in memory.parameters():
            weight.add_(torch.randn_like(weight))
    return memory


OPTIONS: list[dict[str, Any]] = [
    {"hops": 2, "heads": 3},
    {"hops": 3, "heads": 1, "tanh": False},
    {"hops": 2, "heads": 2, "time": False},
    {"hops": 1, "heads": 8, "free_slots": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("count", [1, 3, SLOTS, SLOTS + 3])
def test_a_read_equals_the_equations(options: dict[str, Any], count: int) -> None:
    memory = make_memory(**options)
    states = torch.randn(1, count, 1, D, dtype=torch.float64)
    query = torch.randn(1, 2, 1, D, dtype=torch.float64)
    written = memory.write(memory.empty(1, states), states, torch.ones(1, count).bool())
    with torch.no_grad():
        reading = memory.read(written.state, query)
        for query_index in range(2):
            buffer, weights = reference_read(memory, states[0, :, 0].tolist(), query[0, query_index, 0].tolist())
            expected = torch.tensor(buffer, dtype=torch.float64)
            torch.testing.assert_close(reading.buffer[0, query_index], expected)
            torch.testing.assert_close(reading.found[0, query_index], expected[-1])
            expected_weights = torch.tensor(weights, dtype=torch.float64)
            torch.testing.assert_close(reading.weights[0, :, :, query_index], expected_weights)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_relation_equals_the_sum_over_pairs(depth: int) -> None:
    respond = RelationHead(D, VOCAB, hidden=6, depth=depth).double()
    with torch.no_grad():
        for layer in respond.layers:
            layer.bias.normal_()
    buffer, query = torch.randn(2, 3, 4, D).double(), torch.randn(2, 3, 1, D).double()
    with torch.no_grad():
        logits = respond(query, make_reading(buffer), query, query)
        assert logits.shape == (2, 3, VOCAB)
        for b in range(2):
            for query_index in range(3):
                expected = reference_relate(respond, buffer[b, query_index].tolist(), query[b, query_index, 0].tolist())
                torch.testing.assert_close(logits[b, query_index], torch.tensor(expected).double())


def make_reading(buffer: Tensor | None) -> Reading:
    empty = torch.zeros(0)
    return Reading(empty, empty, empty, buffer=buffer)


def test_pairs_are_ordered_but_the_buffer_is_a_set() -> None:
    """g may depend on the order within a pair; the sum over pairs does not."""
    respond = RelationHead(D, VOCAB, hidden=6)
    buffer, query = torch.randn(1, 1, 4, D), torch.randn(1, 1, 1, D)
    pairs = respond.encode_pairs(buffer, query[:, :, 0])
    assert not torch.allclose(pairs, pairs.transpose(2, 3))
    for i in range(4):
        for j in range(4):
            pair = torch.cat([buffer[0, 0, i], buffer[0, 0, j], query[0, 0, 0]])
            torch.testing.assert_close(pairs[0, 0, i, j], respond.layers[0](pair))
    logits = respond(query, make_reading(buffer), query, query)
    permuted_logits = respond(query, make_reading(buffer[:, :, [2, 0, 3, 1]]), query, query)
    torch.testing.assert_close(logits, permuted_logits)


def test_a_relation_needs_a_buffer_and_says_so() -> None:
    query = torch.zeros(1, 1, 1, D)
    with pytest.raises(ValueError, match="needs a memory with a buffer, such as wmn"):
        RelationHead(D, VOCAB)(query, make_reading(None), query, query)
    with pytest.raises(ValueError, match="hidden and depth"):
        RelationHead(D, VOCAB, depth=0)
    with pytest.raises(ValueError, match="hops, heads and slots"):
        WMN(D, heads=0)


# The memory ------------------------------------------------------------------------------------


def test_a_query_equal_to_slot_three_reads_slot_three() -> None:
    memory = WMN(8, hops=2, heads=2, slots=8, time=False, free_slots=False)
    identity = torch.eye(8)
    with torch.no_grad():
        for layer in memory.keys:
            layer.weight.copy_(torch.cat([identity, identity]))
        for layer in memory.join:
            layer.weight.copy_(torch.cat([identity, identity], 1) / 2)  # the mean of the heads
        memory.transition = torch.nn.Identity()
    rows = 20 * torch.eye(8)[None, :, None]  # b s 1 d
    state = memory.write(memory.empty(1, rows), rows, torch.ones(1, 8).bool()).state
    reading = memory.read(state, rows[:, 3:4])
    assert reading.weights[0, :, :, 0].argmax(-1).eq(3).all()
    assert reading.weights[..., 3].min() > 0.98
    torch.testing.assert_close(reading.buffer[0, 0, 0], rows[0, 3, 0], atol=0.3, rtol=0)


def test_the_question_is_forgotten_after_the_first_hop() -> None:
    """The query of a hop depends only on the output of the hop before."""
    memory = make_memory(hops=2, heads=2, time=False)
    equal_states = torch.randn(1, 1, 1, D).double().expand(1, SLOTS, 1, D)  # all hops read the same
    state = memory.write(memory.empty(1, equal_states), equal_states, torch.ones(1, SLOTS).bool()).state
    reading = memory.read(state, torch.randn(1, 2, 1, D).double())
    torch.testing.assert_close(reading.buffer[:, 0], reading.buffer[:, 1])


def test_only_time_tells_equal_sentences_apart() -> None:
    states, query = torch.randn(1, 1, 1, D).double().expand(1, 3, 1, D), torch.randn(1, 1, 1, D)
    for time in (True, False):
        memory = make_memory(time=time)
        written = memory.write(memory.empty(1, states), states, torch.ones(1, 3).bool())
        weights = memory.read(written.state, query.double()).weights
        assert torch.allclose(weights, weights[..., :1]) == (not time)


def test_a_full_memory_has_no_free_slots_to_read() -> None:
    memory = make_memory(heads=2)
    states = torch.randn(1, SLOTS, 1, D).double()
    for count in (SLOTS - 1, SLOTS):
        mask = torch.arange(SLOTS).expand(1, -1) < count
        written = memory.write(memory.empty(1, states), states, mask)
        total = memory.read(written.state, states[:, :2]).weights.sum(-1)
        assert torch.allclose(total, torch.ones_like(total)) == (count == SLOTS)


def test_heads_need_not_divide_the_width() -> None:
    memory = WMN(30)
    states = torch.randn(2, 7, 1, 30)
    written = memory.write(memory.empty(2, states), states, torch.ones(2, 7).bool())
    reading = memory.read(written.state, torch.randn(2, 3, 1, 30))
    assert reading.weights.shape == (2, 4, 8, 3, 7)
    assert reading.buffer.shape == (2, 3, 4, 30)
