"""EntNet against the paper's equations slot by slot, that it rewrites, and that it learns.

Shapes: r runs, b batch, n sentences, m queries, s slots, j places, d width.
"""

import os
from itertools import product
from math import exp, sqrt
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from mnemic.ask import read_of
from mnemic.encode import masked_bag
from mnemic.encode.masked_bag import MaskedBag
from mnemic.learn.evaluate import task_errors
from mnemic.learn.fit import data_of
from mnemic.learn.fit_many import fit_many, new_networks
from mnemic.memory import Reading, Written
from mnemic.memory.entnet import EntNet
from mnemic.memory.rewrite import Rewriting, has_triton, left, rewrite_plainly
from mnemic.network import Inputs, Network, Output, assemble
from mnemic.recipe import load

D, VOCAB, SLOTS, LONGEST = 4, 9, 3, 6
Vector = list[float]


def network_of(size: float = 4.0, **options: Any) -> Network:
    """A network with large weights, so that gates and reads are far from even."""
    torch.manual_seed(3)
    model = {
        "width": D,
        "encode": {"kind": "masked-bag"},
        "memory": {"kind": "entnet", "slots": SLOTS, **options},
        "respond": {"kind": "word"},
    }
    network = assemble(model, {"vocab": VOCAB, "longest": LONGEST}).double().eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith(("masks", "slope")):
                weight.copy_(torch.rand_like(weight))
            else:
                weight.mul_(size)
    return network


STORIES = [
    ([[2, 3, 4], [5], [6, 7, 8, 2, 3]], [4, 2]),
    ([[8, 8, 2]], [3]),
    ([[2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8], [8, 2]], [5, 6, 7]),
    ([], [2, 4]),
]


def inputs_of(stories: list[tuple[list[list[int]], list[int]]]) -> Inputs:
    rows = [words for story, question in stories for words in (*story, question)]
    texts = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for number, words in enumerate(rows):
        texts[number, : len(words)] = torch.tensor(words)
    longest = max(len(story) for story, _ in stories)
    told, asked, place = torch.full((len(stories), longest), -1), [], 0
    for number, (story, _) in enumerate(stories):
        told[number, : len(story)] = torch.arange(place, place + len(story))
        asked.append([place + len(story)])
        place += len(story) + 1
    return Inputs(texts, texts > 0, told, torch.tensor(asked))


# The slow twin ---------------------------------------------------------------------------------


def add(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def times(matrix: Tensor, vector: Vector) -> Vector:
    return [dot(row, vector) for row in matrix.tolist()]


def slow(network: Network, story: list[list[int]], question: list[int]) -> tuple[Any, ...]:
    """Scores, gates and the last slots: equations 1 to 6 as they are printed, and the biases."""
    encode, memory = network.encode, network.memory
    words, masks = encode.words.tolist(), encode.masks.tolist()
    slope = memory.slope.tolist()

    def embed(text: list[int], table: int) -> Vector:
        placed = [
            [f * e for f, e in zip(masks[table][place], words[word])]
            for place, word in enumerate(text)
        ]
        return add([0.0] * D, *placed)

    def phi(vector: Vector) -> Vector:
        return [x if x > 0 else a * x for x, a in zip(vector, slope)]

    keys = memory.addresses().tolist()
    slots, gates = [list(key) for key in keys], []
    for text in story:
        s, opened = embed(text, 0), []
        for j, w in enumerate(keys):
            h = slots[j]
            bias = memory.gate_bias[j].item() if memory.bias else 0.0
            g = 1 / (1 + exp(-(dot(s, h) + dot(s, w) + bias)))
            parts = [times(memory.old, h), times(memory.key, w), times(memory.new, s)]
            if memory.bias:
                parts.append(memory.old_bias.tolist())
            h = add(h, [g * c for c in phi(add(*parts))])
            slots[j] = [x / sqrt(dot(h, h)) for x in h]
            opened.append(g)
        gates.append(opened)
    q = embed(question, 1)
    shares = [exp(dot(q, h)) for h in slots]
    shares = [share / sum(shares) for share in shares]
    u = add(*([p * x for x in h] for p, h in zip(shares, slots)))
    y = phi(add(q, times(memory.hop, u)))
    return times(network.respond.table, y), gates, slots, shares


@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"tied": [5, 2, 7, 3]}], ids=["authors", "paper", "tied keys"]
)
def test_equals_the_papers_equations(options: dict[str, Any]) -> None:
    network = network_of(**options)
    output = network(inputs_of(STORIES))
    for number, (story, question) in enumerate(STORIES):
        scores, gates, slots, shares = slow(network, story, question)
        found = (
            output.scores[number, 0],
            output.written.gates[number, : len(story)],
            output.written.state.slots[number],
            output.reading.weights[number, 0, 0, 0],
        )
        for ours, theirs in zip(found, (scores, gates, slots, shares)):
            expected = torch.tensor(theirs, dtype=torch.float64).view(ours.shape)
            torch.testing.assert_close(ours, expected)


