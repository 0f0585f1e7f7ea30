"""The working memory network against its equations in slow loops, and that it learns.

Shapes: b batch, n sentences, m queries, s slots, k hops, h heads, d width.
"""

from math import exp, sqrt, tanh
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.data.stories.dataset import StoryData
from mnemic.learn.evaluate import task_errors
from mnemic.learn.fit import data_of
from mnemic.learn.fit_many import fit_many, new_networks
from mnemic.learn.many import Many
from mnemic.memory import Reading
from mnemic.memory.wmn import WMN
from mnemic.network import Inputs, Network, assemble
from mnemic.recipe import load
from mnemic.respond.relation import Relation

D, VOCAB, SLOTS = 4, 9, 5
Vector = list[float]


# The slow twins --------------------------------------------------------------------------------


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def apply(matrix: Tensor, vector: Vector, bias: Tensor | None = None) -> Vector:
    """``matrix · vector + bias``, row by row."""
    added = [0.0] * len(matrix) if bias is None else bias.tolist()
    return [dot(row, vector) + b for row, b in zip(matrix.tolist(), added, strict=True)]


def add(*vectors: Vector) -> Vector:
    return [sum(parts) for parts in zip(*vectors, strict=True)]


def sigmoid(number: float) -> float:
    return 1 / (1 + exp(-number))


def gru(cell: Any, x: Vector, h: Vector) -> Vector:
    """r, z and h̃ of a GRU, each from its own third of the weights."""
    into = [apply(w, x, b) for w, b in zip(cell.given.weight.chunk(3), cell.given.bias.chunk(3))]
    back = [apply(w, h, b) for w, b in zip(cell.back.weight.chunk(3), cell.back.bias.chunk(3))]
    reset, keep = ([sigmoid(a + b) for a, b in zip(into[g], back[g])] for g in (0, 1))
    new = [tanh(a + r * b) for a, r, b in zip(into[2], reset, back[2])]
    return [(1 - z) * n + z * old for z, n, old in zip(keep, new, h)]


def slow_read(
    memory: WMN, told: list[Vector], question: Vector
) -> tuple[list[Vector], list[list[Vector]]]:
    """The working buffer, and the weights of each hop and head, as the equations are printed."""
    kept = told[-memory.slots :]
    slots = list(kept)
    if memory.time is not None:
        ages = memory.time.table.tolist()
        slots = [gru(memory.time.cell, ages[len(kept) - 1 - i], m) for i, m in enumerate(kept)]
    if memory.blank is not None:
        slots += [memory.blank.tolist()] * (memory.slots - len(kept))  # one by one
    output, buffer, weights = question, [], []
    for hop in range(memory.hops):
        first, second = memory.transition
        query = apply(second.weight, apply(first.weight, output, first.bias), second.bias)
        joined: Vector = []
        weights.append([])
        for head in memory.keys[hop].weight.chunk(memory.heads):
            keys = [apply(head, slot) for slot in slots]
            if memory.tanh:
                keys = [[tanh(number) for number in key] for key in keys]
            powers = [exp(dot(query, key) / sqrt(D)) for key in keys]
            shares = [power / sum(powers) for power in powers]
            joined += add(
                [0.0] * D, *([p * v for v in slot] for p, slot in zip(shares, slots, strict=True))
            )
            weights[-1].append(shares[: len(kept)])
        output = apply(memory.join[hop].weight, joined)
        buffer.append(output)
    return buffer, weights


def slow_relate(respond: Relation, buffer: list[Vector], question: Vector) -> Vector:
    """Σ_ij g([o_i; o_j; u]), pair by pair."""
    total = [0.0] * respond.out.in_features
    for one in buffer:
        for other in buffer:
            x = one + other + question  # lists: one behind the other
            for layer in respond.layers:
                x = [max(number, 0.0) for number in apply(layer.weight, x, layer.bias)]
            total = add(total, x)
    return apply(respond.out.weight, total)


