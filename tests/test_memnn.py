"""MemNN against the papers' equations in slow loops, its loss, its n-grams, and that it learns.

Shapes: b batch, n sentences, m queries, s slots, k hops, f facts, t tables, d width.
"""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.encode.ngrams import Ngrams
from mnemic.learn.evaluate import task_errors
from mnemic.learn.fit import data_of
from mnemic.learn.fit_many import fit_many, new_networks
from mnemic.learn.many import Many
from mnemic.memory.clusters import ClusterHash, k_means
from mnemic.memory.contest import Pairs, against, contest
from mnemic.memory.contract import Reading
from mnemic.memory.memnn import MemNN
from mnemic.memory.select import KeyHash
from mnemic.memory.slots import slots_of
from mnemic.network import IGNORE, Network
from mnemic.objectives.ranking import RankingLoss, behind
from mnemic.recipe import Recipe, load

D, SLOTS = 4, 9
KINDS = [
    pytest.param(time, stop, match, id=f"{time=} {stop=} {match}")
    for time in (False, True)
    for stop in (False, True)
    for match in ("linear", "tanh")
]


def make(time: bool, stop: bool, match: str, *, hops: int = 3, seed: int = 0) -> MemNN:
    torch.manual_seed(seed)
    order = 0.5 if stop else 0.0
    spec = {"kind": match}
    memory = MemNN(D, hops=hops, slots=SLOTS, time=time, stop=stop, match=spec, order=order)
    for weight in memory.parameters():
        torch.nn.init.normal_(weight)
    return memory.eval()


def told(memory: MemNN, states: Tensor, mask: Tensor | None = None) -> Any:
    seen = torch.ones(states.shape[:2], dtype=torch.bool) if mask is None else mask
    return memory.write(memory.empty(states.shape[0], states), states, seen)


# The slow twin ---------------------------------------------------------------------------------


class Slow:
    """One question, one story, everything in loops: the equations as they are printed."""

    def __init__(self, memory: MemNN, facts: Tensor, question: Tensor) -> None:
        self.memory, self.facts, self.question = memory, facts, question  # n t d, t d
        self.none = len(facts)  # the place of "nothing"

    def embedded(self, vector: Tensor) -> Tensor:
        maps = list(self.memory.match.parameters())
        return (maps[0] @ vector.tanh()).tanh() if maps else vector

    def candidate(self, i: int) -> Tensor:
        nothing = self.memory.nothing
        if i == self.none:
            return self.embedded(torch.zeros(D) if nothing is None else nothing)
        return self.embedded(self.facts[i, 2])

    def score(self, found: list[int], y: int, other: int) -> float:
        """s(x, y, y′) with x the question and what was found; without times s(x, y) − s(x, y′)."""
        x = self.joined(found, 0, 1, 0)
        total = self.candidate(y) - self.candidate(other)
        if self.memory.times is not None:
            vectors = self.memory.times.vectors
            last = found[-1] if found else self.none
            if y != self.none and last < y:
                total = total + vectors[0]
            if other != self.none and last < other:
                total = total + vectors[1]
            if self.none not in (y, other) and y < other:
                total = total + vectors[2]
        return (self.embedded(x) @ total).item()

    def joined(self, found: list[int], asked: int, fact: int, response: int) -> Tensor:
        """[x, m₁, m₂ …] in the dictionaries of O or of R; each hop may have its gain."""
        total, gains = self.question[asked], self.memory.gains
        for hop, i in enumerate(found):
            gain = torch.ones(D) if gains is None else gains[response, hop]
            total = total + gain * self.facts[i, fact]
        return total

    def choose(self, found: list[int]) -> int:
        """Through the memory once, keeping the winner."""
        stops = self.memory.nothing is not None
        winner = 0
        for i in range(1, self.none + stops):
            if self.score(found, winner, i) <= 0:
                winner = i
        return winner

    def read(self) -> list[int]:
        found: list[int] = []
        for _ in range(self.memory.hops):
            best = self.choose(found)
            if best == self.none:
                break
            found.append(best)
        return found

    def loss(self, chain: list[int], margin: float) -> float:
        """Equations 6 and 7 over all wrong facts; with write times both sums of each."""
        stops = self.memory.nothing is not None
        targets = chain[: self.memory.hops]
        if stops and len(targets) < self.memory.hops:
            targets = [*targets, self.none]
        while not stops and len(targets) < self.memory.hops:
            targets = [*targets, targets[-1]]
        total = 0.0
        for hop, right in enumerate(targets):
            for wrong in range(self.none + stops):
                if wrong != right:
                    total += max(0.0, margin - self.score(targets[:hop], right, wrong))
                    if self.memory.times is not None:
                        total += max(0.0, margin + self.score(targets[:hop], wrong, right))
        return total


