"""Compute the equations of DMN and DMN+ in slow loops, one question at a time."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mnemic.encode.gru_cell import GRUCell


def gru(x: Tensor, h: Tensor, weights: tuple[Tensor, ...]) -> Tensor:
    """Compute one step of a GRU for one example, gate by gate (d each)."""
    w_in, w_back, b_in, b_back = weights
    from_input, from_state = (w_in @ x + b_in).split(len(h)), (w_back @ h + b_back).split(len(h))
    r, z = torch.sigmoid(from_input[0] + from_state[0]), torch.sigmoid(from_input[1] + from_state[1])
    return (1 - z) * torch.tanh(from_input[2] + r * from_state[2]) + z * h


def cell_weights(cell: GRUCell) -> tuple[Tensor, ...]:
    return cell.given.weight, cell.back.weight, cell.given.bias, cell.back.bias


def network_weights(recurrent: Any, number: int = 0) -> tuple[Tensor, ...]:
    return tuple(recurrent.layers.networks[number].all_weights[0])


def slow_gate(scorer: Any, c: Tensor, m: Tensor, q: Tensor) -> Tensor:
    pairs = torch.stack([c @ scorer.pair @ q, c @ scorer.pair @ m])
    z = torch.cat([c, q, m, c * q, (c - q).abs(), c * m, (c - m).abs(), pairs])
    first, second = scorer.gate.first, scorer.gate.second
    return (second.weight @ torch.tanh(first.weight @ z + first.bias) + second.bias)[0]


def slow_dmn(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, gates = q, []
    for _ in range(memory.num_passes):
        h, pass_gates = torch.zeros_like(q), []
        for c in facts:
            g = slow_gate(memory.attend.score, c, m, q).sigmoid()
            h = g * gru(c, h, cell_weights(memory.attend.cell)) + (1 - g) * h
            pass_gates.append(g)
        m = gru(h, m, cell_weights(memory.update))
        gates.append(torch.stack(pass_gates))
    return m, gates


def slow_layers(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, below, gates = q, facts, []
    for _ in range(memory.num_passes):
        h, pass_gates, layer = torch.zeros_like(q), [], []
        for c in below:
            g = slow_gate(memory.attend.score, c, m, q).sigmoid()
            h = g * gru(c, h, cell_weights(memory.attend.cell)) + (1 - g) * h
            pass_gates.append(g)
            layer.append(h)
        m, below = h, layer
        gates.append(torch.stack(pass_gates))
    return m, gates


def slow_plus(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, gates = q, []
    for episode_pass in memory.passes:
        scores = []
        for f in facts:
            z = torch.cat([f * q, (f - q).abs(), f * m, (f - m).abs()])
            hidden = torch.tanh(episode_pass.gate.first.weight @ z + episode_pass.gate.first.bias)
            scores.append(episode_pass.gate.second.weight[0] @ hidden)
        g = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
        h, size = torch.zeros_like(q), len(q)
        for f, gate in zip(facts, g):
            from_input, from_state = episode_pass.gru.given(f), episode_pass.gru.back.weight @ h
            r = torch.sigmoid(from_input[:size] + from_state[:size])
            h = gate * torch.tanh(from_input[size:] + r * from_state[size:]) + (1 - gate) * h
        m = (episode_pass.update.weight @ torch.cat([m, h, q]) + episode_pass.update.bias).clamp(min=0)
        gates.append(g)
    return m, gates


def slow_sum(memory: Any, facts: list[Tensor], q: Tensor) -> tuple[Tensor, list[Tensor]]:
    m, shares = q, []
    for _ in range(memory.num_passes):
        size = torch.stack([slow_gate(memory.score, c, m, q).exp() for c in facts])
        shares.append(size / size.sum())
        episode = sum((share * c for share, c in zip(shares[-1], facts)), torch.zeros_like(q))
        m = gru(episode, m, cell_weights(memory.update))
    return m, shares


SLOW: dict[str, Callable[..., Any]] = {
    "dmn": slow_dmn,
    "dmn-layers": slow_layers,
    "dmn-plus": slow_plus,
    "dmn-sum": slow_sum,
}
