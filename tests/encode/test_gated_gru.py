"""The scan of a gated GRU: equal to torch's GRU and to loops by hand, and its kernels to the scan.

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
BOTH_WAYS = pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
PARTS = pytest.mark.parametrize("parts", [2, 3], ids=["attention", "gru"])


def scanned(*lead: int, parts: int = 3, batch: int = 3, steps: int = 4, width: int = D) -> Any:
    """Noise; gates of 0 and 1 among the others, and a row whose gates are all shut."""
    dice = torch.Generator().manual_seed(0)

    def noise(*shape: int, size: float = 1.0) -> Tensor:
        return (torch.randn(*lead, *shape, generator=dice) * size).requires_grad_()

    gate = (torch.rand(*lead, batch, steps, generator=dice) * 2 - 0.5).clamp(0, 1)
    gate[..., 1, :] = 0
    weight, bias = noise(parts * width, width, size=width**-0.5), noise(parts * width)
    given, start = noise(batch, steps, parts, width), noise(batch, width)
    return given, gate.requires_grad_(), weight, bias, start


def test_an_open_gate_is_torchs_gru() -> None:
    given, _, weight, bias, start = scanned()
    theirs = nn.GRU(3 * D, D, batch_first=True)
    theirs.load_state_dict(
        {
            "weight_ih_l0": torch.eye(3 * D),
            "bias_ih_l0": torch.zeros(3 * D),
            "weight_hh_l0": weight.detach(),
            "bias_hh_l0": bias.detach(),
        }
    )
    states, end = theirs(given.flatten(2), start.unsqueeze(0))
    found, last = scan_gru(given, torch.ones(3, 4), weight, bias, start)
    torch.testing.assert_close(found, states)
    torch.testing.assert_close(last, end[0])


@BOTH_WAYS
@PARTS
def test_equals_the_equations(parts: int, backward: bool) -> None:
    """Row by row and gate by gate."""
    given, gate, weight, bias, start = scanned(parts=parts)
    states, last = scan_gru(given, gate, weight, bias, start, backward=backward)
    for row in range(3):
        h = start[row]
        for n in reversed(range(4)) if backward else range(4):
            back = (weight @ h + bias).split(D)
            reset = torch.sigmoid(given[row, n, 0] + back[0])
            new = torch.tanh(given[row, n, -1] + reset * back[-1])
            if parts == 3:
                keep = torch.sigmoid(given[row, n, 1] + back[1])
                new = (1 - keep) * new + keep * h
            h = gate[row, n] * new + (1 - gate[row, n]) * h
            torch.testing.assert_close(states[row, n], h)
        torch.testing.assert_close(last[row], h)


@PARTS
def test_a_shut_gate_leaves_the_state_bit_for_bit(parts: int) -> None:
    given, gate, weight, bias, start = scanned(parts=parts)
    states, last = scan_gru(given * 100, gate, weight, bias, start)
    assert torch.equal(states[1], start[1].expand(4, D))
    assert torch.equal(last[1], start[1])


def test_no_steps_and_no_bias() -> None:
    given, gate, weight, bias, start = scanned()
    states, last = scan_gru(given[:, :0], gate[:, :0], weight, bias, start)
    assert states.shape == (3, 0, D)
    assert torch.equal(last, start)
    for found, wanted in zip(
        scan_gru(given, gate, weight, None, start), scan_gru(given, gate, weight, bias * 0, start)
    ):
        torch.testing.assert_close(found, wanted)


@PARTS
def test_many_runs_scan_as_each_alone(parts: int) -> None:
    taken = scanned(2, parts=parts)
    states, last = vmap(scan_gru)(*taken)
    for run in range(2):
        alone = scan_gru(*(part[run] for part in taken))
        torch.testing.assert_close(states[run], alone[0])
        torch.testing.assert_close(last[run], alone[1])


# Fast and slow ---------------------------------------------------------------------------------

KERNELS = pytest.mark.skipif(
    not has_triton() or not (torch.cuda.is_available() or "TRITON_INTERPRET" in os.environ),
    reason="needs triton, and a GPU or TRITON_INTERPRET=1",
)
ON_GPU = pytest.mark.skipif(
    not torch.cuda.is_available() or not has_triton(), reason="needs a GPU"
)  # programs that wait for each other
INTERPRETED = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def on_device(taken: Any) -> list[Tensor]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return [part.detach().to(device).requires_grad_() for part in taken]


def same(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> None:
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=2e-4)


@KERNELS
@INTERPRETED
@BOTH_WAYS
@PARTS
@pytest.mark.parametrize("width", [20, 70])
def test_the_kernels_give_the_same_numbers_and_gradients(width: int, parts: int, backward: bool) -> None:
    """More rows than a program takes, and more steps in all than one product's piece."""
    taken = on_device(scanned(2, parts=parts, batch=35, width=width))
    turned = torch.randn(2, 35, width, 4).to(taken[0])  # whose gradient is not contiguous
    found = []
    for function in (scan_stepwise, scan_with_kernel):
        states, last = vmap(lambda *own, run=function: run(*own, backward=backward))(*taken)
        loss = (states.mT * turned).sum() + last.square().sum()
        found.append((states, last, *torch.autograd.grad(loss, taken)))
    same(*reversed(found))
    shut = states[:, 1]  # r n d
    assert torch.equal(shut, taken[4][:, 1:2].expand_as(shut))