def chosen(reading: Reading) -> list[list[list[int]]]:
    """The slots that were read, hop by hop, of each row and query."""
    weights = reading.weights[:, :, 0].transpose(1, 2)  # b m k s
    assert torch.equal(weights, (weights == 1).to(weights.dtype))
    return [[[int(w.argmax()) for w in hops if w.any()] for hops in row] for row in weights]


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_reads_are_the_papers_loop(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match)
    lengths = set()
    for seed in range(12):
        torch.manual_seed(seed)
        states, query = torch.randn(2, 7, 5, D), torch.randn(2, 3, 5, D)
        reading = memory.read(told(memory, states).state, query)
        for row in range(2):
            for m in range(3):
                twin = Slow(memory, states[row], query[row, m])
                slow = twin.read()
                assert chosen(reading)[row][m] == slow
                torch.testing.assert_close(reading.found[row, m], twin.joined(slow, 3, 4, 1))
                lengths.add(len(slow))
    assert lengths == ({0, 1, 2, 3} if stop else {3})


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_scores_are_relative_to_what_was_read(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match, hops=2)
    torch.manual_seed(1)
    states, query = torch.randn(1, 5, 5, D), torch.randn(1, 1, 5, D)
    reading = memory.read(told(memory, states).state, query, follow=torch.tensor([[[3, 1]]]))
    slow = Slow(memory, states[0], query[0, 0])
    for hop, (before, right) in enumerate([([], 3), ([3], 1)]):
        heads = reading.scores[0, hop, :, 0]  # h s
        assert heads.shape == (1 + time, 5)
        for i in range(5):
            expected = [-slow.score(before, right, i), slow.score(before, i, right)]
            wanted = torch.tensor(expected[: 1 + time]) * (i != right)
            torch.testing.assert_close(heads[:, i], wanted)
        if stop:
            assert reading.nothing is not None
            none = -slow.score(before, right, 5)
            torch.testing.assert_close(reading.nothing[0, hop, 0, 0], torch.tensor(none))


def test_a_contest_is_the_loop_over_all_candidates() -> None:
    """With scores that no order of the slots explains, and slots that are not there."""
    dice = torch.Generator().manual_seed(0)
    for _ in range(200):
        count = int(torch.randint(1, 12, (), generator=dice))
        first, second = torch.randn(2, 1, 1, count, generator=dice)
        pairs = Pairs(first, second, torch.randn(1, 1, 1, generator=dice))
        seen = torch.rand(1, 1, count, generator=dice) < 0.7
        winner = None
        for i in range(count):
            if not seen[0, 0, i]:
                continue
            if winner is None:
                winner = i
                continue
            older = float(pairs.older) * (i < count - 1)
            if float(first[0, 0, winner] - second[0, 0, i]) + older <= 0:
                winner = i
        assert contest(pairs, seen).item() == (count - 1 if winner is None else winner)


def test_the_chosen_one_is_ahead_of_itself_by_nothing() -> None:
    torch.manual_seed(0)
    pairs = Pairs(torch.randn(2, 3, 6), torch.randn(2, 3, 6), torch.randn(2, 3, 1))
    one = torch.randint(6, (2, 3))
    found = against(pairs, one).gather(-1, one[:, None, :, None].expand(-1, 2, -1, -1))
    assert found.eq(0).all()


