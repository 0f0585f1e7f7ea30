"""The complete working memory network: its parts, stacked networks, and learning."""

from typing import Any

import torch
from story_runs import trained
from torch import Tensor

from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.models import MemoryNetwork, StoryInputs, build_model
from mnemic.models.ensemble import StackedNetworks
from mnemic.recipe import load_recipe
from mnemic.train.run import load_data

D, VOCAB, SLOTS = 4, 9, 5


# The complete network --------------------------------------------------------------------------

RECURRENT = {"kind": "gru", "fused": False}
MODEL = {
    "width": D,
    "encode": {"kind": "recurrent-sentence", "deviation": 1.0, "recurrent": RECURRENT},
    "ask": {"kind": "recurrent-sentence", "recurrent": RECURRENT},
    "memory": {"kind": "wmn", "hops": 2, "heads": 3, "slots": SLOTS},
    "respond": {"kind": "relation", "hidden": 7},
}


def network_of(seed: int = 0, **overrides: Any) -> MemoryNetwork:
    torch.manual_seed(seed)
    return build_model({**MODEL, **overrides}, {"vocab": VOCAB, "max_length": 6})


def inputs_of(batch: int = 3, seed: int = 0) -> StoryInputs:
    generator = torch.Generator().manual_seed(seed)
    texts = torch.randint(1, VOCAB, (7, 5), generator=generator)
    mask = torch.arange(5) < torch.randint(1, 6, (7, 1), generator=generator)
    story = torch.randint(-1, 7, (batch, 8), generator=generator)  # more than slots, padding anywhere
    question = torch.randint(7, (batch, 1), generator=generator)
    return StoryInputs(texts * mask, mask, story, question)


def test_questions_are_read_by_a_network_of_their_own_with_the_same_words() -> None:
    network = network_of()
    assert network.ask.words is network.encode.words
    ask_weights = dict(network.ask.recurrent.named_parameters())
    for name, weight in network.encode.recurrent.named_parameters():
        assert ask_weights[name] is not weight


def test_a_story_answers_alone_as_it_does_among_others() -> None:
    network, inputs = network_of(), inputs_of()
    together = network(inputs).logits
    for row in range(3):
        story, question = inputs.story[row : row + 1], inputs.question[row : row + 1]
        sentences = story[story >= 0][None]
        alone = network(inputs._replace(story=sentences, question=question)).logits[0]
        torch.testing.assert_close(alone, together[row])


def test_every_weight_learns() -> None:
    network = network_of()
    inputs = inputs_of()
    short = inputs._replace(story=inputs.story[:, :4])  # so that some slots are free
    network(short).logits.square().sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


def test_stacked_networks_equal_single_networks() -> None:
    networks = [network_of(seed) for seed in range(3)]
    inputs = [inputs_of(seed=seed) for seed in range(3)]
    stacked = StoryInputs(*(torch.stack(field) for field in list(zip(*inputs))[:4]))
    together = StackedNetworks(networks)(stacked)
    for run, (network, run_inputs) in enumerate(zip(networks, inputs)):
        alone = network(run_inputs)
        torch.testing.assert_close(together.logits[run], alone.logits)
        torch.testing.assert_close(together.reading.buffer[run], alone.reading.buffer)
        torch.testing.assert_close(together.reading.weights[run], alone.reading.weights)


def test_the_last_hop_alone_can_answer_too() -> None:
    network = network_of(respond={"kind": "word"})
    assert network(inputs_of()).logits.shape == (3, 1, VOCAB)


def test_the_recipe_is_the_papers() -> None:
    recipe = load_recipe("wmn")
    network = build_model(recipe["model"], {"vocab": 178, "max_length": 12})
    memory, respond = network.memory, network.respond
    assert (memory.hops, memory.heads, memory.num_slots) == (4, 8, 30)
    assert recipe["data"]["sentences"] == memory.num_slots
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


def test_a_tiny_wmn_learns_one_supporting_fact() -> None:
    data_override = 'data={kind="generated", tasks=[1], count=5000, sentences=30}'
    recipe = load_recipe("wmn", [data_override, *SMALL, "model.memory.hops=1", "train.epochs=6"])
    data = load_data(recipe)
    network = trained(recipe, data, 0)
    assert compute_task_errors(network, data.test)[1] < 10


def make_comparison_task(pairs: Tensor, num_words: int) -> tuple[StoryInputs, Tensor]:
    """Make stories of two one-word sentences; the answer says if they are equal."""
    texts = torch.arange(num_words + 1)[:, None] + 1  # the last one is the question
    question = torch.full((len(pairs), 1), num_words)
    answers = num_words + 2 + (pairs[:, 0] == pairs[:, 1]).long()
    return StoryInputs(texts, texts > 0, pairs, question), answers


def test_a_tiny_wmn_learns_to_compare_sentences() -> None:
    """No single sentence helps: it learns which of all pairs of six words are equal."""
    num_words = 6
    network = build_model({**MODEL, "width": 16}, {"vocab": num_words + 4, "max_length": 2})
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005)
    all_pairs = torch.cartesian_prod(torch.arange(num_words), torch.arange(num_words))  # 36 pairs
    for _ in range(500):
        first = torch.randint(num_words, (64,))
        second = torch.where(torch.rand(64) < 0.5, first, torch.randint(num_words, (64,)))
        inputs, answers = make_comparison_task(torch.stack([first, second], 1), num_words)
        loss = torch.nn.functional.cross_entropy(network(inputs).logits[:, 0], answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    inputs, answers = make_comparison_task(all_pairs, num_words)
    assert torch.equal(network(inputs).logits[:, 0].argmax(1), answers)
