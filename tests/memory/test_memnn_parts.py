"""Parts of MemNN besides its read: several answers, exact matches, unseen words, forgetting.

Shapes: b batch, m queries, n sentences, s slots, t tables, v vocabulary, d width.
"""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data.babi.batches import build_tokenizer, encode_examples, split_multiword_answers
from mnemic.data.babi.format import StoryExample
from mnemic.encode import ContextBag, ExactMatch
from mnemic.memory.append import find_slots
from mnemic.memory.contract import Reading
from mnemic.memory.memnn import MemNN
from mnemic.models import IGNORE, MemoryNetwork
from mnemic.models.ensemble import StackedNetworks
from mnemic.objectives.ranking import salience_loss, sort_by_time
from mnemic.predict import ask_story
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble
from mnemic.respond.word_match import MatchWordHead
from mnemic.respond.words import MultiWordHead
from mnemic.text import WordTokenizer
from mnemic.train.run import fit, load_data

D = 6
CPU = torch.device("cpu")


def recipe_of(task: int, more_overrides: list[str], count: int = 400, name: str = "memnn") -> Recipe:
    data_override = f'data={{kind="generated", tasks=[{task}], count={count}, sentences=100}}'
    overrides = ["train.validate=0", "train.epochs=8", "train.schedule.every=4", "train.rate=0.02"]
    return load_recipe(name, [data_override, *overrides, "model.width=20", *more_overrides])


def train_network(recipe: Recipe) -> tuple[MemoryNetwork, Any]:
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0])
    rows_per_run = [torch.arange(len(data.train))]
    for _ in train_ensemble(recipe, data, networks, seeds=[0], rows_per_run=rows_per_run, device=CPU):
        pass
    return networks[0].eval(), data


# Several answers -------------------------------------------------------------------------------

SPELLINGS = [[4, 2, 3], [5, 3, 2, 6], [1, 2, 7]]  # 6 and 7 are no entries of the vocabulary of 6


def make_reading(output: Tensor) -> Reading:
    return Reading(output, *[torch.zeros(1)] * 2)


def compute_logits(respond: Any, output: Tensor) -> Tensor:
    return respond(torch.zeros(1), make_reading(output), torch.zeros(1), torch.zeros(1))


def test_an_answer_is_the_sum_of_its_steps() -> None:
    """In loops: word after word, each after the previous ones, then "no more"."""
    torch.manual_seed(0)
    respond = MultiWordHead(D, 6, SPELLINGS)
    for weight in respond.parameters():
        torch.nn.init.normal_(weight)
    outputs = torch.randn(2, 3, D)
    answers = {entry: [entry] for entry in range(6)}
    answers |= {entry: words for entry, *words in SPELLINGS}
    logits, (weight,) = compute_logits(respond, outputs), respond.match.parameters()
    assert respond.said is not None

    def embed(vector: Tensor) -> Tensor:
        return (weight @ vector.tanh()).tanh()

    for row in range(2):
        for query_index in range(3):
            for entry, words in answers.items():
                total, state = torch.zeros(()), outputs[row, query_index]
                for word in [*words, 8]:
                    total = total + embed(state) @ embed(respond.table[word])
                    state = state + (respond.said[word] if word < 8 else 0)
                torch.testing.assert_close(logits[row, query_index, entry], total)


def test_without_answers_of_several_words_it_equals_the_match_head() -> None:
    torch.manual_seed(0)
    multi_word, match = MultiWordHead(D, 6), MatchWordHead(D, 6)
    multi_word.load_state_dict(match.state_dict(), strict=True)
    outputs = torch.randn(2, 3, D)
    torch.testing.assert_close(compute_logits(multi_word, outputs), compute_logits(match, outputs))


def test_answers_of_several_words_are_spelled() -> None:
    examples = [StoryExample(("The milk.",), "What?", answer, (0,), 8) for answer in ("milk,n", "n,e")]
    tokenizer = build_tokenizer(examples)
    new_ids = {"n": len(tokenizer), "e": len(tokenizer) + 1}
    assert split_multiword_answers(tokenizer) == [
        [tokenizer.id_of("milk,n"), tokenizer.id_of("milk"), new_ids["n"]],
        [tokenizer.id_of("n,e"), new_ids["n"], new_ids["e"]],
    ]
    assert split_multiword_answers(WordTokenizer.from_texts(["the milk"])) == []