def test_newer_facts_win_if_time_says_so() -> None:
    """All sentences alike: only their times can decide."""
    memory = make(True, False, "linear", hops=1)
    states = torch.ones(1, 6, 5, D)
    assert memory.times is not None
    for newer in (True, False):
        memory.times.vectors.data = torch.zeros(3, D)
        memory.times.vectors.data[2] = -1.0 if newer else 1.0
        reading = memory.read(told(memory, states).state, torch.ones(1, 1, 5, D))
        assert chosen(reading) == [[[5 if newer else 0]]]


# Following -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_a_hop_follows_what_it_is_told_then_stops_or_stays(
    time: bool, stop: bool, match: str
) -> None:
    memory = make(time, stop, match)
    torch.manual_seed(5)
    states, query = torch.randn(40, 7, 5, D), torch.randn(40, 1, 5, D)
    state = told(memory, states).state
    follow = torch.tensor([[[2, 4, IGNORE]]]).expand(40, -1, -1)
    reading = memory.read(state, query, follow=follow)
    for row, (hops,) in enumerate(chosen(reading)):
        assert hops[:2] == [2, 4]
        assert hops[2:] == ([] if stop else [4])
        said = Slow(memory, states[row], query[row, 0]).joined(hops, 3, 4, 1)
        torch.testing.assert_close(reading.found[row, 0], said)
    free = chosen(memory.read(state, query))
    assert sum(hops[:2] != [2, 4] for (hops,) in free) > 30


def test_a_first_hop_that_is_told_nothing_chooses() -> None:
    memory = make(True, False, "linear", hops=1)
    torch.manual_seed(0)
    states, query = torch.randn(20, 7, 5, D), torch.randn(20, 1, 5, D)
    state = told(memory, states).state
    follow = torch.full((20, 1, 1), IGNORE)
    assert chosen(memory.read(state, query, follow=follow)) == chosen(memory.read(state, query))


def test_a_followed_reading_ends_behind_the_longest_chain() -> None:
    memory = make(True, True, "linear", hops=10)
    state, query = told(memory, torch.randn(2, 7, 5, D)).state, torch.randn(2, 1, 5, D)
    follow = torch.tensor([[[2, 4]], [[1, IGNORE]]])
    assert memory.read(state, query, follow=follow).weights.shape[1] == 3
    assert memory.read(state, query).weights.shape[1] == 10


def test_no_hop_reads_after_a_stop() -> None:
    memory = make(True, True, "tanh", hops=6)
    torch.manual_seed(0)
    states, query = torch.randn(60, 5, 5, D), torch.randn(60, 1, 5, D)
    read = memory.read(told(memory, states).state, query).weights[:, :, 0, 0].sum(-1)  # b k
    assert torch.equal(read.cummin(1).values, read)
    assert read.sum(1).unique().numel() > 2


def test_sentences_are_found_in_their_slots() -> None:
    """Two were forgotten, one is padding: slots count from the oldest that is left."""
    memory = MemNN(D, slots=3)
    mask = torch.tensor([[True, True, False, True, True, True]])
    written = told(memory, torch.randn(1, 6, 5, D), mask)
    assert slots_of(torch.tensor([[[0, 1, 3, 4, 5, IGNORE]]]), written.weights).tolist() == [
        [[-1, -1, 0, 1, 2, -1]]
    ]
    nothing = told(memory, torch.randn(1, 0, 5, D)).weights
    assert slots_of(torch.tensor([[[IGNORE]]]), nothing).tolist() == [[[-1]]]


# The loss --------------------------------------------------------------------------------------


def recipe_of(name: str, task: int, sets: list[str], count: int = 60) -> Recipe:
    made = f'data={{kind="generated", tasks=[{task}], count={count}, sentences=100}}'
    return load(name, [made, "train.validate=0", *sets])


def scaled(network: Network) -> Network:
    """Larger weights, so that some candidates are far enough apart to cost nothing."""
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3)
    return network


