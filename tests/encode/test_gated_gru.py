"""The scan of a gated GRU: equal to torch's GRU, plain loops and kernels.

Shapes: r runs, b batch, n steps, d width, g parts: r, z and h̃, or r and h̃.
"""

import os
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import vmap

from mnemic.encode.gated_gru import can_relay, has_triton, relay_gru, scan_gru, scan_stepwise, scan_with_kernel
from mnemic.encode.recurrent import GRU

D = 5
BOTH_DIRECTIONS = pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
BOTH_KINDS = pytest.mark.parametrize("parts", [2, 3], ids=["attention", "gru"])


def make_scan_inputs(*leading: int, parts: int = 3, batch: int = 3, steps: int = 4, width: int = D) -> Any:
    """Random inputs; some gates are 0 or 1, and one row has only closed gates."""
    generator = torch.Generator().manual_seed(0)

    def noise(*shape: int, size: float = 1.0) -> Tensor:
        return (torch.randn(*leading, *shape, generator=generator) * size).requires_grad_()

    gate = (torch.rand(*leading, batch, steps, generator=generator) * 2 - 0.5).clamp(0, 1)
    gate[..., 1, :] = 0
    weight, bias = noise(parts * width, width, size=width**-0.5), noise(parts * width)
    inputs, start = noise(batch, steps, parts, width), noise(batch, width)
    return inputs, gate.requires_grad_(), weight, bias, start


def test_an_open_gate_is_torchs_gru() -> None:
    inputs, _, weight, bias, start = make_scan_inputs()
    torch_gru = nn.GRU(3 * D, D, batch_first=True)
    torch_gru.load_state_dict(
        {
            "weight_ih_l0": torch.eye(3 * D),
            "bias_ih_l0": torch.zeros(3 * D),
            "weight_hh_l0": weight.detach(),
            "bias_hh_l0": bias.detach(),
        }
    )
    states, torch_last = torch_gru(inputs.flatten(2), start.unsqueeze(0))
    actual, last = scan_gru(inputs, torch.ones(3, 4), weight, bias, start)
    torch.testing.assert_close(actual, states)
    torch.testing.assert_close(last, torch_last[0])


@BOTH_DIRECTIONS
@BOTH_KINDS
def test_equals_the_equations(parts: int, backward: bool) -> None:
    """Row by row and gate by gate."""
    inputs, gate, weight, bias, start = make_scan_inputs(parts=parts)
    states, last = scan_gru(inputs, gate, weight, bias, start, backward=backward)
    for row in range(3):
        h = start[row]
        for step in reversed(range(4)) if backward else range(4):
            recurrent = (weight @ h + bias).split(D)
            reset = torch.sigmoid(inputs[row, step, 0] + recurrent[0])
            new = torch.tanh(inputs[row, step, -1] + reset * recurrent[-1])
            if parts == 3:
                update = torch.sigmoid(inputs[row, step, 1] + recurrent[1])
                new = (1 - update) * new + update * h
            h = gate[row, step] * new + (1 - gate[row, step]) * h
            torch.testing.assert_close(states[row, step], h)
        torch.testing.assert_close(last[row], h)


@BOTH_KINDS
def test_a_shut_gate_leaves_the_state_bit_for_bit(parts: int) -> None:
    inputs, gate, weight, bias, start = make_scan_inputs(parts=parts)
    states, last = scan_gru(inputs * 100, gate, weight, bias, start)
    assert torch.equal(states[1], start[1].expand(4, D))
    assert torch.equal(last[1], start[1])


def test_no_steps_and_no_bias() -> None:
    inputs, gate, weight, bias, start = make_scan_inputs()
    states, last = scan_gru(inputs[:, :0], gate[:, :0], weight, bias, start)
    assert states.shape == (3, 0, D)
    assert torch.equal(last, start)
    for actual, expected in zip(
        scan_gru(inputs, gate, weight, None, start), scan_gru(inputs, gate, weight, bias * 0, start)
    ):
        torch.testing.assert_close(actual, expected)


@BOTH_KINDS
def test_vmap_over_runs_equals_single_runs(parts: int) -> None:
    arguments = make_scan_inputs(2, parts=parts)
    states, last = vmap(scan_gru)(*arguments)
    for run in range(2):
        alone = scan_gru(*(argument[run] for argument in arguments))
        torch.testing.assert_close(states[run], alone[0])
        torch.testing.assert_close(last[run], alone[1])


# Kernels ---------------------------------------------------------------------------------------

NEEDS_KERNELS = pytest.mark.skipif(
    not has_triton() or not (torch.cuda.is_available() or "TRITON_INTERPRET" in os.environ),
    reason="needs triton, and a GPU or TRITON_INTERPRET=1",
)
NEEDS_GPU = pytest.mark.skipif(
    not torch.cuda.is_available() or not has_triton(), reason="needs a GPU"
)  # the programs of the kernel wait for each other
IGNORE_INTERPRETER_WARNINGS = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def to_device(arguments: Any) -> list[Tensor]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return [argument.detach().to(device).requires_grad_() for argument in arguments]


