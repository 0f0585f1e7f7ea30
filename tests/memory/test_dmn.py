"""DMN and DMN+ against the papers' equations in slow loops, and what their passes mean.

Shapes: b batch, n sentences, w words, m queries, s slots, k passes, d width.
"""

from typing import Any

import pytest
import torch
from dmn_slow import SLOW, cell_weights, gru, network_weights, slow_dmn, slow_plus
from story_runs import inputs_of

from mnemic.encode.fusion import WordByWordFusion
from mnemic.memory import MEMORIES
from mnemic.models import StoryInputs, build_model
from mnemic.models.ensemble import StackedNetworks
from mnemic.recipe import build, load_recipe
from mnemic.respond.word_decoder import GRUWordHead
from mnemic.respond.word_joint import JointWordHead

D, VOCAB = 5, 11
KINDS = ["dmn", "dmn-layers", "dmn-plus", "dmn-sum"]
PLAIN = {"kind": "gru", "fused": False}
STORIES = [
    ([[3, 4, 5], [6, 7], [8]], [9, 3]),
    ([[4, 4, 6, 7, 2]], [10]),
    ([[5, 1], [2, 3, 4], [9, 9], [1, 2]], [6, 7, 8]),
]


def model_of(name: str) -> dict[str, Any]:
    return load_recipe(name)["model"] | {"width": D}


def network_of(name: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    network = build_model(model_of(name), {"vocab": VOCAB, "max_length": 6}).eval()
    for weight in network.parameters():  # biases too: zeros would hide mistakes
        torch.nn.init.normal_(weight, std=0.5)
    return network.double()


# The slow twins --------------------------------------------------------------------------------


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
    assert isinstance(network.respond, GRUWordHead)
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
        torch.testing.assert_close(output.logits[number, 0], scores)


def test_dmn_plus_fuses_sentences_and_joins_question_and_memory() -> None:
    network = network_of("dmn-plus")
    assert isinstance(network.respond, JointWordHead)
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
        torch.testing.assert_close(output.logits[number, 0], network.respond.words(torch.cat([q, m])))


# Meaning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dmn", "dmn-plus"])
def test_padding_and_the_other_stories_change_nothing(name: str) -> None:
    network = network_of(name)
    together = network(inputs_of(STORIES, width=9, length=8))
    for number, story in enumerate(STORIES):
        alone = network(inputs_of([story]))
        torch.testing.assert_close(alone.logits[0], together.logits[number])
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
    stacked = StoryInputs(*(torch.stack([part, part]) for part in inputs[:4]))
    together = StackedNetworks(networks).eval()(stacked)
    for run, network in enumerate(networks):
        alone = network(inputs)
        torch.testing.assert_close(together.logits[run], alone.logits)
        torch.testing.assert_close(together.reading.weights[run], alone.reading.weights)
