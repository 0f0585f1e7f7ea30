"""Many processes, started by torchrun, as one training."""

import os

import torch
import torch.distributed as dist

from mnemic.recipe import ConfigError


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