@KERNELS
@INTERPRETED
def test_the_kernels_take_what_runs_share_and_what_is_strided() -> None:
    """One text for all runs, a turned one, no bias, and no run at all."""
    given, gate, weight, _, start = on_device(scanned(2))
    given, start = given[0].mT.contiguous().mT, start[0]
    axes = (None, 0, 0, None)
    found = []
    for function in (scan_stepwise, scan_with_kernel):
        states, _ = vmap(lambda g, o, w, s, run=function: run(g, o, w, None, s), axes)(given, gate, weight, start)
        slopes = torch.autograd.grad(states.square().sum(), (given, gate, weight, start))
        alone = function(given, gate[0], weight[0], None, start)
        with torch.no_grad():
            unkept = function(given, gate[1], weight[1], None, start)
        found.append((states, *slopes, *alone, *unkept))
    same(*reversed(found))


@ON_GPU
@BOTH_WAYS
@pytest.mark.parametrize("width", [20, 256, 300, 512])
def test_few_rows_are_relayed_to_the_same_numbers(width: int, backward: bool) -> None:
    """Of a long text, behind gates of 0 and 1: as step by step, in twice the precision."""
    taken = on_device(scanned(batch=3, steps=700, width=width))
    taken[1] = (taken[1] > 0.3).float()
    with torch.no_grad():
        states, last = relay_gru(*taken, backward=backward)
        exact = scan_stepwise(*(part.double() for part in taken), backward=backward)
    same((states.double(), last.double()), exact)
    assert torch.equal(states[1], taken[4][1].expand_as(states[1]))


@ON_GPU
def test_a_state_that_is_no_number_is_told_on_and_nothing_waits_for_ever() -> None:
    taken = on_device(scanned(batch=3, width=256))
    from mnemic.kernels.gru_relay import NOT_STORED

    with torch.no_grad():
        taken[1] = (taken[1] > 0.3).float()
        taken[4].view(torch.int32)[0] = NOT_STORED
        states, _ = relay_gru(*taken)
    assert states[0].isnan().all()
    assert states[1:].isfinite().all()


@ON_GPU
@pytest.mark.parametrize("width", [132, 256, 512])
def test_the_most_rows_that_are_few_all_run_at_once(width: int) -> None:
    """On several streams, too, and recorded as a graph."""
    with torch.no_grad():
        rows = max(b for b in range(1, 99) if can_relay(torch.empty(b, 1, width, device="cuda")))
        taken = on_device(scanned(batch=rows, steps=50, width=width))
        taken[1] = torch.ones_like(taken[1])
        exact = scan_stepwise(*(part.double() for part in taken))[0].float()
        streams = [torch.cuda.Stream() for _ in range(8)]
        torch.cuda.synchronize()
        found = []
        for stream in streams:
            with torch.cuda.stream(stream):
                found += [relay_gru(*taken)[0] for _ in range(5)]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            recorded, _ = relay_gru(*taken)
        graph.replay()
        graph.replay()
        torch.cuda.synchronize()
    for states in (*found, recorded):
        same((states,), (exact,))


@ON_GPU
def test_a_gru_gives_the_same_whether_rows_are_few_or_many() -> None:
    network = GRU(256, directions="sum").cuda()
    x, mask = torch.randn(40, 9, 256).cuda(), (torch.rand(40, 9) < 0.7).cuda()
    with torch.no_grad():
        assert can_relay(x[:2])
        assert not can_relay(x)
        many, one = network(x, mask), network(x[:2], mask[:2])
    assert not can_relay(x[:2])  # where gradients may be asked for
    torch.testing.assert_close(one.states, many.states[:2], atol=2e-3, rtol=2e-3)  # TF32 there
    torch.testing.assert_close(one.last, many.last[:2], atol=2e-3, rtol=2e-3)


@torch.no_grad()
def test_on_a_cpu_no_rows_are_few() -> None:
    assert not can_relay(torch.randn(1, 9, 256))
