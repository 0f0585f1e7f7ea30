"""List the memories that the contract is tested on, at least one case per kind.

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads, t tables, d width.
"""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from mnemic.memory import MEMORIES, Reading, Written
from mnemic.recipe import build

D, SLOTS = 6, 8


class Case(NamedTuple):
    """A memory to test, and its properties beyond the contract."""

    spec: dict[str, Any]
    hops: int
    heads: int = 1
    appends: bool = False  # one input per slot, in order; the oldest are evicted
    shares: bool = True  # the weights of a hop sum to at most one
    hard: bool = False  # a hop reads exactly one slot: only the scores can be trained
    piecewise: bool = True  # splitting a text into several writes changes nothing


PLAIN = {"kind": "gru", "fused": False, "inner": 4}  # a controller that runs under vmap

CASES = {
    "memn2n": Case({"kind": "memn2n", "hops": 3}, 3, appends=True),
    "memn2n, layer-wise": Case({"kind": "memn2n", "hops": 2, "tying": "layerwise"}, 2, appends=True),
    "memn2n, non-linear": Case(
        {"kind": "memn2n", "tying": "layerwise", "update": {"kind": "linear", "relu": True}}, 3, appends=True
    ),
    "memn2n, linear start": Case({"kind": "memn2n", "softmax": False}, 3, appends=True, shares=False),
    "memn2n, plain": Case(
        {"kind": "memn2n", "hops": 1, "time": False, "noise": 0.0, "free_slots": False}, 1, appends=True
    ),
    "memn2n, gated": Case({"kind": "memn2n", "hops": 2, "update": {"kind": "gated"}}, 2, appends=True),
    "memn2n, one gate": Case({"kind": "memn2n", "update": {"kind": "gated", "shared": True}}, 3, appends=True),
    "blended": Case({"kind": "blended", "controller": PLAIN}, 2, piecewise=False),
    "bert-mass, all slots": Case(
        {"kind": "blended", "slots_per_write": 8, "hops": 1, "heads": 2, "controller": PLAIN},
        1,
        heads=2,
        piecewise=False,
    ),
    "selective": Case({"kind": "selective", "controller": PLAIN}, 3),
    "selective, no times": Case(
        {"kind": "selective", "hops": 1, "time": False, "heads": 2, "controller": PLAIN}, 1, heads=2
    ),
    "entnet": Case({"kind": "entnet"}, 1),
    "entnet, no biases": Case({"kind": "entnet", "bias": False}, 1),
    "dmn": Case({"kind": "dmn"}, 3, appends=True, shares=False),
    "dmn, one pass": Case({"kind": "dmn", "passes": 1}, 1, appends=True, shares=False),
    "dmn, layers": Case({"kind": "dmn-layers"}, 3, appends=True, shares=False),
    "dmn, sums": Case({"kind": "dmn-sum"}, 3, appends=True),
    "dmn+": Case({"kind": "dmn-plus"}, 3, appends=True),
    "dmn+, two passes": Case({"kind": "dmn-plus", "passes": 2}, 2, appends=True),
    "key-value": Case({"kind": "key-value", "hops": 2, "update": {"kind": "rotate"}}, 2, appends=True),
    "key-value, one hop": Case({"kind": "key-value", "hops": 1}, 1, appends=True),
    "memnn": Case({"kind": "memnn"}, 2, heads=2, appends=True, hard=True),
    "memnn, no times": Case({"kind": "memnn", "time": False}, 2, appends=True, hard=True),
    "memnn, AM and NL": Case(
        {"kind": "memnn", "hops": 4, "stop": True, "match": {"kind": "tanh"}}, 4, heads=2, appends=True, hard=True
    ),
    "memnn, knows the hop": Case({"kind": "memnn", "hops": 3, "order": 0.5}, 3, heads=2, appends=True, hard=True),
    "memnn, forgets the useless": Case({"kind": "memnn", "forget": {"kind": "useless"}}, 2, heads=2, hard=True),
    "regions": Case({"kind": "regions"}, 1, appends=True),
    "regions, sampled": Case({"kind": "sampled-regions"}, 1, appends=True, hard=True),
    "slot-rewriting": Case({"kind": "slot-rewriting", "steps": 3, "heads": 2}, 3, heads=2, appends=True),
    "slot-rewriting, question alone": Case(
        {"kind": "slot-rewriting", "steps": 2, "heads": 3, "rewrite": False, "stop": False}, 2, heads=3, appends=True
    ),
    "wmn": Case({"kind": "wmn"}, 4, heads=8, appends=True),
    "wmn, plain": Case(
        {"kind": "wmn", "hops": 1, "heads": 2, "time": False, "free_slots": False, "tanh": False},
        1,
        heads=2,
        appends=True,
    ),
}
EVERY = pytest.mark.parametrize("name", CASES)
APPENDING = pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.appends])


def make(name: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    memory = build(MEMORIES, CASES[name].spec, width=D, slots=SLOTS, longest=7)
    return memory.eval()


def contents(memory: Any, *shape: int, seed: int = 1, size: float = 1.0) -> Tensor:
    """Make random encoder outputs: … t d."""
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(*shape, memory.num_tables, D, generator=generator)


def real(rows: list[str]) -> Tensor:
    """Make a mask from ``["xx.", "x.."]``: x is an input, a dot is padding."""
    return torch.tensor([[sign == "x" for sign in row] for row in rows])


def write_states(memory: Any, states: Tensor, mask: Tensor | None = None) -> Written:
    """Write into an empty memory."""
    if mask is None:
        mask = torch.ones(states.shape[:2], dtype=torch.bool)
    return memory.write(memory.empty(states.shape[0], states), states, mask)


def evidence(reading: Reading, written: Written) -> Tensor:
    """Compute how much of each *input* was read (b k h m n)."""
    return reading.weights @ written.weights[:, None, None].mT


def copy(state: Any) -> list[Tensor]:
    return [tensor.clone() for tensor in state]


def same(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, atol=2e-6, rtol=2e-5)
