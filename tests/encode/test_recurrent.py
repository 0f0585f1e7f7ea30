"""Recurrent networks: equal to torch's, to a loop by hand, and untouched by padding.

Shapes: b batch, n steps, d width, l layers times directions, c channels of one direction.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from mnemic.encode import recurrence
from mnemic.encode.recurrent import RECURRENTS, RecurrentEncoder
from mnemic.recipe import ConfigError, build

D = 8
TORCH = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
DIRECTIONS = ["forward", "halves", "sum"]


def make(kind: str, seed: int = 0, **options: Any) -> nn.Module:
    torch.manual_seed(seed)
    return build(RECURRENTS, {"kind": kind, **options}, width=D).eval()


def rows(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed))


def real(lengths: list[int], steps: int) -> Tensor:
    return torch.arange(steps) < torch.tensor(lengths)[:, None]


def same(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, tuple):
            same(one, other)
        else:
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("directions", ["forward", "halves"])
def test_equals_torch(kind: str, depth: int, directions: str) -> None:
    """torch's own network, with the same weights, on each text alone."""
    ours, both = make(kind, depth=depth, directions=directions), directions == "halves"
    theirs = TORCH[kind](D, D // (1 + both), num_layers=depth, bidirectional=both, batch_first=True).eval()
    suffixes = [f"_l{layer}{way}" for layer in range(depth) for way in ("", "_reverse")[: 1 + both]]
    copied = {
        name.removesuffix("_l0") + suffix: weight
        for suffix, network in zip(suffixes, ours.layers.networks, strict=True)
        for name, weight in network.named_parameters()
    }
    theirs.load_state_dict(copied)
    x, lengths = rows(3, 6), [6, 2, 4]
    found = ours(x, real(lengths, 6))
    for row, length in enumerate(lengths):
        states, end = theirs(x[row : row + 1, :length])
        end = end if kind == "lstm" else (end,)  # l b c each
        torch.testing.assert_close(found.states[row : row + 1, :length], states)
        same([part[row] for part in found.state], [part[:, 0] for part in end])
        last = end[0][-2:].flatten() if both else end[0][-1].flatten()
        torch.testing.assert_close(found.last[row], last)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("fused", [True, False])
def test_equals_the_equations(kind: str, fused: bool) -> None:
    """The papers' equations, step by step, one text."""
    ours, x = make(kind, fused=fused), rows(1, 5)
    w, u, b, v = ours.layers.networks[0].parameters()
    h = c = torch.zeros(D)
    states = []
    for t in range(5):
        a, r = w @ x[0, t] + b, u @ h + v
        if kind == "elman":
            h = torch.tanh(a + r)
        if kind == "gru":
            reset, z = torch.sigmoid(a + r)[:D], torch.sigmoid(a + r)[D : 2 * D]
            h = (1 - z) * torch.tanh(a[2 * D :] + reset * r[2 * D :]) + z * h
        if kind == "lstm":
            i, f, g, o = (a + r).split(D)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    found = ours(x, real([5], 5))
    torch.testing.assert_close(found.states[0], torch.stack(states))
    torch.testing.assert_close(found.state[-1][0, 0], c if kind == "lstm" else h)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("directions", DIRECTIONS)
@pytest.mark.parametrize("depth", [1, 2])
def test_fused_and_plain_agree(kind: str, directions: str, depth: int) -> None:
    """States, ends and gradients; padding at the end, in between, in front and everywhere."""
    fused = make(kind, directions=directions, depth=depth)
    plain = make(kind, directions=directions, depth=depth, fused=False)
    plain.load_state_dict(fused.state_dict())
    mask = real([6, 3, 1, 0, 6, 6], 6)
    mask[4, [1, 4]] = False
    mask[5, :2] = False
    grown = [part + 0.1 for part in fused(rows(6, 2, seed=3), mask[:, :2]).state]
    results, slopes = [], []
    for network in (fused, plain):
        x = rows(6, 6).requires_grad_()
        state = type(fused(x, mask).state)(*(part.detach().clone() for part in grown))
        found = network(x, mask, state)
        results.append(found)
        loss = (found.states * rows(6, 6, seed=2)).sum() + found.last.sum()
        loss = loss + sum(part.square().sum() for part in found.state)
        slopes.append(torch.autograd.grad(loss, [x, *network.parameters()]))
    same(*results)
    same(*slopes)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_padding_changes_nothing(kind: str, fused: bool, directions: str) -> None:
    network, x = make(kind, directions=directions, fused=fused, depth=2), rows(1, 9)
    alone = network(x[:, :4], real([4], 4))
    among = network(x.expand(2, -1, -1), real([4, 9], 9))
    torch.testing.assert_close(among.states[:1, :4], alone.states)
    assert (among.states[0, 4:] == 0).all()
    torch.testing.assert_close(among.last[:1], alone.last)
    same([part[:1] for part in among.state], alone.state)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("fused", [True, False])
def test_two_pieces_are_the_whole(kind: str, fused: bool) -> None:
    """Each row is cut where it likes: padding in a piece only carries the state past it."""
    network, x = make(kind, fused=fused, depth=2), rows(3, 8)
    whole = network(x, real([8, 8, 5], 8))
    first = network(x[:, :3], real([3, 3, 3], 3))
    nothing = network(rows(3, 2, seed=4), real([0, 0, 0], 2), first.state)
    same(nothing.state, first.state)
    torch.testing.assert_close(nothing.last, first.last)
    second = network(x[:, 3:], real([5, 5, 2], 5), nothing.state)
    torch.testing.assert_close(torch.cat([first.states, second.states], 1), whole.states)
    same(second.state, whole.state)
    torch.testing.assert_close(second.last, whole.last)


@pytest.mark.parametrize("kind", RECURRENTS)
def test_sum_adds_two_directions(kind: str) -> None:
    """As the forward network's states plus those of the backward one on the text turned round."""
    both, mask = make(kind, directions="sum"), real([5], 5)
    ahead, back = make(kind, seed=1), make(kind, seed=2)
    for one, network in zip((ahead, back), both.layers.networks, strict=True):
        one.layers.networks[0].load_state_dict(network.state_dict())
    x = rows(1, 5)
    wanted = ahead(x, mask).states + back(x.flip(1), mask).states.flip(1)
    torch.testing.assert_close(both(x, mask).states, wanted)


@pytest.mark.parametrize("lengths", [[6, 3, 1, 0], [6, 6, 6, 6]])
def test_packing_and_holding_agree(lengths: list[int]) -> None:
    """The LSTM's two ways past padding: packed rows (GPU) and a held cell (CPU)."""
    network, x = make("lstm").layers.networks[0], rows(4, 6)
    sizes = torch.tensor(lengths)[:, None]
    begin = (rows(1, 4, seed=2), rows(1, 4, seed=3))
    held, cell = recurrence.run_lstm_guarded(network, x, sizes, begin)
    packed, wanted = recurrence.run_lstm_packed(network, x, sizes, begin)
    mask = real(lengths, 6)
    torch.testing.assert_close(held[mask], packed[mask])
    some = sizes[:, 0] > 0  # a row of nothing is packed as a row of one; its end is not used
    torch.testing.assert_close(cell[:, some], wanted[:, some])


@pytest.mark.parametrize("kind", RECURRENTS)
def test_the_given_state_is_left_as_it_was(kind: str) -> None:
    network, x, mask = make(kind), rows(2, 3), real([3, 2], 3)
    state = network(x, mask).state
    before = [part.clone() for part in state]
    network(x, mask, state)
    assert all(torch.equal(part, old) for part, old in zip(state, before))


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_many_at_once(kind: str, directions: str) -> None:
    """Under vmap over stacked weights, state and all, each run with its own texts."""
    parts = [make(kind, seed, fused=False, directions=directions, depth=2) for seed in range(3)]
    weights, _ = stack_module_state(parts)
    x, mask = rows(3, 2, 4), real([4, 2], 4).expand(3, 2, 4)

    def run(own: dict[str, Tensor], x: Tensor, mask: Tensor) -> Any:
        first = functional_call(parts[0], own, (x, mask))
        return functional_call(parts[0], own, (x, mask, first.state))

    found = vmap(run)(weights, x, mask)
    for number, part in enumerate(parts):
        wanted = part(x[number], mask[number], part(x[number], mask[number]).state)
        torch.testing.assert_close(found.states[number], wanted.states)
        torch.testing.assert_close(found.last[number], wanted.last)
        same([part[number] for part in found.state], wanted.state)


def test_other_weights_can_be_called_in() -> None:
    """The fused kernel uses the weights it is called with, not those it was built with."""
    for kind in RECURRENTS:
        network, other = make(kind, 0), make(kind, 1)
        x, mask = rows(2, 3), real([3, 2], 3)
        found = functional_call(network, dict(other.named_parameters()), (x, mask))
        torch.testing.assert_close(found.states, other(x, mask).states)


def test_dropout_acts_between_layers_in_training() -> None:
    network, x, mask = make("gru", depth=2, dropout=0.5), rows(2, 3), real([3, 2], 3)
    assert torch.equal(network(x, mask).states, network(x, mask).states)
    network.train()
    assert not torch.equal(network(x, mask).states, network(x, mask).states)


@pytest.mark.parametrize("norm", [False, True])
def test_an_encoder_carries_its_state(norm: bool) -> None:
    torch.manual_seed(0)
    encoder = RecurrentEncoder(D, 20, norm=norm).eval()
    tokens, mask = torch.randint(20, (2, 7)), real([7, 5], 7)
    whole = encoder(tokens, mask)
    first = encoder.encode_with_state(tokens[:, :3], mask[:, :3])
    rest = encoder(tokens[:, 3:], mask[:, 3:], first.state)
    torch.testing.assert_close(torch.cat([first.states, rest], 1), whole)


@pytest.mark.parametrize("kind", RECURRENTS)
def test_a_norm_makes_the_states_of_all_kinds_the_same_size(kind: str) -> None:
    """An LSTM's shut gates leave little of a word; what it carries on is not touched."""
    spec = {"kind": kind, "depth": 2}
    torch.manual_seed(0)
    bare, normed = (RecurrentEncoder(64, 20, recurrent=spec, norm=own) for own in (False, True))
    normed.load_state_dict(bare.state_dict(), strict=False)
    tokens, mask = torch.randint(20, (4, 9)), real([9, 9, 5, 0], 9)
    with torch.no_grad():
        small, found = bare.encode_with_state(tokens, mask), normed.encode_with_state(tokens, mask)
    assert small.states[mask].std() < 0.4
    torch.testing.assert_close(found.states[mask].std(), torch.tensor(1.0), atol=0.01, rtol=0)
    assert (found.states[~mask] == 0).all()
    torch.testing.assert_close(found.last[0], found.states[0, -1])
    same(found.state, small.state)


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="dropout needs a depth of 2"):
        make("gru", dropout=0.1)
    with pytest.raises(ConfigError, match="two halves"):
        build(RECURRENTS, {"kind": "gru", "directions": "halves"}, width=7)
    with pytest.raises(ConfigError, match="'forward', 'halves', 'sum'"):
        make("gru", directions="backward")
