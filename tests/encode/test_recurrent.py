"""Recurrent networks: equal to torch's and to plain loops, and unchanged by padding.

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


def make_recurrent(kind: str, seed: int = 0, **options: Any) -> nn.Module:
    torch.manual_seed(seed)
    return build(RECURRENTS, {"kind": kind, **options}, width=D).eval()


def random_inputs(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed))


def length_mask(lengths: list[int], steps: int) -> Tensor:
    return torch.arange(steps) < torch.tensor(lengths)[:, None]


def assert_all_close(actual: Any, expected: Any) -> None:
    for actual_element, expected_element in zip(actual, expected, strict=True):
        if isinstance(actual_element, tuple):
            assert_all_close(actual_element, expected_element)
        else:
            torch.testing.assert_close(actual_element, expected_element)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("directions", ["forward", "halves"])
def test_equals_torch(kind: str, depth: int, directions: str) -> None:
    """torch's network with the same weights, on each text alone."""
    network, bidirectional = make_recurrent(kind, depth=depth, directions=directions), directions == "halves"
    reference = TORCH[kind](
        D, D // (1 + bidirectional), num_layers=depth, bidirectional=bidirectional, batch_first=True
    ).eval()
    suffixes = [
        f"_l{layer}{direction}" for layer in range(depth) for direction in ("", "_reverse")[: 1 + bidirectional]
    ]
    copied = {
        name.removesuffix("_l0") + suffix: weight
        for suffix, layer in zip(suffixes, network.layers.networks, strict=True)
        for name, weight in layer.named_parameters()
    }
    reference.load_state_dict(copied)
    x, lengths = random_inputs(3, 6), [6, 2, 4]
    actual = network(x, length_mask(lengths, 6))
    for row, length in enumerate(lengths):
        states, final = reference(x[row : row + 1, :length])
        final = final if kind == "lstm" else (final,)  # l b c each
        torch.testing.assert_close(actual.states[row : row + 1, :length], states)
        assert_all_close([tensor[row] for tensor in actual.state], [tensor[:, 0] for tensor in final])
        last = final[0][-2:].flatten() if bidirectional else final[0][-1].flatten()
        torch.testing.assert_close(actual.last[row], last)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("fused", [True, False])
def test_equals_the_equations(kind: str, fused: bool) -> None:
    """The papers' equations, step by step, for one text."""
    network, x = make_recurrent(kind, fused=fused), random_inputs(1, 5)
    w, u, b, recurrent_bias = network.layers.networks[0].parameters()
    h = c = torch.zeros(D)
    states = []
    for step in range(5):
        from_input, from_state = w @ x[0, step] + b, u @ h + recurrent_bias
        if kind == "elman":
            h = torch.tanh(from_input + from_state)
        if kind == "gru":
            reset, z = torch.sigmoid(from_input + from_state)[:D], torch.sigmoid(from_input + from_state)[D : 2 * D]
            h = (1 - z) * torch.tanh(from_input[2 * D :] + reset * from_state[2 * D :]) + z * h
        if kind == "lstm":
            i, f, g, o = (from_input + from_state).split(D)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    actual = network(x, length_mask([5], 5))
    torch.testing.assert_close(actual.states[0], torch.stack(states))
    torch.testing.assert_close(actual.state[-1][0, 0], c if kind == "lstm" else h)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("directions", DIRECTIONS)
