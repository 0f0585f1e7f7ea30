"""DMN and DMN+ against the papers' equations in plain loops, and properties of their passes.

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


# Reference loops -------------------------------------------------------------------------------


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
        for query_index in range(3):
            m, gates = SLOW[kind](memory, facts, query[row, query_index, 0])
            torch.testing.assert_close(reading.found[row, query_index], m)
            weights = reading.weights[row, :, 0, query_index]
            torch.testing.assert_close(weights[:, mask[row]], torch.stack(gates))
            assert weights[:, ~mask[row]].eq(0).all()


def test_dmn_reads_all_words_and_keeps_the_states_at_sentence_ends() -> None:
    """The complete network, from token ids to logits, one story at a time."""
    network = network_of("dmn")
    assert isinstance(network.fuse, WordByWordFusion)
    assert isinstance(network.respond, GRUWordHead)
    output = network(inputs_of(STORIES, width=7, length=6))
    words = network.encode.words
    for row, (story, question) in enumerate(STORIES):
        h, facts = words.new_zeros(D), []
        for sentence in story:
            for word in sentence:
                h = gru(words[word], h, network_weights(network.fuse.recurrent))
            facts.append(h)
        q = words.new_zeros(D)
        for word in question:
            q = gru(words[word], q, network_weights(network.ask.recurrent))
        m, _ = slow_dmn(network.memory, facts, q)
        logits = network.respond.words.weight @ gru(q, m, cell_weights(network.respond.cell))
        torch.testing.assert_close(output.logits[row, 0], logits)


def test_dmn_plus_fuses_sentences_and_joins_question_and_memory() -> None:
    network = network_of("dmn-plus")
    assert isinstance(network.respond, JointWordHead)
    output = network(inputs_of(STORIES, width=7, length=6))
    words = network.encode.words
    k, max_words = torch.arange(1, D + 1).double(), 6
    for row, (story, question) in enumerate(STORIES):
        sentences = []
        for sentence in story:
            total = words.new_zeros(D)
            for j, word in enumerate(sentence, start=1):
                position_weights = 1 + 4 * (k - (D + 1) / 2) * (j - (max_words + 1) / 2) / (D * max_words)
                total = total + position_weights * words[word]
            sentences.append(total)
        directions = []
        for direction, order in ((0, sentences), (1, sentences[::-1])):
            h, states = words.new_zeros(D), []
            for sentence_state in order:
                h = gru(sentence_state, h, network_weights(network.fuse.recurrent, direction))
                states.append(h)
            directions.append(states if direction == 0 else states[::-1])
        facts = [forward_state + backward_state for forward_state, backward_state in zip(*directions)]
        q = words.new_zeros(D)
        for word in question:
            q = gru(words[word], q, network_weights(network.ask.recurrent))
        m, _ = slow_plus(network.memory, facts, q)
        torch.testing.assert_close(output.logits[row, 0], network.respond.words(torch.cat([q, m])))


# Properties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dmn", "dmn-plus"])
def test_padding_and_the_other_stories_change_nothing(name: str) -> None:
    network = network_of(name)
    together = network(inputs_of(STORIES, width=9, length=8))
    for row, story in enumerate(STORIES):
        alone = network(inputs_of([story]))
        torch.testing.assert_close(alone.logits[0], together.logits[row])
        num_sentences = len(story[0])
        weights = together.reading.weights[row]
        torch.testing.assert_close(alone.reading.weights[0], weights[..., :num_sentences])
        assert weights[..., num_sentences:].eq(0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_other_questions_give_other_episodes_from_the_same_state(kind: str) -> None:
    torch.manual_seed(0)
    memory = build(MEMORIES, {"kind": kind}, width=D)
    states = torch.randn(1, 6, 1, D)
    state = memory.write(memory.empty(1, states), states, torch.ones(1, 6) > 0).state
    snapshot = [field.clone() for field in state]
    first, second = (memory.read(state, torch.randn(1, 1, 1, D)) for _ in range(2))
    assert (first.weights - second.weights).abs().amax((0, 2, 3, 4)).gt(1e-3).all()  # in every pass
    assert all(torch.equal(field, before) for field, before in zip(state, snapshot))


def test_a_sentence_without_a_known_word_is_zeros_and_does_not_disturb_the_others() -> None:
    fusion = WordByWordFusion(D, recurrent=PLAIN)
    states = torch.randn(1, 3, 4, D)
    word_mask = torch.tensor([[[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]]) > 0
    fused = fusion(states, torch.ones(1, 3) > 0, word_mask)
    without = fusion(states[:, ::2], torch.ones(1, 2) > 0, word_mask[:, ::2])
    torch.testing.assert_close(fused[:, ::2], without)
    assert fused[:, 1].eq(0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{"passes": 0}, {"slots": 0}])
def test_no_passes_and_no_slots_are_refused(kind: str, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="passes and slots ≥ 1"):
        build(MEMORIES, {"kind": kind, **options}, width=D)


@pytest.mark.parametrize("name", ["dmn", "dmn-plus"])
def test_stacked_networks_equal_single_networks(name: str) -> None:
    networks = [network_of(name, seed) for seed in range(2)]
    inputs = inputs_of(STORIES)
    stacked = StoryInputs(*(torch.stack([field, field]) for field in inputs[:4]))
    together = StackedNetworks(networks).eval()(stacked)
    for index, network in enumerate(networks):
        alone = network(inputs)
        torch.testing.assert_close(together.logits[index], alone.logits)
        torch.testing.assert_close(together.reading.weights[index], alone.reading.weights)
