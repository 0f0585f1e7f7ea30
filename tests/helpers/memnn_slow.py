"""MemNN's equations in slow loops, for all tests that compare with them.

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


def told(memory: MemNN, states: Tensor, mask: Tensor | None = None) -> Any:
    seen = torch.ones(states.shape[:2], dtype=torch.bool) if mask is None else mask
    return memory.write(memory.empty(states.shape[0], states), states, seen)


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
