"""EntNet in training: kernels and stacked runs give equal numbers, and it learns.

Shapes: r runs, b batch, n sentences, s slots, d width.
"""

import os

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.memory.parts.entnet_write import EntNetWrite, has_triton, rewrite_slots_eager
from mnemic.recipe import load_recipe
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble
from mnemic.train.run import load_data

# Kernels and stacked runs ----------------------------------------------------------------------


def make_write_inputs(*leading: int) -> EntNetWrite:
    """Random inputs of a write in which about three of five sentences are real."""
    b, n, s, d = 2, 5, 9, 20
    generator = torch.Generator().manual_seed(0)

    def noise(*shape: int, size: float = 1.0) -> Tensor:
        return (torch.randn(*leading, *shape, generator=generator) * size).requires_grad_()

    mask = torch.rand(*leading, b, n, generator=generator) < 0.6
    slope = torch.rand(*leading, d, generator=generator).requires_grad_()
    matrix, drive = noise(d, d, size=0.3), noise(b, n, d)
    return EntNetWrite(
        noise(b, s, d), noise(b, n, d, size=0.5), drive, noise(b, n, s), mask, noise(s, d),
        matrix, slope,
    )  # fmt: skip


@pytest.mark.skipif(
    not has_triton() or not (torch.cuda.is_available() or "TRITON_INTERPRET" in os.environ),
    reason="needs triton, and a GPU or TRITON_INTERPRET=1",
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the interpreter
def test_the_kernels_give_the_same_numbers_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    from mnemic.kernels import entnet_write as rewrite_kernel
    from mnemic.kernels.entnet_write import EntNetWriteFunction

    monkeypatch.setattr(rewrite_kernel, "PRECISION", "tf32x3")  # the interpreter knows no bf16x3
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def fused(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        slots, gates, *_ = EntNetWriteFunction.apply(True, *(tensor.unsqueeze(0) for tensor in inputs))
        return slots.squeeze(0), gates.squeeze(0)

    inputs = EntNetWrite(*(tensor.detach().to(device) for tensor in make_write_inputs(3)))
    leaves = [tensor.requires_grad_() for tensor in inputs if tensor.is_floating_point()]
    results = []
    for function in (lambda *tensors: rewrite_slots_eager(EntNetWrite(*tensors)), fused):
        slots, gates = vmap(function)(*inputs)
        transposed = inputs.slots.detach().mT.contiguous()  # whose gradient is not contiguous
        loss = (slots.mT * transposed).sum() + gates.square().sum()
        results.append((slots, gates, *torch.autograd.grad(loss, leaves)))
    for eager, kernel in zip(*results):
        torch.testing.assert_close(kernel, eager, atol=2e-5, rtol=2e-4)
    unbatched = EntNetWriteFunction.apply(False, *inputs)
    torch.testing.assert_close(unbatched[0], results[0][0], atol=2e-5, rtol=2e-4)


def test_stacked_writes_equal_single_writes() -> None:
    inputs = make_write_inputs(3)
    slots, gates = vmap(lambda *tensors: rewrite_slots_eager(EntNetWrite(*tensors)))(*inputs)
    for run in range(3):
        alone = rewrite_slots_eager(EntNetWrite(*(tensor[run] for tensor in inputs)))
        torch.testing.assert_close(slots[run], alone[0])
        torch.testing.assert_close(gates[run], alone[1])


# Learning --------------------------------------------------------------------------------------


def test_a_tiny_entnet_learns_one_supporting_fact() -> None:
    """One of up to three seeds fits the training set; its test error is low."""
    data_override = 'data={kind="generated", tasks=[1], count=1000}'
    overrides = ["model.width=32", "model.memory.slots=8", "train.epochs=16", "train.schedule.every=8"]
    recipe = load_recipe("entnet", [data_override, *overrides])
    data = load_data(recipe)
    rows, cpu = [torch.arange(len(data.train))], torch.device("cpu")
    for seed in (2, 0, 1):  # seed 2 fits here, so it is tried first
        networks = create_networks(recipe, data, [seed])
        for _ in train_ensemble(recipe, data, networks, seeds=[seed], rows_per_run=rows, device=cpu):
            pass
        if compute_task_errors(networks[0], data.train)[1] < 5:
            break
    assert compute_task_errors(networks[0], data.test)[1] < 10


def test_stacked_entnets_train_like_single_ones() -> None:
    data_override = 'data={kind="generated", tasks=[1], count=80}'
    recipe = load_recipe("entnet", [data_override, "model.width=8", "model.memory.slots=3", "train.steps=4"])
    data, cpu = load_data(recipe), torch.device("cpu")
    rows = torch.arange(len(data.train))
    together = create_networks(recipe, data, [0, 1])
    for _ in train_ensemble(recipe, data, together, seeds=[0, 1], rows_per_run=[rows] * 2, device=cpu):
        pass
    for seed, network in enumerate(together):
        alone = create_networks(recipe, data, [seed])
        for _ in train_ensemble(recipe, data, alone, seeds=[seed], rows_per_run=[rows], device=cpu):
            pass
        for stacked_weight, single_weight in zip(network.parameters(), alone[0].parameters(), strict=True):
            torch.testing.assert_close(stacked_weight, single_weight, atol=2e-4, rtol=2e-3)
