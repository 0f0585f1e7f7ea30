"""Gated MemN2N: the paper's equation in a plain loop, open and closed gates, shared gates."""

from math import exp
from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.memory import MEMORIES
from mnemic.memory.memn2n import MemN2N
from mnemic.memory.parts.hop_update import AddUpdate, GatedUpdate
from mnemic.models import build_model
from mnemic.recipe import ConfigError, build, load_recipe

D = 4


def run_reference(update: GatedUpdate, u: list[float], output: list[float], hop: int) -> list[float]:
    """``u' = o ∘ T(u) + u ∘ (1 - T(u))``, ``T(u) = σ(W u + b)``, channel by channel."""
    index = 0 if update.shared else hop
    matrix, bias = update.maps[index].tolist(), update.biases[index].tolist()
    new = []
    for channel in range(len(u)):
        logit = bias[channel] + sum(w * x for w, x in zip(matrix[channel], u))
        gate = 1 / (1 + exp(-logit))
        new.append(output[channel] * gate + u[channel] * (1 - gate))
    return new


@pytest.mark.parametrize("shared", [False, True])
def test_equals_the_papers_equation(shared: bool) -> None:
    update = GatedUpdate(D, 3, shared=shared).double()
    u, output = (torch.randn(2, 5, D, dtype=torch.float64) for _ in range(2))
    for hop in range(3):
        new = update(u, output, hop)
        for b in range(2):
            for m in range(5):
                expected = run_reference(update, u[b, m].tolist(), output[b, m].tolist(), hop)
                torch.testing.assert_close(new[b, m], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(("bias", "source"), [(50.0, "found"), (-50.0, "u")])
def test_an_open_gate_passes_the_output_a_closed_one_the_query(bias: float, source: str) -> None:
    update = GatedUpdate(D, 2)
    with torch.no_grad():
        update.biases.fill_(bias)
    tensors = {"u": torch.randn(2, 5, D), "found": torch.randn(2, 5, D)}
    for hop in range(2):
        torch.testing.assert_close(update(tensors["u"], tensors["found"], hop), tensors[source])


def test_gates_are_between_0_and_1_and_begin_more_open_than_shut() -> None:
    torch.manual_seed(0)
    gates = GatedUpdate(50, 3).gate(torch.randn(200, 1, 50), 1)
    assert gates.gt(0).all()
    assert gates.lt(1).all()
    assert gates.mean().item() == pytest.approx(torch.tensor(0.5).sigmoid().item(), abs=0.03)


def test_each_hop_has_its_gate_or_all_share_one() -> None:
    u, output = torch.randn(2, 5, D), torch.randn(2, 5, D)
    per_hop, shared = GatedUpdate(D, 3), GatedUpdate(D, 3, shared=True)
    assert not torch.allclose(per_hop(u, output, 0), per_hop(u, output, 1))
    assert torch.equal(shared(u, output, 0), shared(u, output, 1))
    assert per_hop.maps.shape == (3, D, D)
    assert shared.maps.shape == (1, D, D)


def make_memory(**update: Any) -> MemN2N:
    spec = {"kind": "memn2n", "hops": 2, "slots": 5, "update": {"kind": "gated", **update}}
    return build(MEMORIES, spec, width=D, longest=7).eval()


def read_all(memory: MemN2N, states: Tensor, query: Tensor) -> Any:
    mask = torch.ones(states.shape[:2], dtype=torch.bool)
    return memory.read(memory.write(memory.empty(2, states), states, mask).state, query)


def test_memn2n_hands_its_hops_to_the_gates() -> None:
    assert make_memory().update.maps.shape[0] == 2
    assert make_memory(shared=True).update.maps.shape[0] == 1
    with pytest.raises(ConfigError, match="does not take 'hops'"):
        make_memory(hops=5)


def test_with_every_gate_shut_the_question_goes_through_as_it_came() -> None:
    memory = make_memory()
    with torch.no_grad():
        memory.update.biases.fill_(-50.0)
    states, query = torch.randn(2, 4, 3, D), torch.randn(2, 1, 3, D)
    reading = read_all(memory, states, query)
    torch.testing.assert_close(reading.found, query[:, :, 0])
    torch.testing.assert_close(reading.gates, torch.zeros(2, 2, 1))  # the reading reports it


def test_half_open_gates_are_half_of_memn2n() -> None:
    """With W = b = 0 a hop gives (u + o) / 2."""
    memory = make_memory()
    with torch.no_grad():
        memory.update.maps.zero_()
        memory.update.biases.zero_()
    states, query = torch.randn(2, 4, 3, D), torch.randn(2, 1, 3, D)
    gated = read_all(memory, states, query)
    memory.update = AddUpdate()
    plain = read_all(memory, states, query)
    assert torch.equal(gated.weights[:, 0], plain.weights[:, 0])
    memory.hops = 1
    torch.testing.assert_close(2 * read_half_open(memory, states, query), read_all(memory, states, query).found)


def read_half_open(memory: MemN2N, states: Tensor, query: Tensor) -> Tensor:
    """Read with one hop and half-open gates."""
    update = GatedUpdate(D, 1)
    with torch.no_grad():
        update.maps.zero_()
        update.biases.zero_()
    previous_update, memory.update = memory.update, update
    output = read_all(memory, states, query).found
    memory.update = previous_update
    return output


def test_the_recipe_is_memn2n_but_for_its_gates() -> None:
    gated, plain = load_recipe("gated-memn2n"), load_recipe("memn2n")
    sizes = {"vocab": 9, "max_length": 6}
    names = [{name for name, _ in build_model(recipe["model"], sizes).named_parameters()} for recipe in (gated, plain)]
    assert names[0] - names[1] == {"memory.update.maps", "memory.update.biases"}
    gated["model"]["memory"].pop("update")
    assert gated == plain
