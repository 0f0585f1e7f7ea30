"""Choose the device, join torchrun's process group, and limit CPU threads."""

import os

import torch
import torch.distributed as dist
from torch import nn

from mnemic.recipe import ConfigError

MAX_SINGLE_THREAD_WEIGHTS = 2_000_000  # below that, threads wait longer than they work


def init_distributed(device: str) -> torch.device:
    """Join torchrun's process group, if there is one; return this process's device."""
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


def limit_threads(network: nn.Module) -> None:
    """Use one CPU thread for a small network; more threads would only wait."""
    parameters = list(network.parameters())
    if parameters[0].device.type == "cpu" and sum(p.numel() for p in parameters) < MAX_SINGLE_THREAD_WEIGHTS:
        torch.set_num_threads(1)