@pytest.mark.parametrize("name", ["memnn", "memnn-am-ng-nl"])
@pytest.mark.parametrize("task", [2, 7])
def test_the_loss_is_equations_6_to_8(name: str, task: int) -> None:
    """Over all wrong facts and all wrong answers, question by question; task 7 has many facts."""
    recipe = recipe_of(name, task, [f"model.width={D}"])
    data = data_of(recipe)
    network = scaled(new_networks(recipe, data, [0])[0])
    batch = data.train.batch(torch.arange(8))
    loss = RankingLoss(margin=0.3, facts=0.5)(network, batch)
    story, seen, query = network.input(batch.inputs)
    total = 0.0
    for row in range(8):
        chain = [int(fact) for fact in batch.chain[row] if fact != IGNORE]
        assert chain
        facts = story[row, seen[row]].detach()
        slow = Slow(network.memory, facts, query[row, 0].detach())
        total += 0.5 * slow.loss(chain, 0.3)
        read = list(chain[: network.memory.hops])
        while network.memory.nothing is None and len(read) < network.memory.hops:
            read.append(read[-1])
        found = slow.joined(read, 3, 4, 1).detach()
        reading = Reading(found.view(1, 1, D), *[torch.zeros(1)] * 2)
        scores = network.respond(query, reading, story, seen)[0, 0].tolist()
        right = scores[int(batch.answers[row, 0])]
        total += sum(max(0.0, 0.3 - right + s) for s in scores) - 0.3
    assert loss.targets == 8
    torch.testing.assert_close(loss.total.item(), total, rtol=1e-4, atol=1e-4)


def test_a_lead_of_the_margin_costs_nothing() -> None:
    scores = torch.tensor([[1.0, 0.5, -1e30], [0.0, 0.25, 0.9]])
    lost = behind(scores, torch.tensor([0, 2]), 0.5)
    torch.testing.assert_close(lost, torch.tensor([0.0, 0.0]))
    lost = behind(scores, torch.tensor([1, 0]), 0.5)
    torch.testing.assert_close(lost, torch.tensor([1.0, 0.75 + 1.4]))


def test_an_answer_that_is_not_asked_for_costs_nothing() -> None:
    recipe = recipe_of("memnn", 1, [f"model.width={D}"])
    data = data_of(recipe)
    network = new_networks(recipe, data, [0])[0]
    batch = data.train.batch(torch.arange(4))
    blank = batch._replace(
        answers=torch.full_like(batch.answers, IGNORE), chain=torch.full_like(batch.chain, IGNORE)
    )
    loss = RankingLoss()(network, blank)
    assert loss.total == 0
    assert loss.targets == 0


def test_every_weight_learns_from_the_loss() -> None:
    for name in ("memnn", "memnn-am-ng-nl"):
        recipe = recipe_of(name, 2, [f"model.width={D}"])
        data = data_of(recipe)
        network = new_networks(recipe, data, [0])[0]
        RankingLoss()(network, data.train.batch(torch.arange(20))).total.backward()
        for part, weight in network.named_parameters():
            assert weight.grad is not None, part
            assert weight.grad.abs().sum() > 0, part


@pytest.mark.parametrize("name", ["memnn", "memnn-am-ng-nl"])
def test_many_runs_have_the_losses_and_reads_of_each(name: str) -> None:
    recipe = recipe_of(name, 2, [f"model.width={D}"])
    data = data_of(recipe)
    networks = new_networks(recipe, data, [0, 1, 2])
    rows = torch.arange(12).view(3, 4)
    many, batch = Many(networks), data.train.batch(rows)
    together, output = many.each(RankingLoss(), batch), many(batch.inputs)
    for run, network in enumerate(networks):
        own = data.train.batch(rows[run])
        alone, read = RankingLoss()(network, own), network(own.inputs).reading
        torch.testing.assert_close(together.total[run], alone.total)
        slots = read.weights.shape[-1]
        torch.testing.assert_close(output.reading.weights[run][..., :slots], read.weights)


# Features --------------------------------------------------------------------------------------


