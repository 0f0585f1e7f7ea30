"""MemN2N against the paper's equations in slow loops, its noise counted, and that it learns.

Shapes: b batch, n sentences, m queries, s slots, k hops, t tables, d width.
"""

import re
from collections import Counter
from itertools import combinations
from math import ceil, comb, exp, sqrt
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.data.stories import dataset
from mnemic.data.stories.dataset import GeneratedStories, StoryData, story_data
from mnemic.encode import bag
from mnemic.encode.bag import Bag
from mnemic.learn.evaluate import task_errors
from mnemic.learn.fit import data_of
from mnemic.learn.fit_many import fit_many, new_networks
from mnemic.memory.memn2n import MemN2N, shift
from mnemic.memory.update import Linear
from mnemic.network import Inputs, Network, assemble
from mnemic.recipe import ConfigError, load

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
    return [
        float(table[age, k - 1]) * (place_weight(k, LONGEST, D, LONGEST) if ramp else 1.0)
        for k in range(1, D + 1)
    ]


def add(one: Vector, other: Vector) -> Vector:
    return [a + b for a, b in zip(one, other, strict=True)]


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def softmax(scores: Vector) -> Vector:
    total = sum(exp(score) for score in scores)
    return [exp(score) / total for score in scores]


def slow(network: Network, story: list[list[int]], question: list[int]) -> tuple[Any, Any]:
    """Scores of all words, and the weights of each hop: equations 1 to 5 as they are printed."""
    memory: MemN2N = network.memory
    tables = [table.detach() for table in network.encode.tables]
    times = [table.detach() for table in memory.time]
    position = network.encode.position
    ramp = not torch.equal(memory.last, torch.ones_like(memory.last))
    adjacent = memory.tying == "adjacent"
    told = story[-memory.slots :]

    def slots_of(table: int) -> list[Vector]:
        """All slots of the memory, the free ones as sentences without words."""
        slots = []
        for place, words in enumerate(told):
            vector = embed(words, tables[table], position)
            if times:
                age = len(told) - 1 - place
                vector = add(vector, when(age, times[table], ramp))
            slots.append(vector)
        free = memory.slots - len(told) if memory.spare and memory.softmax else 0
        return slots + [[0.0] * D for _ in range(free)]

    u = embed(question, tables[0 if adjacent else 2], position)
    weights = []
    for hop in range(memory.hops):
        keys, values = (
            (slots_of(hop), slots_of(hop + 1)) if adjacent else (slots_of(0), slots_of(1))
        )
        scores = [dot(u, key) for key in keys]
        shares = softmax(scores) if memory.softmax else scores
        found = [0.0] * D
        for share, value in zip(shares, values, strict=True):
            found = add(found, [share * number for number in value])
        linear = isinstance(memory.update, Linear)
        if linear:
            u = [dot(row, u) for row in memory.update.map.tolist()]
        u = add(u, found)
        if linear and memory.update.relu:
            u = [max(number, 0.0) for number in u]
        weights.append(shares[: len(told)])
    return [dot(u, row) for row in network.respond.table.tolist()], weights


def network_of(tied: bool = True, position: bool = True, **options: Any) -> Network:
    model = {
        "width": D,
        "encode": {"kind": "bag", "position": position},
        "memory": {"kind": "memn2n", "slots": SLOTS, **options},
        "respond": {"kind": "word", "tied": tied},
    }
    network = assemble(model, {"vocab": VOCAB, "longest": LONGEST}).double().eval()
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