# A rewriting memory ----------------------------------------------------------------------------


def told(memory: EntNet, states: Tensor, mask: Tensor | None = None) -> Any:
    seen = torch.ones(states.shape[:2], dtype=torch.bool) if mask is None else mask
    return memory.write(memory.empty(states.shape[0], states), states, seen)


def test_a_later_sentence_changes_slots() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(2, 4, 2, 8)
    before = told(memory, states[:, :3]).state
    after = memory.write(before, states[:, 3:], torch.ones(2, 1, dtype=torch.bool)).state
    assert after.slots.shape == before.slots.shape  # nothing was added
    assert ((after.slots - before.slots).abs().amax(-1) > 1e-3).all()


def test_a_slot_changes_as_far_as_its_gate_opens() -> None:
    """A sentence that one key knows, and the others are set against."""
    memory = EntNet(8, slots=3, bias=False)
    with torch.no_grad():
        memory.keys.copy_(torch.tensor([[9.0], [-9.0], [-9.0]]) * torch.eye(8)[0])
    states = torch.zeros(1, 1, 2, 8)
    states[..., 0] = 2.0
    start, written = memory.empty(1, states), told(memory, states)
    gates = written.gates[0, 0]
    assert gates[0] > 0.999
    assert (gates[1:] < 1e-3).all()
    turned = torch.cosine_similarity(written.state.slots, start.slots, dim=-1)[0]
    assert (turned[1:] > 0.9999).all()


def test_padding_leaves_the_state_bit_for_bit() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(2, 6, 2, 8) * 100
    before = told(memory, states[:, :2]).state
    nothing = torch.zeros(2, 4, dtype=torch.bool)
    written = memory.write(before, states[:, 2:], nothing)
    assert torch.equal(written.state.slots, before.slots)
    assert written.weights.eq(0).all()
    start = memory.empty(2, states)  # not of unit length yet
    assert torch.equal(memory.write(start, states[:, 2:], nothing).state.slots, start.slots)


def test_slots_begin_as_keys_and_are_of_unit_length_once_written() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(3, 4, 2, 8)
    assert torch.equal(memory.empty(3, states).slots, memory.keys.expand(3, 5, 8))
    lengths = told(memory, states).state.slots.norm(dim=-1)
    torch.testing.assert_close(lengths, torch.ones(3, 5))


def test_gates_are_between_0_and_1() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(3, 4, 2, 8)
    gates = told(memory, states).gates
    assert gates.gt(0).all()
    assert gates.lt(1).all()


def test_tied_keys_are_the_encoders_words() -> None:
    network = network_of(tied=[5, 2, 7, 3])
    assert not any("keys" in name for name, _ in network.named_parameters())
    assert torch.equal(network.memory.addresses(), network.encode.words[[5, 2, 7, 3]])
    network(inputs_of(STORIES[:1])).scores.sum().backward()
    assert network.encode.words.grad[7].abs().sum() > 0  # said, and a key
    assert sum("words" in name for name, _ in network.named_parameters()) == 1
    with pytest.raises(ValueError, match="assemble"):
        EntNet(4, tied=[1]).empty(1, torch.zeros(1, 1, 2, 4))


def test_what_is_left_of_a_sentence_is_what_later_ones_did_not_write_over() -> None:
    """By hand: its gate, times 1 − gate of everyone behind it; with the key's rest it is all."""
    gates = torch.rand(2, 5, 3)
    shares = left(gates)
    for b, n, s in product(range(2), range(5), range(3)):
        expected = gates[b, n, s] * (1 - gates[b, n + 1 :, s]).prod()
        torch.testing.assert_close(shares[b, n, s], expected)
    torch.testing.assert_close(shares.sum(1) + (1 - gates).prod(1), torch.ones(2, 3))
    assert left(gates[:, :0]).shape == (2, 0, 3)


