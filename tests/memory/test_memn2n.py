"""MemN2N against the paper's equations in slow loops, and what its reads mean.

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

D, VOCAB, SLOTS, LONGEST = 4, 9, 5, 6
RELU = {"kind": "linear", "relu": True}
Vector = list[float]


# The slow twin ---------------------------------------------------------------------------------


def place_weight(k: int, j: int, d: int, longest: int) -> float:
    """Position encoding of channel k and word j, both counted from 1."""
    return 1 + 4 * (k - (d + 1) / 2) * (j - (longest + 1) / 2) / (d * longest)


def embed(words: list[int], table: Tensor, position: bool) -> Vector:
    """Σ_j l_j · A x_j, channel by channel and word by word."""
    vector = [0.0] * D
    for j, word in enumerate(words, start=1):
        for k in range(1, D + 1):
            weight = place_weight(k, j, D, LONGEST) if position else 1.0
            vector[k - 1] += weight * float(table[word, k - 1])
    return vector


def when(age: int, table: Tensor, ramp: bool) -> Vector:
    """The time of a sentence: a word in the last place of the longest sentence."""
    return [float(table[age, k - 1]) * (place_weight(k, LONGEST, D, LONGEST) if ramp else 1.0) for k in range(1, D + 1)]


def add(one: Vector, other: Vector) -> Vector:
    return [a + b for a, b in zip(one, other, strict=True)]


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def softmax(scores: Vector) -> Vector:
    total = sum(exp(score) for score in scores)
    return [exp(score) / total for score in scores]


def slow(network: MemoryNetwork, story: list[list[int]], question: list[int]) -> tuple[Any, Any]:
    """Scores of all words, and the weights of each hop: equations 1 to 5 as they are printed."""
    memory: MemN2N = network.memory
    tables = [table.detach() for table in network.encode.tables]
    times = [table.detach() for table in memory.time]
    position = network.encode.position
    ramp = not torch.equal(memory.last, torch.ones_like(memory.last))
    adjacent = memory.tying == "adjacent"
    told = story[-memory.num_slots :]

    def slots_of(table: int) -> list[Vector]:
        """All slots of the memory, the free ones as sentences without words."""
        slots = []
        for place, words in enumerate(told):
            vector = embed(words, tables[table], position)
            if times:
                age = len(told) - 1 - place
                vector = add(vector, when(age, times[table], ramp))
            slots.append(vector)
        free = memory.num_slots - len(told) if memory.free_slots and memory.softmax else 0
        return slots + [[0.0] * D for _ in range(free)]

    u = embed(question, tables[0 if adjacent else 2], position)
    weights = []
    for hop in range(memory.hops):
        keys, values = (slots_of(hop), slots_of(hop + 1)) if adjacent else (slots_of(0), slots_of(1))
        scores = [dot(u, key) for key in keys]
        shares = softmax(scores) if memory.softmax else scores
        found = [0.0] * D
        for share, value in zip(shares, values, strict=True):
            found = add(found, [share * number for number in value])
        linear = isinstance(memory.update, LinearUpdate)
        if linear:
            u = [dot(row, u) for row in memory.update.map.tolist()]
        u = add(u, found)
        if linear and memory.update.relu:
            u = [max(number, 0.0) for number in u]
        weights.append(shares[: len(told)])
    return [dot(u, row) for row in network.respond.table.tolist()], weights


def network_of(tied: bool = True, position: bool = True, **options: Any) -> MemoryNetwork:
    model = {
        "width": D,
        "encode": {"kind": "bag", "position": position},
        "memory": {"kind": "memn2n", "slots": SLOTS, **options},
        "respond": {"kind": "word", "tied": tied},
    }
    network = build_model(model, {"vocab": VOCAB, "max_length": LONGEST}).double().eval()
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
    ids=lambda options: ", ".join(f"{k}={v}" for k, v in options.items()) or "as published",
)
def test_equals_the_papers_equations(options: dict[str, Any]) -> None:
    network = network_of(**options)
    output = network(inputs_of(STORIES))
    for number, (story, question) in enumerate(STORIES):
        if not story and not options.get("spare", True):
            continue  # a softmax over nothing is no number on paper
        scores, weights = slow(network, story, question)
        expected = torch.tensor(scores, dtype=torch.float64)
        torch.testing.assert_close(output.logits[number, 0], expected, atol=1e-5, rtol=1e-5)
        seen = output.written.state.mask[number]
        read = output.reading.weights[number, :, 0, 0][:, seen]
        expected = torch.tensor(weights, dtype=torch.float64).view(read.shape)
        torch.testing.assert_close(read, expected, atol=1e-5, rtol=1e-5)


def test_every_text_is_embedded_once_a_table_and_tables_are_shared() -> None:
    """Adjacent tying: hops + 1 tables in all, for B, every A and C, and W."""
    network = network_of(hops=3)
    names = [name for name, _ in network.named_parameters()]
    assert names == [*(f"encode.tables.{table}" for table in range(4)), *(f"memory.time.{table}" for table in range(4))]
    layerwise = network_of(tying="layerwise", tied=False, hops=3)
    assert sum("encode.tables" in name for name, _ in layerwise.named_parameters()) == 3


# Meaning ---------------------------------------------------------------------------------------


def test_a_query_equal_to_row_3_reads_row_3() -> None:
    memory = MemN2N(8, hops=1, slots=6, time=False)
    states = 9 * torch.eye(8)[:6].repeat(2, 1, 1).unsqueeze(2).repeat(1, 1, 2, 1)  # 2 6 t 8
    states[:, :, 1] = torch.randn(6, 8)  # the values
    written = memory.write(memory.empty(2, states), states, torch.ones(2, 6, dtype=torch.bool))
    reading = memory.read(written.state, states[:, 3:4])
    assert reading.weights[0, 0, 0, 0, 3] > 0.999
    torch.testing.assert_close(reading.found[0, 0], states[0, 3, 0] + states[0, 3, 1])


def test_time_counts_back_from_the_question() -> None:
    """The newest slot has age 0 however many slots, real or not, lie before and behind it."""
    memory = MemN2N(4, hops=1, slots=5, free_slots=False).eval()
    with torch.no_grad():
        memory.time[0].zero_()[0] = 50.0  # the keys of the newest slot alone
    states = torch.zeros(3, 4, 2, 4)
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0]], dtype=torch.bool)
    state = memory.write(memory.empty(3, states), states, mask).state
    reading = memory.read(state, torch.ones(3, 1, 2, 4))
    assert reading.weights[:, 0, 0, 0].argmax(-1).tolist() == [3, 2, 0]


@pytest.mark.parametrize("told", [1, 3, 5])
def test_spare_slots_take_their_share(told: int) -> None:
    """Real slots that score 0 weigh as much as empty ones, so a hop can read almost nothing."""
    memory = MemN2N(4, hops=1, slots=5, time=False)
    states = torch.zeros(1, told, 2, 4)
    written = memory.write(memory.empty(1, states), states, torch.ones(1, told, dtype=torch.bool))
    weights = memory.read(written.state, torch.randn(1, 1, 2, 4)).weights.flatten()
    torch.testing.assert_close(weights, torch.full((told,), 1 / 5))


@pytest.mark.parametrize(
    ("options", "says"), [({"slots": 0}, "slots"), ({"hops": 0}, "hops"), ({"noise": -0.1}, "noise")]
)
def test_what_no_paper_has_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        network_of(**options)


def test_the_answer_is_not_tied_to_a_table_of_questions() -> None:
    with pytest.raises(ConfigError, match=r"set model\.respond\.tied=false"):
        network_of(tying="layerwise", tied=True)


def test_an_unknown_tying_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of 'adjacent', 'layerwise', not 'none'"):
        network_of(tying="none")