def inputs_of(stories: list[tuple[list[list[int]], list[int]]]) -> Inputs:
    """As a data set would lay them out: all texts in one table, padded behind."""
    longest = max(len(story) for story, _ in stories)
    rows = [words for story, question in stories for words in (*story, question)]
    texts = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for number, words in enumerate(rows):
        texts[number, : len(words)] = torch.tensor(words)
    story_rows = torch.full((len(stories), longest), -1)
    question_rows, place = [], 0
    for number, (story, _) in enumerate(stories):
        story_rows[number, : len(story)] = torch.arange(place, place + len(story))
        question_rows.append([place + len(story)])
        place += len(story) + 1
    return Inputs(texts, texts > 0, story_rows, torch.tensor(question_rows))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hops": 1},
        {"position": False, "ramp": False},
        {"time": False, "position": False},
        {"softmax": False},
        {"spare": False},
        {"spare": False, "softmax": False, "hops": 2},
        {"tying": "layerwise", "tied": False},
        {"tying": "layerwise", "tied": False, "update": {"kind": "linear"}},
        {"tying": "layerwise", "tied": False, "update": RELU, "hops": 2},
        {"tying": "layerwise", "tied": False, "softmax": False},
        {"tying": "layerwise", "tied": False, "update": RELU, "time": False, "spare": False},
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
        torch.testing.assert_close(output.scores[number, 0], expected, atol=1e-5, rtol=1e-5)
        seen = output.written.state.mask[number]
        read = output.reading.weights[number, :, 0, 0][:, seen]
        expected = torch.tensor(weights, dtype=torch.float64).view(read.shape)
        torch.testing.assert_close(read, expected, atol=1e-5, rtol=1e-5)


def test_every_text_is_embedded_once_a_table_and_tables_are_shared() -> None:
    """Adjacent tying: hops + 1 tables in all, for B, every A and C, and W."""
    network = network_of(hops=3)
    names = [name for name, _ in network.named_parameters()]
    assert names == [
        *(f"encode.tables.{table}" for table in range(4)),
        *(f"memory.time.{table}" for table in range(4)),
    ]
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
    memory = MemN2N(4, hops=1, slots=5, spare=False).eval()
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
    ("options", "says"),
    [
        ({"slots": 0}, "slots"),
        ({"hops": 0}, "hops"),
        ({"noise": -0.1}, "noise"),
    ],
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


# Random noise ----------------------------------------------------------------------------------


def rolled(length: int, noise: float, count: int, slots: int = 50) -> Tensor:
    """The ages of ``length`` slots, oldest first, after ``count`` rolls."""
    memory = MemN2N(2, slots=slots, noise=noise)
    dice = torch.Generator().manual_seed(length)
    rolls = torch.rand(count, memory.rolls, generator=dice)
    ages = torch.arange(length - 1, -1, -1).expand(count, -1)
    return shift(ages, torch.ones(count, length, dtype=torch.bool), rolls, noise)


@pytest.mark.parametrize("length", [1, 2, 9, 10, 11, 37, 50])
def test_shifted_ages_stay_sorted_distinct_and_in_bounds(length: int) -> None:
    ages = rolled(length, 0.1, 2000)
    assert (ages[:, :-1] > ages[:, 1:]).all()
    assert ages.min() >= 0
    assert ages.max() == length + ceil(length / 10) - 1  # reached, and never passed


def test_at_most_a_tenth_is_added_at_every_length() -> None:
    """Rolls that keep the farthest places show how many blanks there can be."""
    for length in range(1, 51):
        farthest = torch.linspace(0.9, 0.1, 55)
        rolls = torch.cat([torch.tensor([0.999999]), farthest]).unsqueeze(0)
        ages = torch.arange(length).unsqueeze(0)
        found = shift(ages, torch.ones(1, length, dtype=torch.bool), rolls, 0.1)
        assert found.max().item() == length - 1 + -(-length // 10)


def test_every_set_of_gaps_is_equally_likely() -> None:
    """8 slots, 0 to 2 blanks, 20,000 rolls: each outcome as often as the definition says."""
    length, most, count = 8, 2, 20_000
    chance: Counter[tuple[int, ...]] = Counter()
    for blanks in range(most + 1):
        for kept in combinations(range(length + blanks), length):
            chance[kept] += 1 / (most + 1) / comb(length + blanks, length)  # type: ignore[assignment]
    ages = rolled(length, 0.25, count, slots=length)
    seen = Counter(tuple(sorted(row)) for row in ages.tolist())
    assert set(seen) <= set(chance)
    off = sum((seen[kept] - count * p) ** 2 / (count * p) for kept, p in chance.items())
    freedom = len(chance) - 1
    assert abs(off - freedom) < 5 * sqrt(2 * freedom)  # chi-square: mean and five deviations


def test_the_number_of_blanks_is_uniform() -> None:
    """Seen where the farthest places are kept, so that the oldest age tells the blanks."""
    length, most = 40, 4
    farthest = torch.linspace(0.9, 0.1, 55).expand(20_000, -1)
    first = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0))
    ages = torch.arange(length).expand(20_000, -1)
    mask = torch.ones(20_000, length, dtype=torch.bool)
    found = shift(ages, mask, torch.cat([first, farthest], 1), 0.1)
    blanks = (found.max(1).values - (length - 1)).bincount(minlength=most + 1)
    assert len(blanks) == most + 1
    assert (blanks / 20_000 - 1 / (most + 1)).abs().max() < 0.015