def test_ngrams_are_counted_right() -> None:
    torch.manual_seed(0)
    encode = Ngrams(D, 10, tables=2, most=3, buckets=50_000)
    texts = torch.tensor([[3, 4, 3, 4, 3], [4, 3, 5, 0, 0], [9, 0, 0, 0, 0]])
    ids, real = encode.ngrams(texts, texts > 0)
    for row, words in enumerate([[3, 4, 3, 4, 3], [4, 3, 5], [9]]):
        wanted = Counter(
            tuple(words[i : i + n]) for n in (1, 2, 3) for i in range(len(words) - n + 1)
        )
        found = Counter(ids[row][real[row]].tolist())
        assert sorted(found.values()) == sorted(wanted.values())
        assert all(found[word] == words.count(word) for word in words)
    assert ids.max() < 50_010
    assert ids[0][5:9].tolist()[0] != ids[0][5:9].tolist()[1]  # 3 4 is not 4 3
    assert ids[0, 6] == ids[1, 5]  # 4 3 is 4 3 wherever it stands
    states = encode(texts, texts > 0)
    for table in range(2):
        vectors = encode.tables[table]
        summed = sum(vectors[i] for i in ids[0][real[0]].tolist())
        torch.testing.assert_close(states[0, table], summed)


def test_one_grams_are_a_bag_of_words() -> None:
    encode = Ngrams(D, 10, most=1)
    texts = torch.tensor([[3, 4, 3], [5, 0, 0]])
    torch.testing.assert_close(encode(texts, texts > 0), encode.bag(texts, texts > 0))
    assert encode.words.shape == (10, D)


def test_few_ngrams_share_a_bucket() -> None:
    encode = Ngrams(D, 40, most=2, buckets=1024)
    pairs = torch.cartesian_prod(torch.arange(1, 40), torch.arange(1, 40))[::8]  # 191 of them
    ids, _ = encode.ngrams(pairs, pairs > 0)
    assert ids[:, 2].unique().numel() > 0.85 * len(pairs)  # by chance 91 %


# Large memories --------------------------------------------------------------------------------


def test_clusters_find_what_shares_no_word() -> None:
    """Words 1 and 2 mean the same, 3 and 4 too; 0 is padding."""
    vectors = torch.tensor([[9.0, 9.0], [0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]])
    keys = torch.tensor([[1, 0], [4, 0], [2, 4]])
    select = ClusterHash(keys, vectors, clusters=2)
    assert select(torch.tensor([[2, 0], [3, 0], [0, 0]])).tolist() == [[0, 2], [1, 2], [-1, -1]]
    words = KeyHash(keys)
    assert words(torch.tensor([[3, 0]])).tolist() == [[]]
    everything = ClusterHash(keys, vectors, clusters=1)
    assert everything(torch.tensor([[3, 0]])).tolist() == [[0, 1, 2]]


def test_k_means_finds_what_lies_together() -> None:
    dice = torch.Generator().manual_seed(0)
    groups = torch.randint(4, (200,), generator=dice)
    vectors = 10 * torch.eye(4)[groups] + torch.randn(200, 4, generator=dice)
    best = min(
        (k_means(vectors, 4, dice=dice) for _ in range(5)),
        key=lambda own: sum(float(vectors[own == k].var(0).sum()) for k in range(4)),
    )
    assert torch.equal(best[:, None] == best, groups[:, None] == groups)
    with pytest.raises(ValueError, match="from 1 to 200 clusters"):
        k_means(vectors, 201, dice=dice)


# Learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [1, 2])
def test_a_tiny_memnn_learns_facts_and_answers(task: int) -> None:
    short = ["train.epochs=8", "train.schedule.every=4", "model.width=20", "train.rate=0.02"]
    recipe = recipe_of("memnn-am-ng-nl", task, [*short, "model.encode.most=1"], count=1000)
    data = data_of(recipe)
    networks = new_networks(recipe, data, [0])
    pools = [torch.arange(len(data.train))]
    cpu = torch.device("cpu")
    for _ in fit_many(recipe, data, networks, seeds=[0], pools=pools, device=cpu):
        pass
    assert task_errors(networks[0], data.test)[task] < 10
    batch = data.test.batch(torch.arange(300))
    with torch.no_grad():
        output = networks[0].eval()(batch.inputs)
    gold = slots_of(batch.chain.unsqueeze(1), output.written.weights).squeeze(1).tolist()
    right = [hops == facts for (hops,), facts in zip(chosen(output.reading), gold)]
    assert sum(right) > 0.9 * len(right)
