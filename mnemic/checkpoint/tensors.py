"""Read and write named tensors as safetensors files, which run no code when read."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.quantize import dequantize_weights
from mnemic.files import open_for_writing


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a safetensors file with the folder's usual permissions.

    ``safetensors.save_file`` would make a file that only its owner can read.
    """
    content = pack_tensors(tensors)  # before the file changes, from which they may be mapped
    with open_for_writing(path) as file:
        file.write(content)


def pack_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the content of a safetensors file with these tensors."""
    return save({name: tensor.contiguous() for name, tensor in tensors.items()})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors from a file and dequantize them; a missing file gives an empty dict."""
    if not path.is_file():
        return {}
    try:
        return dequantize_weights(load_file(path))
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} is no valid safetensors file: {error}") from None


def select_tensors(tensors: Mapping[str, Tensor], prefix: str, device: torch.device) -> dict[str, Tensor]:
    """Select the tensors whose names start with ``prefix``, without the prefix."""
    matches = {name: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): tensor.to(device) for name, tensor in matches.items()}
