"""Contrastive losses of two processes that train together equal those of one."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mnemic.data.views.batches import ViewBatch
from mnemic.models import TextOutput, WindowBatch
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import build
from mnemic.train.loop import OptimizerStep, TrainSettings, build_optimizer

SPECS: tuple[dict[str, Any], ...] = ({"kind": "contrast"}, {"kind": "moco", "queue": 16, "momentum": 0.5})


class MeanVectors(nn.Module):
    """Average word vectors: a network without dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 6)

    def forward(self, inputs: WindowBatch) -> TextOutput:
        """Return vectors as logits."""
        states = self.words(inputs.tokens)
        return TextOutput(states.mean(1), states)


def make_batch(seed: int, rows: slice) -> ViewBatch:
    tokens = torch.randint(30, (2, 8, 5), generator=torch.Generator().manual_seed(seed))[:, rows].flatten(0, 1)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    inputs = WindowBatch(tokens, mask, torch.zeros_like(tokens), mask)
    return ViewBatch(inputs, torch.arange(8)[rows] + 8 * seed, torch.zeros(0, dtype=torch.long))


def train_three_steps(spec: dict[str, Any], rows: slice, shards: int = 1) -> tuple[Tensor, Tensor]:
    """Take three steps on this process's rows; return weights with losses, and the queue."""
    torch.manual_seed(0)
    network: nn.Module = MeanVectors()
    wrapped = DistributedDataParallel(network) if dist.is_initialized() else network
    settings = TrainSettings(optimizer={"kind": "sgd"}, rate=0.1, clip={"kind": "norm", "limit": 1e9})
    objective = build(OBJECTIVES, spec, shards=shards)
    step, carried, losses = OptimizerStep(wrapped, objective, build_optimizer(wrapped, settings), settings), None, []
    for seed in range(3):
        result = step(make_batch(seed, rows), carried)
        carried, losses = result.carried, [*losses, result.loss.detach()]
    queue = torch.zeros(0) if carried is None else carried["queue"].flatten()
    weights = next(network.parameters()).detach()
    return torch.cat([weights.flatten(), torch.stack(losses).float().flatten()]), queue


def run_process(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    for number, spec in enumerate(SPECS):
        for shards in (1, 2):
            results = train_three_steps(spec, slice(rank, None, 2), shards)
            torch.save(results, f"{folder}/{number}-{shards}-{rank}")
    dist.destroy_process_group()


def sort_keys(queue: Tensor) -> Tensor:
    """Sort the keys of a queue, whose order depends on how rows are divided."""
    return torch.tensor(sorted(queue.view(-1, 6).tolist()))


@pytest.mark.slow
def test_two_processes_learn_what_one_does(tmp_path: Path) -> None:
    """Weights and losses agree, also in shards; both processes have the same queue."""
    mp.spawn(run_process, (str(tmp_path),), nprocs=2)
    for number, spec in enumerate(SPECS):
        expected, expected_queue = train_three_steps(spec, slice(None))
        for shards in (1, 2):
            results = [torch.load(tmp_path / f"{number}-{shards}-{rank}") for rank in (0, 1)]
            (weights, queue), (other_weights, other_queue) = results
            assert torch.equal(weights, other_weights)
            assert torch.equal(queue, other_queue)
            torch.testing.assert_close(weights, expected)
            torch.testing.assert_close(sort_keys(queue), sort_keys(expected_queue))
