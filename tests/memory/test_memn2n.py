"""MemN2N against the paper's equations in plain loops, and properties of its reads.

Shapes: b batch, n sentences, m queries, s slots, k hops, t tables, d width.
"""

from math import exp
from typing import Any

import pytest
import torch
from story_runs import inputs_of
from torch import Tensor

from mnemic.memory.memn2n import MemN2N
from mnemic.memory.parts.hop_update import LinearUpdate
from mnemic.models import MemoryNetwork, build_model
from mnemic.recipe import ConfigError

D, VOCAB, SLOTS, MAX_WORDS = 4, 9, 5, 6
RELU = {"kind": "linear", "relu": True}
Vector = list[float]


# Reference loop --------------------------------------------------------------------------------


def position_weight(k: int, j: int, d: int, max_words: int) -> float:
    """Position encoding of channel k and word j, both counted from 1."""
    return 1 + 4 * (k - (d + 1) / 2) * (j - (max_words + 1) / 2) / (d * max_words)


def embed(words: list[int], table: Tensor, position: bool) -> Vector:
    """Compute Σ_j l_j · A x_j, channel by channel and word by word."""
    vector = [0.0] * D
    for j, word in enumerate(words, start=1):
        for k in range(1, D + 1):
            weight = position_weight(k, j, D, MAX_WORDS) if position else 1.0
            vector[k - 1] += weight * float(table[word, k - 1])
    return vector


def embed_time(age: int, table: Tensor, ramp: bool) -> Vector:
    """Embed a sentence's age like a word in the last position of the longest sentence."""
    return [
        float(table[age, k - 1]) * (position_weight(k, MAX_WORDS, D, MAX_WORDS) if ramp else 1.0)
        for k in range(1, D + 1)
    ]


def add(first: Vector, second: Vector) -> Vector:
    return [a + b for a, b in zip(first, second, strict=True)]


def dot(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def softmax(scores: Vector) -> Vector:
    total = sum(exp(score) for score in scores)
    return [exp(score) / total for score in scores]


def run_reference(network: MemoryNetwork, story: list[list[int]], question: list[int]) -> tuple[Any, Any]:
    """Logits of all words and weights of each hop: equations 1 to 5 as printed."""
    memory: MemN2N = network.memory
    tables = [table.detach() for table in network.encode.tables]
    times = [table.detach() for table in memory.time]
    position = network.encode.position
    ramp = not torch.equal(memory.last, torch.ones_like(memory.last))
    adjacent = memory.tying == "adjacent"
    sentences = story[-memory.num_slots :]

    def embed_slots(table: int) -> list[Vector]:
        """All slots of the memory; free slots are sentences without words."""
        slots = []
        for index, words in enumerate(sentences):
            vector = embed(words, tables[table], position)
            if times:
                age = len(sentences) - 1 - index
                vector = add(vector, embed_time(age, times[table], ramp))
            slots.append(vector)
        free = memory.num_slots - len(sentences) if memory.free_slots and memory.softmax else 0
        return slots + [[0.0] * D for _ in range(free)]

    u = embed(question, tables[0 if adjacent else 2], position)
    weights_per_hop = []
    for hop in range(memory.hops):
        keys, values = (embed_slots(hop), embed_slots(hop + 1)) if adjacent else (embed_slots(0), embed_slots(1))
        scores = [dot(u, key) for key in keys]
        weights = softmax(scores) if memory.softmax else scores
        output = [0.0] * D
        for weight, value in zip(weights, values, strict=True):
            output = add(output, [weight * number for number in value])
        linear = isinstance(memory.update, LinearUpdate)
        if linear:
            u = [dot(row, u) for row in memory.update.map.tolist()]
        u = add(u, output)
        if linear and memory.update.relu:
            u = [max(number, 0.0) for number in u]
        weights_per_hop.append(weights[: len(sentences)])
    return [dot(u, row) for row in network.respond.table.tolist()], weights_per_hop


def network_of(tied: bool = True, position: bool = True, **options: Any) -> MemoryNetwork:
    model = {
        "width": D,
        "encode": {"kind": "bag", "position": position},
        "memory": {"kind": "memn2n", "slots": SLOTS, **options},
        "respond": {"kind": "word", "tied": tied},
    }
    network = build_model(model, {"vocab": VOCAB, "max_length": MAX_WORDS}).double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(8)  # far from a uniform softmax
    return network


STORIES = [
    ([[2, 3, 4], [5], [6, 7, 8, 2, 3]], [4, 2]),
    ([[8, 8, 2]], [3]),
    ([[2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8], [8, 2]], [5, 6, 7]),  # longer than memory
    ([], [2, 4]),
    ([[7, 7]] * 5, [7]),  # no free slots
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hops": 1},
        {"position": False, "ramp": False},
        {"time": False, "position": False},
        {"softmax": False},
        {"free_slots": False},
        {"free_slots": False, "softmax": False, "hops": 2},
        {"tying": "layerwise", "tied": False},
        {"tying": "layerwise", "tied": False, "update": {"kind": "linear"}},
        {"tying": "layerwise", "tied": False, "update": RELU, "hops": 2},
        {"tying": "layerwise", "tied": False, "softmax": False},
        {"tying": "layerwise", "tied": False, "update": RELU, "time": False, "free_slots": False},
    ],
    ids=lambda options: ", ".join(f"{name}={value}" for name, value in options.items()) or "as published",
)
def test_equals_the_papers_equations(options: dict[str, Any]) -> None:
    network = network_of(**options)
    output = network(inputs_of(STORIES))
    for row, (story, question) in enumerate(STORIES):
        if not story and not options.get("free_slots", True):
            continue  # a softmax over no slots is undefined in the paper
        logits, weights = run_reference(network, story, question)
        expected = torch.tensor(logits, dtype=torch.float64)
        torch.testing.assert_close(output.logits[row, 0], expected, atol=1e-5, rtol=1e-5)
        mask = output.written.state.mask[row]
        read_weights = output.reading.weights[row, :, 0, 0][:, mask]
        expected = torch.tensor(weights, dtype=torch.float64).view(read_weights.shape)
        torch.testing.assert_close(read_weights, expected, atol=1e-5, rtol=1e-5)


