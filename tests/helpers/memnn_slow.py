"""Compute MemNN's equations in slow loops, to compare with.

Shapes: b batch, n sentences, m queries, s slots, k hops, f facts, t tables, d width.
"""

from typing import Any

import torch
from torch import Tensor

from mnemic.memory.contract import Reading
from mnemic.memory.memnn import MemNN

D, SLOTS = 4, 9


def make(time: bool, stop: bool, match: str, *, hops: int = 3, seed: int = 0) -> MemNN:
    torch.manual_seed(seed)
    order = 0.5 if stop else 0.0
    spec = {"kind": match}
    memory = MemNN(D, hops=hops, slots=SLOTS, time=time, stop=stop, match=spec, order=order)
    for weight in memory.parameters():
        torch.nn.init.normal_(weight)
    return memory.eval()


def write_facts(memory: MemNN, states: Tensor, mask: Tensor | None = None) -> Any:
    fact_mask = torch.ones(states.shape[:2], dtype=torch.bool) if mask is None else mask
    return memory.write(memory.empty(states.shape[0], states), states, fact_mask)


class Slow:
    """One question about one story, by the equations as printed in the paper."""

    def __init__(self, memory: MemNN, facts: Tensor, question: Tensor) -> None:
        self.memory, self.facts, self.question = memory, facts, question  # n t d, t d
        self.none = len(facts)  # the index of "nothing"

    def embedded(self, vector: Tensor) -> Tensor:
        maps = list(self.memory.match.parameters())
        return (maps[0] @ vector.tanh()).tanh() if maps else vector

    def candidate(self, i: int) -> Tensor:
        nothing = self.memory.nothing
        if i == self.none:
            return self.embedded(torch.zeros(D) if nothing is None else nothing)
        return self.embedded(self.facts[i, 2])

    def score(self, chain: list[int], y: int, rival: int) -> float:
        """Compute s(x, y, y′), with x the question and the chain of facts so far.

        Without times it is s(x, y) − s(x, y′).
        """
        x = self.joined(chain, 0, 1, 0)
        total = self.candidate(y) - self.candidate(rival)
        if self.memory.times is not None:
            vectors = self.memory.times.vectors
            last = chain[-1] if chain else self.none
            if y != self.none and last < y:
                total = total + vectors[0]
            if rival != self.none and last < rival:
                total = total + vectors[1]
            if self.none not in (y, rival) and y < rival:
                total = total + vectors[2]
        return (self.embedded(x) @ total).item()

    def joined(self, chain: list[int], question_table: int, fact_table: int, response: int) -> Tensor:
        """Sum [x, m₁, m₂ …] in the dictionaries of O or R, with the hops' gains."""
        total, gains = self.question[question_table], self.memory.gains
        for hop, i in enumerate(chain):
            gain = torch.ones(D) if gains is None else gains[response, hop]
            total = total + gain * self.facts[i, fact_table]
        return total

    def choose(self, chain: list[int]) -> int:
        """Return the best fact: go through the memory once and keep the winner."""
        stops = self.memory.nothing is not None
        winner = 0
        for i in range(1, self.none + stops):
            if self.score(chain, winner, i) <= 0:
                winner = i
        return winner

    def read(self) -> list[int]:
        chain: list[int] = []
        for _ in range(self.memory.hops):
            best = self.choose(chain)
            if best == self.none:
                break
            chain.append(best)
        return chain

    def loss(self, chain: list[int], margin: float) -> float:
        """Compute equations 6 and 7 over all wrong facts; with times, both sums of each."""
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


def slots_read(reading: Reading) -> list[list[list[int]]]:
    """List the slots that were read in each hop, per row and query."""
    weights = reading.weights[:, :, 0].transpose(1, 2)  # b m k s
    assert torch.equal(weights, (weights == 1).to(weights.dtype))
    return [[[int(w.argmax()) for w in hops if w.any()] for hops in row] for row in weights]
