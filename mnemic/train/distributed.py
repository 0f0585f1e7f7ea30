"""Many processes, started by torchrun, as one training; and few threads for what is small."""

import os

import torch
import torch.distributed as dist
from torch import nn

from mnemic.recipe import ConfigError

SMALL = 2_000_000  # weights; below that, threads wait for each other longer than they work


def start_processes(device: str) -> torch.device:
    """Join the other processes if torchrun started this one; the device this one uses."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"there is no GPU for device {device!r}; use cpu")
    if "LOCAL_RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if device == "cuda":
            device = f"cuda:{os.environ['LOCAL_RANK']}"
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        return torch.device(device)
    except RuntimeError:
        raise ConfigError(f"no device {device!r}; give cpu, cuda or auto") from None


def spare_threads(network: nn.Module) -> None:
    """One thread for a small network on a CPU: beside other work more of them only wait."""
    weights = list(network.parameters())
    if weights[0].device.type == "cpu" and sum(p.numel() for p in weights) < SMALL:
        torch.set_num_threads(1)