def test_adjacent_tying_uses_one_embedding_table_more_than_hops() -> None:
    """Adjacent tying: hops + 1 tables for B, all A and C, and W."""
    network = network_of(hops=3)
    names = [name for name, _ in network.named_parameters()]
    assert names == [*(f"encode.tables.{table}" for table in range(4)), *(f"memory.time.{table}" for table in range(4))]
    layerwise = network_of(tying="layerwise", tied=False, hops=3)
    assert sum("encode.tables" in name for name, _ in layerwise.named_parameters()) == 3


# Properties ------------------------------------------------------------------------------------


def test_a_query_equal_to_row_3_reads_row_3() -> None:
    memory = MemN2N(8, hops=1, slots=6, time=False)
    states = 9 * torch.eye(8)[:6].repeat(2, 1, 1).unsqueeze(2).repeat(1, 1, 2, 1)  # 2 6 t 8
    states[:, :, 1] = torch.randn(6, 8)  # the values
    written = memory.write(memory.empty(2, states), states, torch.ones(2, 6, dtype=torch.bool))
    reading = memory.read(written.state, states[:, 3:4])
    assert reading.weights[0, 0, 0, 0, 3] > 0.999
    torch.testing.assert_close(reading.found[0, 0], states[0, 3, 0] + states[0, 3, 1])


def test_time_counts_back_from_the_question() -> None:
    """The newest slot has age 0, whatever real or padded slots surround it."""
    memory = MemN2N(4, hops=1, slots=5, free_slots=False).eval()
    with torch.no_grad():
        memory.time[0].zero_()[0] = 50.0  # the keys of the newest slot alone
    states = torch.zeros(3, 4, 2, 4)
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0]], dtype=torch.bool)
    state = memory.write(memory.empty(3, states), states, mask).state
    reading = memory.read(state, torch.ones(3, 1, 2, 4))
    assert reading.weights[:, 0, 0, 0].argmax(-1).tolist() == [3, 2, 0]


@pytest.mark.parametrize("num_sentences", [1, 3, 5])
def test_free_slots_share_the_softmax(num_sentences: int) -> None:
    """Slots with score 0 weigh as much as free slots."""
    memory = MemN2N(4, hops=1, slots=5, time=False)
    states = torch.zeros(1, num_sentences, 2, 4)
    written = memory.write(memory.empty(1, states), states, torch.ones(1, num_sentences, dtype=torch.bool))
    weights = memory.read(written.state, torch.randn(1, 1, 2, 4)).weights.flatten()
    torch.testing.assert_close(weights, torch.full((num_sentences,), 1 / 5))


@pytest.mark.parametrize(
    ("options", "message"), [({"slots": 0}, "slots"), ({"hops": 0}, "hops"), ({"noise": -0.1}, "noise")]
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network_of(**options)


def test_the_answer_is_not_tied_to_a_table_of_questions() -> None:
    with pytest.raises(ConfigError, match=r"set model\.respond\.tied=false"):
        network_of(tying="layerwise", tied=True)


def test_an_unknown_tying_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of 'adjacent', 'layerwise', not 'none'"):
        network_of(tying="none")