@pytest.mark.parametrize("depth", [1, 2])
def test_fused_and_plain_agree(kind: str, directions: str, depth: int) -> None:
    """States, final states and gradients; padding at the end, in between, in front, everywhere."""
    fused = make_recurrent(kind, directions=directions, depth=depth)
    unfused = make_recurrent(kind, directions=directions, depth=depth, fused=False)
    unfused.load_state_dict(fused.state_dict())
    mask = length_mask([6, 3, 1, 0, 6, 6], 6)
    mask[4, [1, 4]] = False
    mask[5, :2] = False
    start = [tensor + 0.1 for tensor in fused(random_inputs(6, 2, seed=3), mask[:, :2]).state]
    results, gradients = [], []
    for network in (fused, unfused):
        x = random_inputs(6, 6).requires_grad_()
        state = type(fused(x, mask).state)(*(tensor.detach().clone() for tensor in start))
        output = network(x, mask, state)
        results.append(output)
        loss = (output.states * random_inputs(6, 6, seed=2)).sum() + output.last.sum()
        loss = loss + sum(tensor.square().sum() for tensor in output.state)
        gradients.append(torch.autograd.grad(loss, [x, *network.parameters()]))
    assert_all_close(*results)
    assert_all_close(*gradients)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_padding_changes_nothing(kind: str, fused: bool, directions: str) -> None:
    network, x = make_recurrent(kind, directions=directions, fused=fused, depth=2), random_inputs(1, 9)
    alone = network(x[:, :4], length_mask([4], 4))
    padded = network(x.expand(2, -1, -1), length_mask([4, 9], 9))
    torch.testing.assert_close(padded.states[:1, :4], alone.states)
    assert (padded.states[0, 4:] == 0).all()
    torch.testing.assert_close(padded.last[:1], alone.last)
    assert_all_close([tensor[:1] for tensor in padded.state], alone.state)


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("fused", [True, False])
def test_two_calls_equal_one_call(kind: str, fused: bool) -> None:
    """Each row is cut at its own position; padding only passes the state on."""
    network, x = make_recurrent(kind, fused=fused, depth=2), random_inputs(3, 8)
    full = network(x, length_mask([8, 8, 5], 8))
    first = network(x[:, :3], length_mask([3, 3, 3], 3))
    padding_only = network(random_inputs(3, 2, seed=4), length_mask([0, 0, 0], 2), first.state)
    assert_all_close(padding_only.state, first.state)
    torch.testing.assert_close(padding_only.last, first.last)
    second = network(x[:, 3:], length_mask([5, 5, 2], 5), padding_only.state)
    torch.testing.assert_close(torch.cat([first.states, second.states], 1), full.states)
    assert_all_close(second.state, full.state)
    torch.testing.assert_close(second.last, full.last)


@pytest.mark.parametrize("kind", RECURRENTS)
def test_sum_adds_two_directions(kind: str) -> None:
    """Forward states plus the states of a backward network on the reversed text."""
    bidirectional, mask = make_recurrent(kind, directions="sum"), length_mask([5], 5)
    forward, backward = make_recurrent(kind, seed=1), make_recurrent(kind, seed=2)
    for single, network in zip((forward, backward), bidirectional.layers.networks, strict=True):
        single.layers.networks[0].load_state_dict(network.state_dict())
    x = random_inputs(1, 5)
    expected = forward(x, mask).states + backward(x.flip(1), mask).states.flip(1)
    torch.testing.assert_close(bidirectional(x, mask).states, expected)


@pytest.mark.parametrize("lengths", [[6, 3, 1, 0], [6, 6, 6, 6]])
def test_packed_and_guarded_lstms_agree(lengths: list[int]) -> None:
    """The LSTM's two ways to skip padding: packed rows (GPU), guarded cells (CPU)."""
    network, x = make_recurrent("lstm").layers.networks[0], random_inputs(4, 6)
    length_column = torch.tensor(lengths)[:, None]
    start = (random_inputs(1, 4, seed=2), random_inputs(1, 4, seed=3))
    guarded, cell = recurrence.run_lstm_guarded(network, x, length_column, start)
    packed, packed_cell = recurrence.run_lstm_packed(network, x, length_column, start)
    mask = length_mask(lengths, 6)
    torch.testing.assert_close(guarded[mask], packed[mask])
    nonempty = length_column[:, 0] > 0  # an empty row is packed as one step; its final state is not used
    torch.testing.assert_close(cell[:, nonempty], packed_cell[:, nonempty])


@pytest.mark.parametrize("kind", RECURRENTS)
def test_the_given_state_is_left_as_it_was(kind: str) -> None:
    network, x, mask = make_recurrent(kind), random_inputs(2, 3), length_mask([3, 2], 3)
    state = network(x, mask).state
    before = [tensor.clone() for tensor in state]
    network(x, mask, state)
    assert all(torch.equal(tensor, old) for tensor, old in zip(state, before))