def test_stacked_heads_for_several_words_equal_single_ones() -> None:
    recipe = recipe_of(8, ["model.respond={kind='several'}"], count=60)
    data = load_data(recipe)
    assert data.sizes["spelled"]
    networks = create_networks(recipe, data, [0, 1])
    rows = torch.arange(8).view(2, 4)
    together = StackedNetworks(networks)(data.train.batch(rows).inputs).logits
    for run, network in enumerate(networks):
        alone = network(data.train.batch(rows[run]).inputs).logits
        torch.testing.assert_close(together[run], alone)


def test_answers_of_two_words_are_learned_and_saved(tmp_path: Any) -> None:
    """Path finding, with the facts given: each of two words comes from one fact."""
    overrides = ["model.respond={kind='several'}", "model.memory.order=0.5", "model.width=40"]
    overrides += ["train.epochs=15", "model.encode={kind='ngrams'}", "model.memory.match.kind=tanh"]
    recipe = recipe_of(19, overrides, count=1000)
    for _ in fit(recipe, tmp_path, seed=0):
        pass
    checkpoint, data = load_checkpoint(tmp_path), load_data(recipe)
    assert checkpoint.sizes["spelled"] == data.sizes["spelled"]
    batch = data.test.batch(torch.arange(300))
    with torch.no_grad():
        logits = checkpoint.network.eval()(batch.inputs, batch.chain.unsqueeze(1)).logits
    wrong = logits[:, 0].argmax(-1) != batch.answers[:, 0]
    assert wrong.float().mean() < 0.6  # guessing: 0.92


# Exact matches and unseen words ----------------------------------------------------------------


@pytest.mark.parametrize(("channels", "tolerance"), [(12, 1e-6), (4000, 0.5)])
def test_exact_channels_count_shared_words(channels: int, tolerance: float) -> None:
    """With one channel per word, or fewer channels than words (approximately)."""
    torch.manual_seed(0)
    vocab = 9 if channels == 12 else 5000
    encode = ExactMatch(channels + 4, vocab, 3, tables=2, channels=channels, weight=0.25)
    texts = torch.tensor([[1, 2, 2, 0], [2, 3, vocab, 0], [vocab, vocab + 2, 1, 0]])
    states = encode(texts, texts > 0)
    inner = encode.of(torch.where(texts < vocab, texts, 0), (texts > 0) & (texts < vocab))
    for first, second in pairwise(range(3)):
        shared = sum(
            int(first_word == second_word)
            for first_word in texts[first]
            for second_word in texts[second]
            if first_word > 0
        )
        inner_product = inner[first, 0] @ inner[second, 1]
        product = states[first, 0] @ states[second, 1]
        torch.testing.assert_close(product - inner_product, torch.tensor(0.25 * shared), atol=tolerance, rtol=0)


def test_an_unseen_word_is_encoded_by_its_neighbors() -> None:
    torch.manual_seed(0)
    encode = ContextBag(D, 10, 4, tables=2).eval()
    texts = torch.tensor([[3, 12, 5, 13], [11, 0, 0, 0], [3, 4, 5, 0]])
    states = encode(texts, texts > 0)
    for table in range(2):
        word_table, left_table, right_table = encode.tables[table].split(10)
        expected = word_table[3] + word_table[5] + left_table[3] + right_table[5] + left_table[5]
        torch.testing.assert_close(states[0, table], expected)
        assert states[1, table].eq(0).all()
        torch.testing.assert_close(states[2, table], word_table[3] + word_table[4] + word_table[5])


def test_words_are_hidden_in_training_at_the_configured_rate() -> None:
    encode = ContextBag(1, 3, hide_rate=0.2).train()
    with torch.no_grad():
        encode.tables[0][:] = torch.tensor([[0.0], [1.0], [0.0]] + [[0.0]] * 6)
    torch.manual_seed(0)
    texts = torch.ones(100_000, 1, dtype=torch.long)
    mean = encode(texts, texts > 0).mean()
    assert abs(mean.item() - 0.8) < 0.01


