"""Leave weights out of a checkpoint that are equal to those of a shipped network.

A BERT with a memory may start from the shipped reader's encoder and freeze it (``train.frozen``).
Of such a network only the other weights are stored, with the name of the shipped network and the
SHA-256 of its weights file: with other weights it would be another network. The SHA-256 of the
tensors that are shared tells whether it still is the same one after the shipped network changed.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint import shipped
from mnemic.checkpoint.atomic_files import CheckpointError, hash_file
from mnemic.recipe import ConfigError, join_words


def find_shipped_file(name: str, filename: str) -> Path:
    """Find a file of a shipped network; an unknown name is an error."""
    if name not in shipped.list_networks():
        raise ConfigError(f"no network {name!r} came with mnemic; there are {join_words(shipped.list_networks())}")
    return shipped.WEIGHTS / name / filename


def drop_shared_weights(weights: Mapping[str, Tensor], shared: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Drop the weights that equal the ``shared`` weight of the same name bit for bit."""
    unshared = {
        name: weight
        for name, weight in weights.items()
        if name not in shared or not torch.equal(weight, shared[name].to(weight.dtype))
    }
    if len(unshared) == len(weights):
        raise ConfigError("no weight equals the shipped network's: train with --start and train.frozen to share")
    return unshared


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of named tensors: their names, types, shapes and values."""
    digest = sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)} ".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def find_shared_weights(reference: Any, path: Path, filename: str) -> Path:
    """Find the shipped weights that a checkpoint at ``path`` refers to, and verify them."""
    if not isinstance(reference, dict) or reference.keys() - {"tensors"} != {"network", "weights"}:
        raise CheckpointError(
            f"{path} refers to shared weights by {reference!r}, not by a network and its SHA-256: "
            "use the mnemic that wrote it"
        )
    name = reference["network"]
    if name not in shipped.list_networks():
        raise CheckpointError(f"{path} needs the network {name!r}, which did not come with mnemic")
    weights_path = shipped.WEIGHTS / name / filename
    if hash_file(weights_path) != reference["weights"]:
        raise CheckpointError(
            f"{path} was trained with other weights of {name!r} than those installed here: "
            "install the mnemic it came with, or train it again"
        )
    return weights_path