def memory_of(**options: Any) -> WMN:
    """In double precision, with weights far from a uniform softmax."""
    memory = WMN(D, slots=SLOTS, **options).double().eval()
    with torch.no_grad():
        for weight in memory.parameters():
            weight.add_(torch.randn_like(weight))
    return memory


OPTIONS: list[dict[str, Any]] = [
    {"hops": 2, "heads": 3},
    {"hops": 3, "heads": 1, "tanh": False},
    {"hops": 2, "heads": 2, "time": False},
    {"hops": 1, "heads": 8, "spare": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("count", [1, 3, SLOTS, SLOTS + 3])
def test_a_read_equals_the_equations(options: dict[str, Any], count: int) -> None:
    memory = memory_of(**options)
    states = torch.randn(1, count, 1, D, dtype=torch.float64)
    query = torch.randn(1, 2, 1, D, dtype=torch.float64)
    written = memory.write(memory.empty(1, states), states, torch.ones(1, count).bool())
    with torch.no_grad():
        reading = memory.read(written.state, query)
        for number in range(2):
            buffer, weights = slow_read(
                memory, states[0, :, 0].tolist(), query[0, number, 0].tolist()
            )
            expected = torch.tensor(buffer, dtype=torch.float64)
            torch.testing.assert_close(reading.buffer[0, number], expected)
            torch.testing.assert_close(reading.found[0, number], expected[-1])
            read = torch.tensor(weights, dtype=torch.float64)
            torch.testing.assert_close(reading.weights[0, :, :, number], read)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_relation_equals_the_sum_over_pairs(depth: int) -> None:
    respond = Relation(D, VOCAB, hidden=6, depth=depth).double()
    with torch.no_grad():
        for layer in respond.layers:
            layer.bias.normal_()
    buffer, query = torch.randn(2, 3, 4, D).double(), torch.randn(2, 3, 1, D).double()
    with torch.no_grad():
        scores = respond(query, reading_of(buffer), query, query)
        assert scores.shape == (2, 3, VOCAB)
        for b in range(2):
            for m in range(3):
                slow = slow_relate(respond, buffer[b, m].tolist(), query[b, m, 0].tolist())
                torch.testing.assert_close(scores[b, m], torch.tensor(slow).double())


def reading_of(buffer: Tensor | None) -> Reading:
    nothing = torch.zeros(0)
    return Reading(nothing, nothing, nothing, buffer=buffer)


def test_pairs_are_ordered_but_the_buffer_is_a_set() -> None:
    """g may tell who comes first in a pair; the sum is over all pairs, so nobody comes first."""
    respond = Relation(D, VOCAB, hidden=6)
    buffer, query = torch.randn(1, 1, 4, D), torch.randn(1, 1, 1, D)
    pairs = respond.pairs(buffer, query[:, :, 0])
    assert not torch.allclose(pairs, pairs.transpose(2, 3))
    for i in range(4):
        for j in range(4):
            whole = torch.cat([buffer[0, 0, i], buffer[0, 0, j], query[0, 0, 0]])
            torch.testing.assert_close(pairs[0, 0, i, j], respond.layers[0](whole))
    plain = respond(query, reading_of(buffer), query, query)
    turned = respond(query, reading_of(buffer[:, :, [2, 0, 3, 1]]), query, query)
    torch.testing.assert_close(plain, turned)


def test_a_relation_needs_a_buffer_and_says_so() -> None:
    query = torch.zeros(1, 1, 1, D)
    with pytest.raises(ValueError, match="needs a memory with a buffer, such as wmn"):
        Relation(D, VOCAB)(query, reading_of(None), query, query)
    with pytest.raises(ValueError, match="hidden and depth"):
        Relation(D, VOCAB, depth=0)
    with pytest.raises(ValueError, match="hops, heads and slots"):
        WMN(D, heads=0)


# The memory ------------------------------------------------------------------------------------


def test_a_query_equal_to_slot_three_reads_slot_three() -> None:
    memory = WMN(8, hops=2, heads=2, slots=8, time=False, spare=False)
    same = torch.eye(8)
    with torch.no_grad():
        for layer in memory.keys:
            layer.weight.copy_(torch.cat([same, same]))
        for layer in memory.join:
            layer.weight.copy_(torch.cat([same, same], 1) / 2)  # the mean of the heads
        memory.transition = torch.nn.Identity()
    rows = 20 * torch.eye(8)[None, :, None]  # b s 1 d
    state = memory.write(memory.empty(1, rows), rows, torch.ones(1, 8).bool()).state
    reading = memory.read(state, rows[:, 3:4])
    assert reading.weights[0, :, :, 0].argmax(-1).eq(3).all()
    assert reading.weights[..., 3].min() > 0.98
    torch.testing.assert_close(reading.buffer[0, 0, 0], rows[0, 3, 0], atol=0.3, rtol=0)


def test_the_question_is_forgotten_after_the_first_hop() -> None:
    """What a hop asks depends on what the last one found and on nothing else."""
    memory = memory_of(hops=2, heads=2, time=False)
    alike = torch.randn(1, 1, 1, D).double().expand(1, SLOTS, 1, D)  # all hops find the same
    state = memory.write(memory.empty(1, alike), alike, torch.ones(1, SLOTS).bool()).state
    reading = memory.read(state, torch.randn(1, 2, 1, D).double())
    torch.testing.assert_close(reading.buffer[:, 0], reading.buffer[:, 1])


def test_only_time_tells_equal_sentences_apart() -> None:
    states, query = torch.randn(1, 1, 1, D).double().expand(1, 3, 1, D), torch.randn(1, 1, 1, D)
    for time in (True, False):
        memory = memory_of(time=time)
        written = memory.write(memory.empty(1, states), states, torch.ones(1, 3).bool())
        weights = memory.read(written.state, query.double()).weights
        assert torch.allclose(weights, weights[..., :1]) == (not time)


def test_a_full_memory_has_no_room_to_read_nothing() -> None:
    memory = memory_of(heads=2)
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


# The whole network -----------------------------------------------------------------------------

RECURRENT = {"kind": "gru", "fused": False}
MODEL = {
    "width": D,
    "encode": {"kind": "sentence", "deviation": 1.0, "recurrent": RECURRENT},
    "ask": {"kind": "sentence", "recurrent": RECURRENT},
    "memory": {"kind": "wmn", "hops": 2, "heads": 3, "slots": SLOTS},
    "respond": {"kind": "relation", "hidden": 7},
}


def network_of(seed: int = 0, **changes: Any) -> Network:
    torch.manual_seed(seed)
    return assemble({**MODEL, **changes}, {"vocab": VOCAB, "longest": 6})


def inputs_of(batch: int = 3, seed: int = 0) -> Inputs:
    dice = torch.Generator().manual_seed(seed)
    texts = torch.randint(1, VOCAB, (7, 5), generator=dice)
    mask = torch.arange(5) < torch.randint(1, 6, (7, 1), generator=dice)
    story = torch.randint(-1, 7, (batch, 8), generator=dice)  # more than fits, padding anywhere
    question = torch.randint(7, (batch, 1), generator=dice)
    return Inputs(texts * mask, mask, story, question)


def test_questions_are_read_by_a_network_of_their_own_with_the_same_words() -> None:
    network = network_of()
    assert network.ask.words is network.encode.words
    own = dict(network.ask.recurrent.named_parameters())
    for name, weight in network.encode.recurrent.named_parameters():
        assert own[name] is not weight


def test_a_story_answers_alone_as_it_does_among_others() -> None:
    network, inputs = network_of(), inputs_of()
    together = network(inputs).scores
    for row in range(3):
        story, question = inputs.story[row : row + 1], inputs.question[row : row + 1]
        real = story[story >= 0][None]
        alone = network(inputs._replace(story=real, question=question)).scores[0]
        torch.testing.assert_close(alone, together[row])


def test_every_weight_learns() -> None:
    network = network_of()
    inputs = inputs_of()
    short = inputs._replace(story=inputs.story[:, :4])  # with slots to spare
    network(short).scores.square().sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


def test_many_networks_as_one_program() -> None:
    networks = [network_of(seed) for seed in range(3)]
    inputs = [inputs_of(seed=seed) for seed in range(3)]
    stacked = Inputs(*(torch.stack(part) for part in list(zip(*inputs))[:4]))
    together = Many(networks)(stacked)
    for run, (network, own) in enumerate(zip(networks, inputs)):
        alone = network(own)
        torch.testing.assert_close(together.scores[run], alone.scores)
        torch.testing.assert_close(together.reading.buffer[run], alone.reading.buffer)
        torch.testing.assert_close(together.reading.weights[run], alone.reading.weights)


def test_the_last_hop_alone_can_answer_too() -> None:
    network = network_of(respond={"kind": "word"})
    assert network(inputs_of()).scores.shape == (3, 1, VOCAB)


def test_the_recipe_is_the_papers() -> None:
    recipe = load("wmn")
    network = assemble(recipe["model"], {"vocab": 178, "longest": 12})
    memory, respond = network.memory, network.respond
    assert (memory.hops, memory.heads, memory.slots) == (4, 8, 30)
    assert recipe["data"]["sentences"] == memory.slots
    assert [tuple(layer.weight.shape) for layer in respond.layers] == [
        (128, 90), (128, 128), (128, 128),
    ]  # fmt: skip
    assert [tuple(layer.weight.shape) for layer in memory.transition] == [(15, 30), (30, 15)]


# Learning --------------------------------------------------------------------------------------

SMALL = [
    "model.width=20",
    "model.memory.hops=2",
    "model.memory.heads=2",
    "model.respond.hidden=32",
    "model.respond.depth=2",
    "model.encode.recurrent.fused=true",
    "model.ask.recurrent.fused=true",
    "phases=[{}]",
    "train.batch=64",
    "train.rate=0.01",
    "train.reduce=mean",
    "train.clip.most=1.25",
    "train.optimiser.decay=6.25e-5",
    "train.validate=0",
    "train.keep=last",
]


def trained(recipe: dict[str, Any], data: StoryData, seed: int) -> Network:
    networks = new_networks(recipe, data, [seed])
    pools = [torch.arange(len(data.train))]
    for _ in fit_many(
        recipe, data, networks, seeds=[seed], pools=pools, device=torch.device("cpu")
    ):
        pass
    return networks[0]


def test_a_tiny_wmn_learns_one_supporting_fact() -> None:
    made = 'data={kind="generated", tasks=[1], count=5000, sentences=30}'
    recipe = load("wmn", [made, *SMALL, "model.memory.hops=1", "train.epochs=6"])
    data = data_of(recipe)
    network = trained(recipe, data, 0)
    assert task_errors(network, data.test)[1] < 10


def are_two_the_same(pairs: Tensor, words: int) -> tuple[Inputs, Tensor]:
    """Two sentences of one word each, and a question about them: the same word or not?"""
    texts = torch.arange(words + 1)[:, None] + 1  # the last one is the question
    question = torch.full((len(pairs), 1), words)
    answers = words + 2 + (pairs[:, 0] == pairs[:, 1]).long()
    return Inputs(texts, texts > 0, pairs, question), answers


def test_a_tiny_wmn_learns_to_compare_sentences() -> None:
    """No single sentence helps: of all pairs of six words, it tells those that are equal."""
    words = 6
    network = assemble({**MODEL, "width": 16}, {"vocab": words + 4, "longest": 2})
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    every = torch.cartesian_prod(torch.arange(words), torch.arange(words))  # 36 pairs
    for _ in range(300):
        first = torch.randint(words, (64,))
        second = torch.where(torch.rand(64) < 0.5, first, torch.randint(words, (64,)))
        inputs, answers = are_two_the_same(torch.stack([first, second], 1), words)
        loss = torch.nn.functional.cross_entropy(network(inputs).scores[:, 0], answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    inputs, answers = are_two_the_same(every, words)
    assert torch.equal(network(inputs).scores[:, 0].argmax(1), answers)
