"""What MemNN has besides its read: several answers, exact matches, unseen words, forgetting.

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


def recipe_of(task: int, sets: list[str], count: int = 400, name: str = "memnn") -> Recipe:
    made = f'data={{kind="generated", tasks=[{task}], count={count}, sentences=100}}'
    short = ["train.validate=0", "train.epochs=8", "train.schedule.every=4", "train.rate=0.02"]
    return load_recipe(name, [made, *short, "model.width=20", *sets])


def trained(recipe: Recipe) -> tuple[MemoryNetwork, Any]:
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0])
    pools = [torch.arange(len(data.train))]
    for _ in train_ensemble(recipe, data, networks, seeds=[0], rows_per_run=pools, device=CPU):
        pass
    return networks[0].eval(), data


# Several answers -------------------------------------------------------------------------------

SPELLED = [[4, 2, 3], [5, 3, 2, 6], [1, 2, 7]]  # 6 and 7 are no entries of the vocabulary of 6


def reading_of(found: Tensor) -> Reading:
    return Reading(found, *[torch.zeros(1)] * 2)


def scored(respond: Any, found: Tensor) -> Tensor:
    return respond(torch.zeros(1), reading_of(found), torch.zeros(1), torch.zeros(1))


def test_an_answer_is_the_sum_of_its_steps() -> None:
    """Word after word, each seeing those before, then "no more": in loops."""
    torch.manual_seed(0)
    respond = MultiWordHead(D, 6, SPELLED)
    for weight in respond.parameters():
        torch.nn.init.normal_(weight)
    found = torch.randn(2, 3, D)
    answers = {entry: [entry] for entry in range(6)}
    answers |= {entry: words for entry, *words in SPELLED}
    scores, (weight,) = scored(respond, found), respond.match.parameters()
    assert respond.said is not None

    def embedded(vector: Tensor) -> Tensor:
        return (weight @ vector.tanh()).tanh()

    for row in range(2):
        for m in range(3):
            for entry, words in answers.items():
                total, asked = torch.zeros(()), found[row, m]
                for word in [*words, 8]:
                    total = total + embedded(asked) @ embedded(respond.table[word])
                    asked = asked + (respond.said[word] if word < 8 else 0)
                torch.testing.assert_close(scores[row, m, entry], total)


def test_without_answers_of_several_words_it_is_matched() -> None:
    torch.manual_seed(0)
    several, matched = MultiWordHead(D, 6), MatchWordHead(D, 6)
    several.load_state_dict(matched.state_dict(), strict=True)
    found = torch.randn(2, 3, D)
    torch.testing.assert_close(scored(several, found), scored(matched, found))


def test_answers_of_several_words_are_spelled() -> None:
    examples = [StoryExample(("The milk.",), "What?", answer, (0,), 8) for answer in ("milk,n", "n,e")]
    words = build_tokenizer(examples)
    new = {"n": len(words), "e": len(words) + 1}
    assert split_multiword_answers(words) == [
        [words.id_of("milk,n"), words.id_of("milk"), new["n"]],
        [words.id_of("n,e"), new["n"], new["e"]],
    ]
    assert split_multiword_answers(WordTokenizer.from_texts(["the milk"])) == []


def test_many_runs_answer_with_several_words_as_each_alone() -> None:
    recipe = recipe_of(8, ["model.respond={kind='several'}"], count=60)
    data = load_data(recipe)
    assert data.sizes["spelled"]
    networks = create_networks(recipe, data, [0, 1])
    rows = torch.arange(8).view(2, 4)
    together = StackedNetworks(networks)(data.train.batch(rows).inputs).logits
    for run, network in enumerate(networks):
        alone = network(data.train.batch(rows[run]).inputs).logits
        torch.testing.assert_close(together[run], alone)


def test_two_steps_are_learned_and_kept(tmp_path: Any) -> None:
    """Path finding told the facts: the two words of an answer come from one fact each."""
    sets = ["model.respond={kind='several'}", "model.memory.order=0.5", "model.width=40"]
    sets += ["train.epochs=15", "model.encode={kind='ngrams'}", "model.memory.match.kind=tanh"]
    recipe = recipe_of(19, sets, count=1000)
    for _ in fit(recipe, tmp_path, seed=0):
        pass
    checkpoint, data = load_checkpoint(tmp_path), load_data(recipe)
    assert checkpoint.sizes["spelled"] == data.sizes["spelled"]
    batch = data.test.batch(torch.arange(300))
    with torch.no_grad():
        scores = checkpoint.network.eval()(batch.inputs, batch.chain.unsqueeze(1)).logits
    wrong = scores[:, 0].argmax(-1) != batch.answers[:, 0]
    assert wrong.float().mean() < 0.6  # by chance 0.92


# Exact matches and unseen words ----------------------------------------------------------------


@pytest.mark.parametrize(("channels", "tolerance"), [(12, 1e-6), (4000, 0.5)])
def test_exact_channels_count_shared_words(channels: int, tolerance: float) -> None:
    """With a channel a word, and with fewer channels than (very many) words, up to chance."""
    torch.manual_seed(0)
    vocab = 9 if channels == 12 else 5000
    encode = ExactMatch(channels + 4, vocab, 3, tables=2, channels=channels, weight=0.25)
    texts = torch.tensor([[1, 2, 2, 0], [2, 3, vocab, 0], [vocab, vocab + 2, 1, 0]])
    states = encode(texts, texts > 0)
    inner = encode.of(torch.where(texts < vocab, texts, 0), (texts > 0) & (texts < vocab))
    for one, other in pairwise(range(3)):
        shared = sum(int(a == b) for a in texts[one] for b in texts[other] if a > 0)
        plain = inner[one, 0] @ inner[other, 1]
        found = states[one, 0] @ states[other, 1]
        torch.testing.assert_close(found - plain, torch.tensor(0.25 * shared), atol=tolerance, rtol=0)


def test_an_unseen_word_is_its_neighbours() -> None:
    torch.manual_seed(0)
    encode = ContextBag(D, 10, 4, tables=2).eval()
    texts = torch.tensor([[3, 12, 5, 13], [11, 0, 0, 0], [3, 4, 5, 0]])
    states = encode(texts, texts > 0)
    for table in range(2):
        word, left, right = encode.tables[table].split(10)
        expected = word[3] + word[5] + left[3] + right[5] + left[5]
        torch.testing.assert_close(states[0, table], expected)
        assert states[1, table].eq(0).all()
        torch.testing.assert_close(states[2, table], word[3] + word[4] + word[5])


def test_words_are_hidden_in_training_as_often_as_said() -> None:
    encode = ContextBag(1, 3, hide_rate=0.2).train()
    with torch.no_grad():
        encode.tables[0][:] = torch.tensor([[0.0], [1.0], [0.0]] + [[0.0]] * 6)
    torch.manual_seed(0)
    texts = torch.ones(100_000, 1, dtype=torch.long)
    kept = encode(texts, texts > 0).mean()
    assert abs(kept.item() - 0.8) < 0.01


def test_unknown_words_keep_their_ids() -> None:
    example = StoryExample(("Zed likes milk.", "Bob likes Zed."), "Who likes milk?", "milk", (0,), 1)
    words = WordTokenizer.from_texts(["likes milk"])
    left_out, kept = encode_examples([example], words), encode_examples([example], words, num_unseen=500)
    assert (left_out.texts > 0).sum() == 2 + 1 + 2
    assert (kept.texts > 0).sum() == 3 + 3 + 3
    first, second, _ = kept.texts.tolist()
    assert first[0] == second[2] >= len(words)
    assert first[0] != second[0]


def test_a_bag_cannot_read_unseen_words() -> None:
    recipe = recipe_of(1, ["data.unseen=5"])
    with pytest.raises(ConfigError, match=r"model\.encode\.kind is then 'context' or 'exact'"):
        create_networks(recipe, load_data(recipe), [0])


@pytest.mark.parametrize("of", ["bag", "context"])
def test_people_nobody_has_met_are_found(of: str, tmp_path: Any) -> None:
    """Only that a name is the same in question and sentence can tell which sentence is meant."""
    inner = "{kind='bag', position=false}" if of == "bag" else "{kind='context', hidden=0.3}"
    exact = f"model.encode={{kind='exact', channels=80, weight=1, of={inner}}}"
    recipe = recipe_of(1, [exact, "data.unseen=100", "model.width=100", "model.memory.hops=1"])
    for _ in fit(recipe, tmp_path, seed=0):
        pass
    checkpoint = load_checkpoint(tmp_path)
    story = ["Zelda went to the office.", "Quentin moved to the garden.", "Ottokar went to the hallway."]
    answers = [ask_story(checkpoint, story, f"Where is {name}?") for name in ("Zelda", "Quentin", "Ottokar")]
    assert [answer.best_evidence(1)[0].sentence for answer in answers] == [0, 1, 2]
    assert [answer.text for answer in answers] == ["office", "garden", "hallway"]
    assert any("which is new in the question" in note for note in answers[0].notes)


# Forgetting ------------------------------------------------------------------------------------


def test_the_least_useful_leaves_one_by_one() -> None:
    """Sentence after sentence: once it is full, the one of least worth goes, the new one too."""
    for seed in range(20):
        torch.manual_seed(seed)
        memory = MemNN(D, slots=3, forget={"kind": "useless"})
        states = torch.randn(2, 8, 5, D)
        mask = torch.rand(2, 8) < 0.8
        written = memory.write(memory.empty(2, states), states, mask)
        worth = memory.forget.score_salience(states).tolist()
        for row in range(2):
            kept: list[int] = []
            for place in range(8):
                if mask[row, place]:
                    kept.append(place)
                if len(kept) > 3:
                    kept.remove(min(kept, key=worth[row].__getitem__))
            real = written.state.mask[row]
            assert torch.equal(written.state.states[row][real], states[row][kept])
            assert written.weights[row].sum(1).nonzero().flatten().tolist() == kept


def test_facts_are_taught_to_be_worth_more() -> None:
    worth = torch.tensor([[0.5, 0.0, 0.3, -1e30], [0.0, 0.0, 0.0, 0.0]])
    facts = torch.tensor([[[1, 2]], [[-1, IGNORE]]])
    lost = salience_loss(worth, facts, 0.1)
    torch.testing.assert_close(lost, torch.tensor([0.6 + 0.3, 0.0]))


def test_proofs_in_the_order_they_were_told() -> None:
    chain = torch.tensor([[5, 2, 7], [3, IGNORE, IGNORE], [4, 1, IGNORE]])
    assert sort_by_time(chain).tolist() == [[2, 5, 7], [3, IGNORE, IGNORE], [1, 4, IGNORE]]


def test_a_small_memory_that_forgets_the_useless_answers_more() -> None:
    """Who gave what to whom, among many who only went somewhere."""
    errors = {}
    for kind in ("oldest", "useless"):
        recipe = recipe_of(5, [f"model.memory.forget.kind={kind}", "model.encode.kind=ngrams"])
        recipe["model"]["encode"].pop("position", None)
        network, data = trained(recipe)
        network.memory.num_slots = 2
        written = network(data.test.batch(torch.arange(300)).inputs).written
        chain = data.test.batch(torch.arange(300)).chain
        errors[kind] = float((find_slots(chain.unsqueeze(1), written.weights)[:, 0, 0] < 0).float().mean())
    assert errors["useless"] < 0.5 * errors["oldest"]
