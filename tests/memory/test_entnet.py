"""EntNet against the paper's equations slot by slot, and properties of its rewritten slots.

Shapes: b batch, n sentences, m queries, s slots, j positions, d width.
"""

from itertools import product
from math import exp, sqrt
from typing import Any

import pytest
import torch
from story_runs import inputs_of
from torch import Tensor

from mnemic.memory import Reading, Written
from mnemic.memory.entnet import EntNet
from mnemic.memory.parts.entnet_write import remaining_shares
from mnemic.models import MemoryNetwork, ModelOutput, build_model
from mnemic.predict import compute_sentence_weights

D, VOCAB, SLOTS, LONGEST = 4, 9, 3, 6
Vector = list[float]


def network_of(size: float = 4.0, **options: Any) -> MemoryNetwork:
    """Build a network with large weights, so that gates and reads are far from uniform."""
    torch.manual_seed(3)
    model = {
        "width": D,
        "encode": {"kind": "masked-bag"},
        "memory": {"kind": "entnet", "slots": SLOTS, **options},
        "respond": {"kind": "word"},
    }
    network = build_model(model, {"vocab": VOCAB, "longest": LONGEST}).double().eval()
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


# Reference loop --------------------------------------------------------------------------------


def add(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def dot(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def matvec(matrix: Tensor, vector: Vector) -> Vector:
    return [dot(row, vector) for row in matrix.tolist()]


def run_reference(network: MemoryNetwork, story: list[list[int]], question: list[int]) -> tuple[Any, ...]:
    """Logits, gates, final slots and read weights: equations 1 to 6 as printed, plus biases."""
    encode, memory = network.encode, network.memory
    words, masks = encode.words.tolist(), encode.masks.tolist()
    slope = memory.slope.tolist()

    def embed(text: list[int], table: int) -> Vector:
        weighted = [
            [mask * embedding for mask, embedding in zip(masks[table][position], words[word])]
            for position, word in enumerate(text)
        ]
        return add([0.0] * D, *weighted)

    def phi(vector: Vector) -> Vector:
        return [x if x > 0 else a * x for x, a in zip(vector, slope)]

    keys = memory.slot_keys().tolist()
    slots, gates = [list(key) for key in keys], []
    for text in story:
        s, sentence_gates = embed(text, 0), []
        for j, w in enumerate(keys):
            h = slots[j]
            bias = memory.gate_bias[j].item() if memory.bias else 0.0
            g = 1 / (1 + exp(-(dot(s, h) + dot(s, w) + bias)))
            terms = [matvec(memory.old, h), matvec(memory.key, w), matvec(memory.new, s)]
            if memory.bias:
                terms.append(memory.old_bias.tolist())
            h = add(h, [g * c for c in phi(add(*terms))])
            slots[j] = [x / sqrt(dot(h, h)) for x in h]
            sentence_gates.append(g)
        gates.append(sentence_gates)
    q = embed(question, 1)
    weights = [exp(dot(q, h)) for h in slots]
    weights = [weight / sum(weights) for weight in weights]
    u = add(*([p * x for x in h] for p, h in zip(weights, slots)))
    y = phi(add(q, matvec(memory.hop, u)))
    return matvec(network.respond.table, y), gates, slots, weights


@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"tied": [5, 2, 7, 3]}], ids=["authors", "paper", "tied keys"]
)
def test_equals_the_papers_equations(options: dict[str, Any]) -> None:
    network = network_of(**options)
    output = network(inputs_of(STORIES))
    for row, (story, question) in enumerate(STORIES):
        logits, gates, slots, weights = run_reference(network, story, question)
        actual = (
            output.logits[row, 0],
            output.written.gates[row, : len(story)],
            output.written.state.slots[row],
            output.reading.weights[row, 0, 0, 0],
        )
        for ours_value, reference_value in zip(actual, (logits, gates, slots, weights)):
            expected = torch.tensor(reference_value, dtype=torch.float64).view(ours_value.shape)
            torch.testing.assert_close(ours_value, expected)


# A rewriting memory ----------------------------------------------------------------------------


def write_all(memory: EntNet, states: Tensor, mask: Tensor | None = None) -> Any:
    full_mask = torch.ones(states.shape[:2], dtype=torch.bool) if mask is None else mask
    return memory.write(memory.empty(states.shape[0], states), states, full_mask)


def test_a_later_sentence_changes_slots() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(2, 4, 2, 8)
    before = write_all(memory, states[:, :3]).state
    after = memory.write(before, states[:, 3:], torch.ones(2, 1, dtype=torch.bool)).state
    assert after.slots.shape == before.slots.shape  # nothing was added
    assert ((after.slots - before.slots).abs().amax(-1) > 1e-3).all()