@pytest.mark.parametrize("kind", RECURRENTS)
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_vmap_over_stacked_weights_equals_single_networks(kind: str, directions: str) -> None:
    """Including the state; each run has its own texts."""
    networks = [make_recurrent(kind, seed, fused=False, directions=directions, depth=2) for seed in range(3)]
    weights, _ = stack_module_state(networks)
    x, mask = random_inputs(3, 2, 4), length_mask([4, 2], 4).expand(3, 2, 4)

    def run(run_weights: dict[str, Tensor], x: Tensor, mask: Tensor) -> Any:
        first = functional_call(networks[0], run_weights, (x, mask))
        return functional_call(networks[0], run_weights, (x, mask, first.state))

    stacked = vmap(run)(weights, x, mask)
    for run_index, network in enumerate(networks):
        expected = network(x[run_index], mask[run_index], network(x[run_index], mask[run_index]).state)
        torch.testing.assert_close(stacked.states[run_index], expected.states)
        torch.testing.assert_close(stacked.last[run_index], expected.last)
        assert_all_close([tensor[run_index] for tensor in stacked.state], expected.state)


def test_functional_call_uses_the_given_weights() -> None:
    """The fused kernel uses the weights it is called with, not those of the module."""
    for kind in RECURRENTS:
        network, other_network = make_recurrent(kind, 0), make_recurrent(kind, 1)
        x, mask = random_inputs(2, 3), length_mask([3, 2], 3)
        output = functional_call(network, dict(other_network.named_parameters()), (x, mask))
        torch.testing.assert_close(output.states, other_network(x, mask).states)


def test_dropout_acts_between_layers_in_training() -> None:
    network, x, mask = make_recurrent("gru", depth=2, dropout=0.5), random_inputs(2, 3), length_mask([3, 2], 3)
    assert torch.equal(network(x, mask).states, network(x, mask).states)
    network.train()
    assert not torch.equal(network(x, mask).states, network(x, mask).states)


@pytest.mark.parametrize("norm", [False, True])
def test_an_encoder_carries_its_state(norm: bool) -> None:
    torch.manual_seed(0)
    encoder = RecurrentEncoder(D, 20, norm=norm).eval()
    tokens, mask = torch.randint(20, (2, 7)), length_mask([7, 5], 7)
    full = encoder(tokens, mask)
    first = encoder.encode_with_state(tokens[:, :3], mask[:, :3])
    rest = encoder(tokens[:, 3:], mask[:, 3:], first.state)
    torch.testing.assert_close(torch.cat([first.states, rest], 1), full)


@pytest.mark.parametrize("kind", RECURRENTS)
def test_a_norm_makes_the_states_of_all_kinds_the_same_size(kind: str) -> None:
    """Closed LSTM gates shrink states; the norm does not touch the carried state."""
    spec = {"kind": kind, "depth": 2}
    torch.manual_seed(0)
    bare, normed = (RecurrentEncoder(64, 20, recurrent=spec, norm=has_norm) for has_norm in (False, True))
    normed.load_state_dict(bare.state_dict(), strict=False)
    tokens, mask = torch.randint(20, (4, 9)), length_mask([9, 9, 5, 0], 9)
    with torch.no_grad():
        bare_output, normed_output = bare.encode_with_state(tokens, mask), normed.encode_with_state(tokens, mask)
    assert bare_output.states[mask].std() < 0.4
    torch.testing.assert_close(normed_output.states[mask].std(), torch.tensor(1.0), atol=0.01, rtol=0)
    assert (normed_output.states[~mask] == 0).all()
    torch.testing.assert_close(normed_output.last[0], normed_output.states[0, -1])
    assert_all_close(normed_output.state, bare_output.state)


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="dropout needs a depth of 2"):
        make_recurrent("gru", dropout=0.1)
    with pytest.raises(ConfigError, match="two halves"):
        build(RECURRENTS, {"kind": "gru", "directions": "halves"}, width=7)
    with pytest.raises(ConfigError, match="'forward', 'halves', 'sum'"):
        make_recurrent("gru", directions="backward")