def assert_all_close(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    for actual_tensor, expected_tensor in zip(actual, expected, strict=True):
        torch.testing.assert_close(actual_tensor, expected_tensor, atol=2e-5, rtol=2e-4)


@NEEDS_KERNELS
@IGNORE_INTERPRETER_WARNINGS
@BOTH_DIRECTIONS
@BOTH_KINDS
@pytest.mark.parametrize("width", [20, 70])
def test_the_kernels_give_the_same_numbers_and_gradients(width: int, parts: int, backward: bool) -> None:
    """More rows than one program takes, and more steps than one product covers."""
    arguments = to_device(make_scan_inputs(2, parts=parts, batch=35, width=width))
    transposed = torch.randn(2, 35, width, 4).to(arguments[0])  # whose gradient is not contiguous
    results = []
    for function in (scan_stepwise, scan_with_kernel):
        states, last = vmap(lambda *run_arguments, run=function: run(*run_arguments, backward=backward))(*arguments)
        loss = (states.mT * transposed).sum() + last.square().sum()
        results.append((states, last, *torch.autograd.grad(loss, arguments)))
    assert_all_close(*reversed(results))
    closed = states[:, 1]  # r n d
    assert torch.equal(closed, arguments[4][:, 1:2].expand_as(closed))


@NEEDS_KERNELS
@IGNORE_INTERPRETER_WARNINGS
def test_the_kernels_take_what_runs_share_and_what_is_strided() -> None:
    """One input shared by all runs, a transposed one, no bias, and no vmap."""
    inputs, gate, weight, _, start = to_device(make_scan_inputs(2))
    inputs, start = inputs[0].mT.contiguous().mT, start[0]
    in_dims = (None, 0, 0, None)
    results = []
    for function in (scan_stepwise, scan_with_kernel):
        states, _ = vmap(
            lambda run_inputs, run_gate, run_weight, run_start, run=function: run(
                run_inputs, run_gate, run_weight, None, run_start
            ),
            in_dims,
        )(inputs, gate, weight, start)
        gradients = torch.autograd.grad(states.square().sum(), (inputs, gate, weight, start))
        alone = function(inputs, gate[0], weight[0], None, start)
        with torch.no_grad():
            without_grad = function(inputs, gate[1], weight[1], None, start)
        results.append((states, *gradients, *alone, *without_grad))
    assert_all_close(*reversed(results))


@NEEDS_GPU
@BOTH_DIRECTIONS
@pytest.mark.parametrize("width", [20, 256, 300, 512])
def test_the_relay_kernel_for_few_rows_gives_the_same_numbers(width: int, backward: bool) -> None:
    """A long text with gates of 0 and 1, against steps in double precision."""
    arguments = to_device(make_scan_inputs(batch=3, steps=700, width=width))
    arguments[1] = (arguments[1] > 0.3).float()
    with torch.no_grad():
        states, last = relay_gru(*arguments, backward=backward)
        exact = scan_stepwise(*(argument.double() for argument in arguments), backward=backward)
    assert_all_close((states.double(), last.double()), exact)
    assert torch.equal(states[1], arguments[4][1].expand_as(states[1]))


@NEEDS_GPU
def test_the_relay_kernel_passes_nan_on_and_does_not_hang() -> None:
    arguments = to_device(make_scan_inputs(batch=3, width=256))
    from mnemic.kernels.gru_relay import NOT_STORED

    with torch.no_grad():
        arguments[1] = (arguments[1] > 0.3).float()
        arguments[4].view(torch.int32)[0] = NOT_STORED
        states, _ = relay_gru(*arguments)
    assert states[0].isnan().all()
    assert states[1:].isfinite().all()


@NEEDS_GPU
@pytest.mark.parametrize("width", [132, 256, 512])
def test_the_largest_batch_of_the_relay_kernel_runs_at_once(width: int) -> None:
    """Also on several streams, and captured as a CUDA graph."""
    with torch.no_grad():
        rows = max(batch for batch in range(1, 99) if can_relay(torch.empty(batch, 1, width, device="cuda")))
        arguments = to_device(make_scan_inputs(batch=rows, steps=50, width=width))
        arguments[1] = torch.ones_like(arguments[1])
        exact = scan_stepwise(*(argument.double() for argument in arguments))[0].float()
        streams = [torch.cuda.Stream() for _ in range(8)]
        torch.cuda.synchronize()
        outputs = []
        for stream in streams:
            with torch.cuda.stream(stream):
                outputs += [relay_gru(*arguments)[0] for _ in range(5)]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            recorded, _ = relay_gru(*arguments)
        graph.replay()
        graph.replay()
        torch.cuda.synchronize()
    for states in (*outputs, recorded):
        assert_all_close((states,), (exact,))


@NEEDS_GPU
def test_a_gru_gives_the_same_whether_rows_are_few_or_many() -> None:
    network = GRU(256, directions="sum").cuda()
    x, mask = torch.randn(40, 9, 256).cuda(), (torch.rand(40, 9) < 0.7).cuda()
    with torch.no_grad():
        assert can_relay(x[:2])
        assert not can_relay(x)
        many_rows, few_rows = network(x, mask), network(x[:2], mask[:2])
    assert not can_relay(x[:2])  # not while gradients are enabled
    torch.testing.assert_close(few_rows.states, many_rows.states[:2], atol=2e-3, rtol=2e-3)  # TF32 there
    torch.testing.assert_close(few_rows.last, many_rows.last[:2], atol=2e-3, rtol=2e-3)


@torch.no_grad()
def test_the_relay_kernel_is_not_used_on_a_cpu() -> None:
    assert not can_relay(torch.randn(1, 9, 256))