def test_unknown_words_keep_their_ids() -> None:
    example = StoryExample(("Zed likes milk.", "Bob likes Zed."), "Who likes milk?", "milk", (0,), 1)
    tokenizer = WordTokenizer.from_texts(["likes milk"])
    without_unseen, with_unseen = (
        encode_examples([example], tokenizer),
        encode_examples([example], tokenizer, num_unseen=500),
    )
    assert (without_unseen.texts > 0).sum() == 2 + 1 + 2
    assert (with_unseen.texts > 0).sum() == 3 + 3 + 3
    first, second, _ = with_unseen.texts.tolist()
    assert first[0] == second[2] >= len(tokenizer)
    assert first[0] != second[0]


def test_a_bag_cannot_read_unseen_words() -> None:
    recipe = recipe_of(1, ["data.unseen=5"])
    with pytest.raises(ConfigError, match=r"model\.encode\.kind is then 'context' or 'exact'"):
        create_networks(recipe, load_data(recipe), [0])


@pytest.mark.parametrize("inner_kind", ["bag", "context"])
def test_unseen_names_are_found_by_exact_match(inner_kind: str, tmp_path: Any) -> None:
    """Only the same name in question and sentence shows which sentence is right."""
    inner_spec = "{kind='bag', position=false}" if inner_kind == "bag" else "{kind='context', hidden=0.3}"
    encode_override = f"model.encode={{kind='exact', channels=80, weight=1, of={inner_spec}}}"
    recipe = recipe_of(1, [encode_override, "data.unseen=100", "model.width=100", "model.memory.hops=1"])
    for _ in fit(recipe, tmp_path, seed=0):
        pass
    checkpoint = load_checkpoint(tmp_path)
    story = ["Zelda went to the office.", "Quentin moved to the garden.", "Ottokar went to the hallway."]
    answers = [ask_story(checkpoint, story, f"Where is {name}?") for name in ("Zelda", "Quentin", "Ottokar")]
    assert [answer.best_evidence(1)[0].sentence for answer in answers] == [0, 1, 2]
    assert [answer.text for answer in answers] == ["office", "garden", "hallway"]
    assert any("which is new in the question" in note for note in answers[0].notes)


# Forgetting ------------------------------------------------------------------------------------


def test_the_least_useful_sentence_is_evicted_first() -> None:
    """Once the memory is full, each write evicts the lowest salience, maybe the new one."""
    for seed in range(20):
        torch.manual_seed(seed)
        memory = MemNN(D, slots=3, forget={"kind": "useless"})
        states = torch.randn(2, 8, 5, D)
        mask = torch.rand(2, 8) < 0.8
        written = memory.write(memory.empty(2, states), states, mask)
        salience = memory.forget.score_salience(states).tolist()
        for row in range(2):
            stored: list[int] = []
            for position in range(8):
                if mask[row, position]:
                    stored.append(position)
                if len(stored) > 3:
                    stored.remove(min(stored, key=salience[row].__getitem__))
            mask_row = written.state.mask[row]
            assert torch.equal(written.state.states[row][mask_row], states[row][stored])
            assert written.weights[row].sum(1).nonzero().flatten().tolist() == stored


def test_the_salience_loss_raises_facts() -> None:
    salience = torch.tensor([[0.5, 0.0, 0.3, -1e30], [0.0, 0.0, 0.0, 0.0]])
    facts = torch.tensor([[[1, 2]], [[-1, IGNORE]]])
    losses = salience_loss(salience, facts, 0.1)
    torch.testing.assert_close(losses, torch.tensor([0.6 + 0.3, 0.0]))


def test_sort_by_time_orders_chains_of_facts() -> None:
    chain = torch.tensor([[5, 2, 7], [3, IGNORE, IGNORE], [4, 1, IGNORE]])
    assert sort_by_time(chain).tolist() == [[2, 5, 7], [3, IGNORE, IGNORE], [1, 4, IGNORE]]


def test_a_small_memory_that_forgets_the_useless_answers_more() -> None:
    """Who gave what to whom, among many sentences about movements."""
    errors = {}
    for kind in ("oldest", "useless"):
        recipe = recipe_of(5, [f"model.memory.forget.kind={kind}", "model.encode.kind=ngrams"])
        recipe["model"]["encode"].pop("position", None)
        network, data = train_network(recipe)
        network.memory.num_slots = 2
        written = network(data.test.batch(torch.arange(300)).inputs).written
        chain = data.test.batch(torch.arange(300)).chain
        errors[kind] = float((find_slots(chain.unsqueeze(1), written.weights)[:, 0, 0] < 0).float().mean())
    assert errors["useless"] < 0.5 * errors["oldest"]