def test_rows_of_different_lengths_are_shifted_each_by_its_own() -> None:
    mask = torch.tensor([[True] * 20, [False] * 15 + [True] * 5, [False] * 20])
    ages = (mask.flip(1).long().cumsum(1).flip(1) - 1).clamp(min=0)
    dice = torch.Generator().manual_seed(0)
    tops = []
    for _ in range(200):
        found = shift(ages, mask, torch.rand(3, 56, generator=dice), 0.1)
        for row in range(3):
            real = found[row, mask[row]].tolist()
            assert real == sorted(set(real), reverse=True)
        tops.append((found[0, mask[0]].max().item(), found[1, mask[1]].max().item()))
    assert max(top for top, _ in tops) == 21
    assert max(top for _, top in tops) == 5


def test_noise_moves_ages_only_and_never_hides_a_slot() -> None:
    """With rolls, in training, another time is read; the oldest time is the end of the table."""
    memory = MemN2N(4, hops=1, slots=5, noise=1.0).train()
    with torch.no_grad():
        for table in memory.time:
            table.copy_(torch.arange(5.0).unsqueeze(1).expand(5, 4))
            table.div_(memory.last)  # undo the weight of the last place: time = age
    states = torch.zeros(300, 3, 2, 4)
    state = memory.write(memory.empty(300, states), states, states[:, :, 0, 0] == 0).state
    still = memory.timed(state, None)[0][..., 0]
    torch.testing.assert_close(still, torch.tensor([2.0, 1.0, 0.0]).expand(300, -1))
    moved = memory.timed(state, torch.rand(300, memory.rolls))[0][..., 0]
    assert (moved >= still - 1e-5).all()
    assert (moved.max(1).values > 2.5).float().mean() > 0.5
    assert moved.max() <= 4 + 1e-5  # 3 sentences, up to 3 blanks, but only 5 times
    assert torch.equal(memory.eval().timed(state, torch.rand(300, memory.rolls))[0][..., 0], still)


@pytest.mark.parametrize("options", [{"noise": 0.0}, {"time": False}])
def test_nothing_is_rolled_for_nothing(options: dict[str, Any]) -> None:
    assert MemN2N(4, **options).rolls == 0
    assert MemN2N(4, slots=50, noise=0.1).rolls == 56  # blanks, and a key for each of 55 places


# The bag of words ------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [True, False])
def test_counting_words_equals_looking_them_up(position: bool) -> None:
    encode = Bag(5, 20, tables=3, longest=8, position=position).double()
    tokens = torch.randint(20, (7, 6))
    mask = torch.rand(7, 6) < 0.7
    counted, looked_up = encode.counted(tokens, mask), encode.looked_up(tokens, mask)
    assert counted.shape == (7, 3, 5)
    torch.testing.assert_close(counted, looked_up)
    weights = torch.randn(7, 3, 5, dtype=torch.float64)
    tables = list(encode.tables)
    first = torch.autograd.grad((counted * weights).sum(), tables)
    second = torch.autograd.grad((looked_up * weights).sum(), tables)
    torch.testing.assert_close(first, second)


