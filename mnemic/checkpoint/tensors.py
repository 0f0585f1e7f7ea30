"""Tensors in a file, by name: safetensors, which run no code when they are read."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.quantize import restored


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Who may read other files here may read this one; by safetensors itself only its owner may."""
    path.write_bytes(save({name: part.contiguous() for name, part in tensors.items()}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Of a file that is not there, none; what was stored in 8 bits comes as it was before."""
    if not path.is_file():
        return {}
    try:
        return restored(load_file(path))
    except SafetensorError as error:
        raise CheckpointError(f"{path} is no valid safetensors file: {error}") from None
