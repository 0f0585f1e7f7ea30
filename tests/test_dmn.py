"""DMN and DMN+ against the papers' equations in slow loops, and that they learn what they should.

Shapes: b batch, n sentences, w words, m queries, s slots, k passes, d width.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.encode.cell import Cell
from mnemic.encode.fuse import WordByWordFusion
from mnemic.learn.evaluate import task_errors
from mnemic.learn.fit import data_of
from mnemic.learn.fit_many import fit_many, new_networks
from mnemic.learn.many import Many
from mnemic.memory import MEMORIES
from mnemic.network import Inputs, assemble
from mnemic.recipe import build, load
from mnemic.respond.decoded import DecodedWord
from mnemic.respond.joined import JoinedWord

D, VOCAB = 5, 11
KINDS = ["dmn", "dmn-layers", "dmn-plus", "dmn-sum"]
PLAIN = {"kind": "gru", "fused": False}
STORIES = [
    ([[3, 4, 5], [6, 7], [8]], [9, 3]),
    ([[4, 4, 6, 7, 2]], [10]),
    ([[5, 1], [2, 3, 4], [9, 9], [1, 2]], [6, 7, 8]),
]


def model_of(name: str) -> dict[str, Any]:
    return load(name)["model"] | {"width": D}


def network_of(name: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    network = assemble(model_of(name), {"vocab": VOCAB, "longest": 6}).eval()
    for weight in network.parameters():  # biases too: zeros would hide mistakes
        torch.nn.init.normal_(weight, std=0.5)
    return network.double()


def inputs_of(stories: list[Any], *, width: int = 0, length: int = 0) -> Inputs:
    """Every sentence and question a text of its own, with padding where there is room."""
    texts = [text for story, question in stories for text in (*story, question)]
    width = max(width, *(len(text) for text in texts))
    table = torch.tensor([text + [0] * (width - len(text)) for text in texts])
    longest = max(length, *(len(story) for story, _ in stories))
    story_rows = torch.full((len(stories), longest), -1)
    questions, place = [], 0
    for number, (story, _) in enumerate(stories):
        story_rows[number, : len(story)] = torch.arange(place, place + len(story))
        questions.append([place + len(story)])
        place += len(story) + 1
    return Inputs(table, table > 0, story_rows, torch.tensor(questions))


# The slow twins --------------------------------------------------------------------------------


def gru(x: Tensor, h: Tensor, weights: tuple[Tensor, ...]) -> Tensor:
    """One step of one example, gate by gate (d each)."""
    w_in, w_back, b_in, b_back = weights
    given, back = (w_in @ x + b_in).split(len(h)), (w_back @ h + b_back).split(len(h))
    r, z = torch.sigmoid(given[0] + back[0]), torch.sigmoid(given[1] + back[1])
    return (1 - z) * torch.tanh(given[2] + r * back[2]) + z * h


def cell_weights(cell: Cell) -> tuple[Tensor, ...]:
    return cell.given.weight, cell.back.weight, cell.given.bias, cell.back.bias


def network_weights(recurrent: Any, number: int = 0) -> tuple[Tensor, ...]:
    return tuple(recurrent.layers.networks[number].all_weights[0])


def slow_gate(own: Any, c: Tensor, m: Tensor, q: Tensor) -> Tensor:
    pairs = torch.stack([c @ own.pair @ q, c @ own.pair @ m])
    z = torch.cat([c, q, m, c * q, (c - q).abs(), c * m, (c - m).abs(), pairs])
    first, second = own.gate.first, own.gate.second
    return (second.weight @ torch.tanh(first.weight @ z + first.bias) + second.bias)[0]


def slow_dmn(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, gates = q, []
    for _ in range(memory.passes):
        h, own = torch.zeros_like(q), []
        for c in facts:
            g = slow_gate(memory.attend.score, c, m, q).sigmoid()
            h = g * gru(c, h, cell_weights(memory.attend.cell)) + (1 - g) * h
            own.append(g)
        m = gru(h, m, cell_weights(memory.update))
        gates.append(torch.stack(own))
    return m, gates


def slow_layers(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, below, gates = q, facts, []
    for _ in range(memory.passes):
        h, own, layer = torch.zeros_like(q), [], []
        for c in below:
            g = slow_gate(memory.attend.score, c, m, q).sigmoid()
            h = g * gru(c, h, cell_weights(memory.attend.cell)) + (1 - g) * h
            own.append(g)
            layer.append(h)
        m, below = h, layer
        gates.append(torch.stack(own))
    return m, gates


def slow_plus(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, gates = q, []
    for own in memory.passes:
        scores = []
        for f in facts:
            z = torch.cat([f * q, (f - q).abs(), f * m, (f - m).abs()])
            hidden = torch.tanh(own.gate.first.weight @ z + own.gate.first.bias)
            scores.append(own.gate.second.weight[0] @ hidden)
        g = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
        h, size = torch.zeros_like(q), len(q)
        for f, gate in zip(facts, g):
            given, back = own.gru.given(f), own.gru.back.weight @ h
            r = torch.sigmoid(given[:size] + back[:size])
            h = gate * torch.tanh(given[size:] + r * back[size:]) + (1 - gate) * h
        m = (own.update.weight @ torch.cat([m, h, q]) + own.update.bias).clamp(min=0)
        gates.append(g)
    return m, gates


def slow_sum(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, shares = q, []
    for _ in range(memory.passes):
        size = torch.stack([slow_gate(memory.score, c, m, q).exp() for c in facts])
        shares.append(size / size.sum())
        episode = sum((share * c for share, c in zip(shares[-1], facts)), torch.zeros_like(q))
        m = gru(episode, m, cell_weights(memory.update))
    return m, shares


SLOW: dict[str, Callable[..., Any]] = {
    "dmn": slow_dmn,
    "dmn-layers": slow_layers,
    "dmn-plus": slow_plus,
    "dmn-sum": slow_sum,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [1, 3])
def test_equals_the_papers_equations(kind: str, passes: int) -> None:
    torch.manual_seed(0)
    memory = build(MEMORIES, {"kind": kind, "passes": passes}, width=D).double()
    for weight in memory.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    states, query = torch.randn(2, 4, 1, D).double(), torch.randn(2, 3, 1, D).double()
    mask = torch.tensor([[True, True, True, True], [True, False, True, False]])
    reading = memory.read(memory.write(memory.empty(2, states), states, mask).state, query)
    for row in range(2):
        facts = list(states[row, mask[row], 0])
        for asked in range(3):
            m, gates = SLOW[kind](memory, facts, query[row, asked, 0])
            torch.testing.assert_close(reading.found[row, asked], m)
            read = reading.weights[row, :, 0, asked]
            torch.testing.assert_close(read[:, mask[row]], torch.stack(gates))
            assert read[:, ~mask[row]].eq(0).all()


def test_dmn_reads_all_words_and_keeps_the_states_at_sentence_ends() -> None:
    """The whole network, from word ids to scores, one story at a time."""
    network = network_of("dmn")
    assert isinstance(network.fuse, WordByWordFusion)
    assert isinstance(network.respond, DecodedWord)
    output = network(inputs_of(STORIES, width=7, length=6))
    words = network.encode.words
    for number, (story, question) in enumerate(STORIES):
        h, facts = words.new_zeros(D), []
        for sentence in story:
            for word in sentence:
                h = gru(words[word], h, network_weights(network.fuse.recurrent))
            facts.append(h)
        q = words.new_zeros(D)
        for word in question:
            q = gru(words[word], q, network_weights(network.ask.recurrent))
        m, _ = slow_dmn(network.memory, facts, q)
        scores = network.respond.words.weight @ gru(q, m, cell_weights(network.respond.cell))
        torch.testing.assert_close(output.scores[number, 0], scores)


def test_dmn_plus_fuses_sentences_and_joins_question_and_memory() -> None:
    network = network_of("dmn-plus")
    assert isinstance(network.respond, JoinedWord)
    output = network(inputs_of(STORIES, width=7, length=6))
    words = network.encode.words
    k, longest = torch.arange(1, D + 1).double(), 6
    for number, (story, question) in enumerate(STORIES):
        sentences = []
        for sentence in story:
            total = words.new_zeros(D)
            for j, word in enumerate(sentence, start=1):
                place = 1 + 4 * (k - (D + 1) / 2) * (j - (longest + 1) / 2) / (D * longest)
                total = total + place * words[word]
            sentences.append(total)
        ways = []
        for direction, order in ((0, sentences), (1, sentences[::-1])):
            h, read = words.new_zeros(D), []
            for f in order:
                h = gru(f, h, network_weights(network.fuse.recurrent, direction))
                read.append(h)
            ways.append(read if direction == 0 else read[::-1])
        facts = [one + other for one, other in zip(*ways)]
        q = words.new_zeros(D)
        for word in question:
            q = gru(words[word], q, network_weights(network.ask.recurrent))
        m, _ = slow_plus(network.memory, facts, q)
        torch.testing.assert_close(
            output.scores[number, 0], network.respond.words(torch.cat([q, m]))
        )


# Meaning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dmn", "dmn-plus"])
def test_padding_and_the_other_stories_change_nothing(name: str) -> None:
    network = network_of(name)
    together = network(inputs_of(STORIES, width=9, length=8))
    for number, story in enumerate(STORIES):
        alone = network(inputs_of([story]))
        torch.testing.assert_close(alone.scores[0], together.scores[number])
        told = len(story[0])
        read = together.reading.weights[number]
        torch.testing.assert_close(alone.reading.weights[0], read[..., :told])
        assert read[..., told:].eq(0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_episodic_the_same_state_gives_other_episodes_for_another_question(kind: str) -> None:
    torch.manual_seed(0)
    memory = build(MEMORIES, {"kind": kind}, width=D)
    states = torch.randn(1, 6, 1, D)
    state = memory.write(memory.empty(1, states), states, torch.ones(1, 6) > 0).state
    kept = [part.clone() for part in state]
    one, other = (memory.read(state, torch.randn(1, 1, 1, D)) for _ in range(2))
    assert (one.weights - other.weights).abs().amax((0, 2, 3, 4)).gt(1e-3).all()  # in every pass
    assert all(torch.equal(part, before) for part, before in zip(state, kept))


def test_a_sentence_without_a_known_word_is_zeros_and_does_not_disturb_the_others() -> None:
    fusion = WordByWordFusion(D, recurrent=PLAIN)
    states = torch.randn(1, 3, 4, D)
    words = torch.tensor([[[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]]) > 0
    read = fusion(states, torch.ones(1, 3) > 0, words)
    without = fusion(states[:, ::2], torch.ones(1, 2) > 0, words[:, ::2])
    torch.testing.assert_close(read[:, ::2], without)
    assert read[:, 1].eq(0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{"passes": 0}, {"slots": 0}])
def test_no_passes_and_no_slots_are_refused(kind: str, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="passes and slots ≥ 1"):
        build(MEMORIES, {"kind": kind, **options}, width=D)


@pytest.mark.parametrize("name", ["dmn", "dmn-plus"])
def test_many_networks_as_one_program(name: str) -> None:
    networks = [network_of(name, seed) for seed in range(2)]
    inputs = inputs_of(STORIES)
    stacked = Inputs(*(torch.stack([part, part]) for part in inputs[:4]))
    together = Many(networks).eval()(stacked)
    for run, network in enumerate(networks):
        alone = network(inputs)
        torch.testing.assert_close(together.scores[run], alone.scores)
        torch.testing.assert_close(together.reading.weights[run], alone.reading.weights)


# Learning --------------------------------------------------------------------------------------


def trained(recipe: dict[str, Any], data: Any) -> Any:
    networks = new_networks(recipe, data, [0])
    pools = [torch.arange(len(data.train))]
    for _ in fit_many(recipe, data, networks, seeds=[0], pools=pools, device=torch.device("cpu")):
        pass
    return networks[0].eval()


FUSED = [f"model.{part}.recurrent.fused=true" for part in ("fuse", "ask")]


def test_a_tiny_dmn_plus_learns_one_supporting_fact() -> None:
    made = 'data={kind="generated", tasks=[1], count=1000}'
    short = ["train.epochs=8", "train.batch=32", "train.rate=0.003", "model.width=24"]
    recipe = load("dmn-plus", [made, *short, *FUSED])
    data: Any = data_of(recipe)
    assert task_errors(trained(recipe, data), data.test)[1] < 10


def test_a_tiny_dmn_is_taught_which_sentence_to_read() -> None:
    """Two facts: the first pass of a strongly supervised DMN finds who had the thing last."""
    made = 'data={kind="generated", tasks=[2], count=1500, sentences=12}'
    short = ["train.rate=0.003", "model.width=32", "model.memory.passes=2", "phases=[{}]"]
    short += ["train.batch=32", "train.buckets=1", 'train.schedule={kind="constant"}']
    short += ["train.epochs=4", "train.keep=last", "train.patience=0"]
    recipe = load("dmn", [made, *short, *FUSED])
    data: Any = data_of(recipe)
    hits = {}
    for facts in (0.0, 1.0):
        taught = recipe | {"objective": recipe["objective"] | {"facts": facts}}
        network = trained(taught, data)
        batch = data.test.batch((data.test.chain[:, 0] >= 0).nonzero()[:300, 0])
        with torch.no_grad():
            gates = network(batch.inputs).reading.weights[:, 0, 0, 0]  # b s, of the first pass
        hits[facts] = float((gates.argmax(-1) == batch.chain[:, 0]).double().mean())
    assert hits[1.0] > 0.9
    assert hits[0.0] < 0.5  # answers alone do not tell it in so few steps