def test_large_vocabularies_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Bag(5, 20, longest=8)
    tokens, mask = torch.randint(20, (7, 6)), torch.ones(7, 6, dtype=torch.bool)
    small = encode(tokens, mask)
    monkeypatch.setattr(bag, "DENSE", 19)
    monkeypatch.setattr(encode, "counted", None)
    torch.testing.assert_close(encode(tokens, mask), small)


def test_a_masked_word_counts_nothing_and_padding_behind_changes_nothing() -> None:
    encode = Bag(5, 20, longest=8)
    tokens = torch.randint(20, (3, 4))
    wide = torch.cat([tokens, torch.randint(20, (3, 5))], 1)
    mask = torch.arange(9).expand(3, -1) < 4
    torch.testing.assert_close(encode(wide, mask), encode(tokens, mask[:, :4]))
    assert encode(wide, torch.zeros_like(mask)).eq(0).all()


def test_order_matters_only_with_position() -> None:
    words, turned, mask = torch.tensor([[2, 3, 4]]), torch.tensor([[4, 3, 2]]), torch.ones(1, 3) > 0
    placed, plain = Bag(5, 20), Bag(5, 20, position=False)
    assert not torch.allclose(placed(words, mask), placed(turned, mask))
    torch.testing.assert_close(plain(words, mask), plain(turned, mask))


# With the data ---------------------------------------------------------------------------------


def test_the_longest_text_of_the_data_set_sets_the_places() -> None:
    """J is one more than the longest text of training, validation and test: the time's place."""
    data = story_data(GeneratedStories(count=40, tasks=[1, 5]))
    texts: set[str] = set()
    for task in (1, 5):
        for count, seed in ((40, 0), (dataset.TEST, 1)):
            for example in dataset.make(task, count, seed):
                texts.update([*example.sentences, example.question])
    longest = max(len(re.findall(r"\w+", text)) for text in texts)
    assert data.sizes["longest"] == longest + 1
    model = load("memn2n")["model"]
    network = assemble(model, data.sizes)
    assert network.encode.longest == longest + 1
    k = torch.arange(1, 21)
    expected = 1 + 4 * (k - 10.5) * ((longest + 1) - (longest + 2) / 2) / (20 * (longest + 1))
    torch.testing.assert_close(network.memory.last, expected)


def trained(recipe: dict[str, Any], data: StoryData, seed: int) -> Network:
    networks = new_networks(recipe, data, [seed])
    pools = [torch.arange(len(data.train))]
    for _ in fit_many(
        recipe, data, networks, seeds=[seed], pools=pools, device=torch.device("cpu")
    ):
        pass
    return networks[0]


def test_a_tiny_memn2n_learns_one_supporting_fact() -> None:
    """The first of up to five restarts that fits its training set answers 90 % of unseen ones."""
    made = 'data={kind="generated", tasks=[1], count=1000}'
    short = ["phases.0.train.epochs=5", "train.epochs=15", "train.schedule.every=5"]
    recipe = load("memn2n", [made, *short, "model.memory.hops=1"])
    data = data_of(recipe)
    for seed in range(5):
        network = trained(recipe, data, seed)
        if task_errors(network, data.train)[1] < 5:
            break
    assert task_errors(network, data.test)[1] < 10


@pytest.mark.slow
def test_two_supporting_facts_need_more_than_one_hop() -> None:
    made = 'data={kind="generated", tasks=[2], count=1000}'
    short = ["phases.0.train.epochs=20", "train.epochs=15", "train.schedule.every=5"]
    errors = {}
    for hops in (1, 3):
        recipe = load("memn2n", [made, *short, f"model.memory.hops={hops}"])
        data = data_of(recipe)
        errors[hops] = task_errors(trained(recipe, data, 0), data.test)[2]
    assert errors[1] > 50  # six places: 83 % by chance
    assert errors[3] < errors[1] - 15