def test_a_wide_open_gate_wipes_out_what_was_there_and_a_shut_one_nothing() -> None:
    gates = torch.tensor([1.0, 0.0, 1.0, 0.0])[None, :, None]
    assert left(gates).flatten().tolist() == [0.0, 0.0, 1.0, 0.0]


def test_a_sentence_that_was_written_over_is_still_shown() -> None:
    """It entered the memory; that nothing is left of it is what the asker should see."""
    gates = torch.ones(1, 3, 2)
    written = Written((), left(gates), gates)
    output = Output(torch.zeros(0), Reading(*[torch.ones(1, 1, 1, 1, 2) / 2] * 3), written)
    assert read_of(output) == {0: [0.0], 1: [0.0], 2: [1.0]}


def test_evidence_of_a_rewriting_memory_is_what_is_left_in_the_slots_that_were_read() -> None:
    """And with what the slots held before the story, the shares sum to one."""
    with torch.no_grad():
        output = network_of()(inputs_of(STORIES[2:3]))
    shares = read_of(output)
    assert list(shares) == list(range(7))
    kept, read = output.written.weights[0], output.reading.weights[0, 0, 0, 0]
    for number, share in shares.items():
        assert share == pytest.approx([float((kept[number] * read).sum())])
        assert 0 < share[0] < 1
    before = float(((1 - output.written.gates[0]).prod(0) * read).sum())
    assert sum(share[0] for share in shares.values()) + before == pytest.approx(1, abs=1e-5)


# Fast and slow ---------------------------------------------------------------------------------


def rewriting(*lead: int) -> Rewriting:
    """Three sentences in five are real."""
    b, n, s, d = 2, 5, 9, 20
    dice = torch.Generator().manual_seed(0)

    def noise(*shape: int, size: float = 1.0) -> Tensor:
        return (torch.randn(*lead, *shape, generator=dice) * size).requires_grad_()

    seen = torch.rand(*lead, b, n, generator=dice) < 0.6
    slope = torch.rand(*lead, d, generator=dice).requires_grad_()
    matrix, drive = noise(d, d, size=0.3), noise(b, n, d)
    return Rewriting(
        noise(b, s, d), noise(b, n, d, size=0.5), drive, noise(b, n, s), seen, noise(s, d),
        matrix, slope,
    )  # fmt: skip