def test_a_slot_changes_as_far_as_its_gate_opens() -> None:
    """One key matches the sentence; the other keys point the opposite way."""
    memory = EntNet(8, slots=3, bias=False)
    with torch.no_grad():
        memory.keys.copy_(torch.tensor([[9.0], [-9.0], [-9.0]]) * torch.eye(8)[0])
    states = torch.zeros(1, 1, 2, 8)
    states[..., 0] = 2.0
    initial, written = memory.empty(1, states), write_all(memory, states)
    gates = written.gates[0, 0]
    assert gates[0] > 0.999
    assert (gates[1:] < 1e-3).all()
    similarity = torch.cosine_similarity(written.state.slots, initial.slots, dim=-1)[0]
    assert (similarity[1:] > 0.9999).all()


def test_padding_leaves_the_state_bit_for_bit() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(2, 6, 2, 8) * 100
    before = write_all(memory, states[:, :2]).state
    no_mask = torch.zeros(2, 4, dtype=torch.bool)
    written = memory.write(before, states[:, 2:], no_mask)
    assert torch.equal(written.state.slots, before.slots)
    assert written.weights.eq(0).all()
    initial = memory.empty(2, states)  # no unit norm yet
    assert torch.equal(memory.write(initial, states[:, 2:], no_mask).state.slots, initial.slots)


def test_slots_begin_as_keys_and_are_of_unit_length_once_written() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(3, 4, 2, 8)
    assert torch.equal(memory.empty(3, states).slots, memory.keys.expand(3, 5, 8))
    norms = write_all(memory, states).state.slots.norm(dim=-1)
    torch.testing.assert_close(norms, torch.ones(3, 5))


def test_gates_are_between_0_and_1() -> None:
    memory, states = EntNet(8, slots=5), torch.randn(3, 4, 2, 8)
    gates = write_all(memory, states).gates
    assert gates.gt(0).all()
    assert gates.lt(1).all()


def test_tied_keys_are_the_encoders_words() -> None:
    network = network_of(tied=[5, 2, 7, 3])
    assert not any("keys" in name for name, _ in network.named_parameters())
    assert torch.equal(network.memory.slot_keys(), network.encode.words[[5, 2, 7, 3]])
    network(inputs_of(STORIES[:1])).logits.sum().backward()
    assert network.encode.words.grad[7].abs().sum() > 0  # in the story, and a key
    assert sum("words" in name for name, _ in network.named_parameters()) == 1
    with pytest.raises(ValueError, match="build_model"):
        EntNet(4, tied=[1]).empty(1, torch.zeros(1, 1, 2, 4))


def test_remaining_shares_of_a_sentence_after_later_writes() -> None:
    """Its gate times 1 − gate of all later ones; plus the key's share: 1."""
    gates = torch.rand(2, 5, 3)
    shares = remaining_shares(gates)
    for b, n, s in product(range(2), range(5), range(3)):
        expected = gates[b, n, s] * (1 - gates[b, n + 1 :, s]).prod()
        torch.testing.assert_close(shares[b, n, s], expected)
    torch.testing.assert_close(shares.sum(1) + (1 - gates).prod(1), torch.ones(2, 3))
    assert remaining_shares(gates[:, :0]).shape == (2, 0, 3)


def test_a_fully_open_gate_erases_a_slot_and_a_closed_one_keeps_it() -> None:
    gates = torch.tensor([1.0, 0.0, 1.0, 0.0])[None, :, None]
    assert remaining_shares(gates).flatten().tolist() == [0.0, 0.0, 1.0, 0.0]


def test_an_overwritten_sentence_stays_in_the_evidence_with_weight_zero() -> None:
    """The sentence entered the memory; users should see that nothing of it remains."""
    gates = torch.ones(1, 3, 2)
    written = Written((), remaining_shares(gates), gates)
    output = ModelOutput(torch.zeros(0), Reading(*[torch.ones(1, 1, 1, 1, 2) / 2] * 3), written)
    assert compute_sentence_weights(output) == {0: [0.0], 1: [0.0], 2: [1.0]}


def test_evidence_of_entnet_is_the_share_that_remains_in_the_slots_read() -> None:
    """With the slots' initial keys, the shares sum to one."""
    with torch.no_grad():
        output = network_of()(inputs_of(STORIES[2:3]))
    shares = compute_sentence_weights(output)
    assert list(shares) == list(range(7))
    write_weights, read_weights = output.written.weights[0], output.reading.weights[0, 0, 0, 0]
    for number, share in shares.items():
        assert share == pytest.approx([float((write_weights[number] * read_weights).sum())])
        assert 0 < share[0] < 1
    before = float(((1 - output.written.gates[0]).prod(0) * read_weights).sum())
    assert sum(share[0] for share in shares.values()) + before == pytest.approx(1, abs=1e-5)
