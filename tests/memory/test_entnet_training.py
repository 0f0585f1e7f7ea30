"""EntNet in training: kernels and many runs at once give the same numbers, and it learns.

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

# Fast and slow ---------------------------------------------------------------------------------


def rewriting(*lead: int) -> EntNetWrite:
    """Three sentences in five are real."""
    b, n, s, d = 2, 5, 9, 20
    dice = torch.Generator().manual_seed(0)

    def noise(*shape: int, size: float = 1.0) -> Tensor:
        return (torch.randn(*lead, *shape, generator=dice) * size).requires_grad_()

    seen = torch.rand(*lead, b, n, generator=dice) < 0.6
    slope = torch.rand(*lead, d, generator=dice).requires_grad_()
    matrix, drive = noise(d, d, size=0.3), noise(b, n, d)
    return EntNetWrite(
        noise(b, s, d), noise(b, n, d, size=0.5), drive, noise(b, n, s), seen, noise(s, d),
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

    def fused(*given: Tensor) -> tuple[Tensor, Tensor]:
        slots, gates, *_ = EntNetWriteFunction.apply(True, *(part.unsqueeze(0) for part in given))
        return slots.squeeze(0), gates.squeeze(0)

    given = EntNetWrite(*(part.detach().to(device) for part in rewriting(3)))
    leaves = [part.requires_grad_() for part in given if part.is_floating_point()]
    found = []
    for function in (lambda *parts: rewrite_slots_eager(EntNetWrite(*parts)), fused):
        slots, gates = vmap(function)(*given)
        turned = given.slots.detach().mT.contiguous()  # whose gradient is not contiguous
        loss = (slots.mT * turned).sum() + gates.square().sum()
        found.append((slots, gates, *torch.autograd.grad(loss, leaves)))
    for plain, fast in zip(*found):
        torch.testing.assert_close(fast, plain, atol=2e-5, rtol=2e-4)
    whole = EntNetWriteFunction.apply(False, *given)
    torch.testing.assert_close(whole[0], found[0][0], atol=2e-5, rtol=2e-4)


def test_many_runs_write_as_each_alone() -> None:
    given = rewriting(3)
    slots, gates = vmap(lambda *parts: rewrite_slots_eager(EntNetWrite(*parts)))(*given)
    for run in range(3):
        alone = rewrite_slots_eager(EntNetWrite(*(part[run] for part in given)))
        torch.testing.assert_close(slots[run], alone[0])
        torch.testing.assert_close(gates[run], alone[1])


# Learning --------------------------------------------------------------------------------------


def test_a_tiny_entnet_learns_one_supporting_fact() -> None:
    """The first of up to three restarts that fits its training set answers 90 % of unseen ones."""
    made = 'data={kind="generated", tasks=[1], count=1000}'
    tiny = ["model.width=32", "model.memory.slots=8", "train.epochs=16", "train.schedule.every=8"]
    recipe = load_recipe("entnet", [made, *tiny])
    data = load_data(recipe)
    pools, cpu = [torch.arange(len(data.train))], torch.device("cpu")
    for seed in (2, 0, 1):  # the one that fits here is tried first
        networks = create_networks(recipe, data, [seed])
        for _ in train_ensemble(recipe, data, networks, seeds=[seed], rows_per_run=pools, device=cpu):
            pass
        if compute_task_errors(networks[0], data.train)[1] < 5:
            break
    assert compute_task_errors(networks[0], data.test)[1] < 10


def test_many_entnets_train_as_each_would_alone() -> None:
    made = 'data={kind="generated", tasks=[1], count=80}'
    recipe = load_recipe("entnet", [made, "model.width=8", "model.memory.slots=3", "train.steps=4"])
    data, cpu = load_data(recipe), torch.device("cpu")
    pool = torch.arange(len(data.train))
    together = create_networks(recipe, data, [0, 1])
    for _ in train_ensemble(recipe, data, together, seeds=[0, 1], rows_per_run=[pool] * 2, device=cpu):
        pass
    for seed, network in enumerate(together):
        alone = create_networks(recipe, data, [seed])
        for _ in train_ensemble(recipe, data, alone, seeds=[seed], rows_per_run=[pool], device=cpu):
            pass
        for ours, theirs in zip(network.parameters(), alone[0].parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=2e-3)