@pytest.mark.skipif(
    not has_triton() or not (torch.cuda.is_available() or "TRITON_INTERPRET" in os.environ),
    reason="needs triton, and a GPU or TRITON_INTERPRET=1",
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the interpreter
def test_the_kernels_give_the_same_numbers_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    from mnemic.memory import rewrite_kernel
    from mnemic.memory.rewrite_kernel import Rewrite

    monkeypatch.setattr(rewrite_kernel, "PRECISION", "tf32x3")  # the interpreter knows no bf16x3
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def fused(*given: Tensor) -> tuple[Tensor, Tensor]:
        slots, gates, *_ = Rewrite.apply(True, *(part.unsqueeze(0) for part in given))
        return slots.squeeze(0), gates.squeeze(0)

    given = Rewriting(*(part.detach().to(device) for part in rewriting(3)))
    leaves = [part.requires_grad_() for part in given if part.is_floating_point()]
    found = []
    for function in (lambda *parts: rewrite_plainly(Rewriting(*parts)), fused):
        slots, gates = vmap(function)(*given)
        turned = given.slots.detach().mT.contiguous()  # whose gradient is not contiguous
        loss = (slots.mT * turned).sum() + gates.square().sum()
        found.append((slots, gates, *torch.autograd.grad(loss, leaves)))
    for plain, fast in zip(*found):
        torch.testing.assert_close(fast, plain, atol=2e-5, rtol=2e-4)
    whole = Rewrite.apply(False, *given)
    torch.testing.assert_close(whole[0], found[0][0], atol=2e-5, rtol=2e-4)


def test_many_runs_write_as_each_alone() -> None:
    given = rewriting(3)
    slots, gates = vmap(lambda *parts: rewrite_plainly(Rewriting(*parts)))(*given)
    for run in range(3):
        alone = rewrite_plainly(Rewriting(*(part[run] for part in given)))
        torch.testing.assert_close(slots[run], alone[0])
        torch.testing.assert_close(gates[run], alone[1])


# The masked bag --------------------------------------------------------------------------------


def test_a_bag_of_words_at_first() -> None:
    encode = MaskedBag(5, 20, tables=2, longest=8)
    tokens, mask = torch.randint(20, (7, 6)), torch.rand(7, 6) < 0.7
    summed = (encode.words[tokens] * mask.unsqueeze(-1)).sum(1)
    states = encode(tokens, mask)
    torch.testing.assert_close(states, summed.unsqueeze(1).expand(-1, 2, -1))
    torch.manual_seed(0)
    masks = MaskedBag(5, 20, tables=2, start="noise").masks
    assert masks[0].abs().max() < 0.5
    assert masks[1].eq(1).all()


def test_each_place_and_table_has_its_mask() -> None:
    encode = MaskedBag(5, 20, tables=2, longest=8)
    with torch.no_grad():
        encode.masks.copy_(torch.randn_like(encode.masks))
    tokens, mask = torch.randint(20, (7, 6)), torch.rand(7, 6) < 0.7
    states = encode(tokens, mask)
    for text in range(7):
        for table in range(2):
            expected = torch.zeros(5)
            for place in range(6):
                if mask[text, place]:
                    expected += encode.masks[table, place] * encode.words[tokens[text, place]]
            torch.testing.assert_close(states[text, table], expected)


def test_counting_words_equals_looking_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = MaskedBag(5, 20, tables=2, longest=8).double()
    tokens, mask = torch.randint(20, (7, 6)), torch.rand(7, 6) < 0.7
    weights = torch.randn(7, 2, 5, dtype=torch.float64)
    counted = encode(tokens, mask)
    monkeypatch.setattr(masked_bag, "DENSE", 19)
    monkeypatch.setattr(encode, "counted", None)
    looked_up = encode(tokens, mask)
    torch.testing.assert_close(counted, looked_up)
    first, second = (
        torch.autograd.grad((states * weights).sum(), list(encode.parameters()))
        for states in (counted, looked_up)
    )
    torch.testing.assert_close(first, second)


def test_padding_changes_no_text_and_too_long_a_text_is_refused() -> None:
    encode = MaskedBag(5, 20, longest=8)
    tokens = torch.randint(20, (3, 4))
    wide = torch.cat([tokens, torch.randint(20, (3, 4))], 1)
    mask = torch.arange(8).expand(3, -1) < 4
    torch.testing.assert_close(encode(wide, mask), encode(tokens, mask[:, :4]))
    with pytest.raises(ValueError, match="9 words"):
        encode(torch.zeros(1, 9, dtype=torch.long), torch.ones(1, 9) > 0)


# Learning --------------------------------------------------------------------------------------


def test_a_tiny_entnet_learns_one_supporting_fact() -> None:
    """The first of up to three restarts that fits its training set answers 90 % of unseen ones."""
    made = 'data={kind="generated", tasks=[1], count=1000}'
    tiny = ["model.width=32", "model.memory.slots=8", "train.epochs=16", "train.schedule.every=8"]
    recipe = load("entnet", [made, *tiny])
    data = data_of(recipe)
    pools, cpu = [torch.arange(len(data.train))], torch.device("cpu")
    for seed in range(3):
        networks = new_networks(recipe, data, [seed])
        for _ in fit_many(recipe, data, networks, seeds=[seed], pools=pools, device=cpu):
            pass
        if task_errors(networks[0], data.train)[1] < 5:
            break
    assert task_errors(networks[0], data.test)[1] < 10


def test_many_entnets_train_as_each_would_alone() -> None:
    made = 'data={kind="generated", tasks=[1], count=80}'
    recipe = load("entnet", [made, "model.width=8", "model.memory.slots=3", "train.steps=4"])
    data, cpu = data_of(recipe), torch.device("cpu")
    pool = torch.arange(len(data.train))
    together = new_networks(recipe, data, [0, 1])
    for _ in fit_many(recipe, data, together, seeds=[0, 1], pools=[pool] * 2, device=cpu):
        pass
    for seed, network in enumerate(together):
        alone = new_networks(recipe, data, [seed])
        for _ in fit_many(recipe, data, alone, seeds=[seed], pools=[pool], device=cpu):
            pass
        for ours, theirs in zip(network.parameters(), alone[0].parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=2e-3)
