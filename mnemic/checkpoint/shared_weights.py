"""Weights that a network has in common with a shipped one are stored once.

A BERT that carries a memory may begin with the shipped reader's encoder and leave it as it is
(``train.fixed``). Of such a network only the rest is stored, with the name of the other one and
the SHA-256 of its weights: with other weights it would be another network.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mnemic.checkpoint import shipped
from mnemic.checkpoint.atomic_files import CheckpointError, digest
from mnemic.recipe import ConfigError, listed


def place_of(name: str, file: str) -> Path:
    """The file of a shipped network's weights."""
    if name not in shipped.names():
        raise ConfigError(f"no network {name!r} came with mnemic: {listed(shipped.names())}")
    return shipped.WEIGHTS / name / file


def described(path: Path) -> dict[str, str]:
    """What a checkpoint says of the network that it shares weights with."""
    return {"network": path.parent.name, "weights": digest(path)}


def own_weights(weights: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those that are not, bit for bit, the other network's of the same name."""
    own = {
        name: weight
        for name, weight in weights.items()
        if name not in theirs or not same(weight, theirs[name])
    }
    if len(own) == len(weights):
        raise ConfigError(
            "no weight is the other network's: train with --start and train.fixed to share them"
        )
    return own


def same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other.to(one.dtype))


def check(told: Any, path: Path, file: str) -> Path:
    """Where the weights are that a checkpoint at ``path`` shares, if they are still those."""
    if not isinstance(told, dict) or told.keys() != {"network", "weights"}:
        raise CheckpointError(f"{path} says of shared weights {told!r}: not of this version")
    name = told["network"]
    if name not in shipped.names():
        raise CheckpointError(f"{path} needs the network {name!r}, which did not come with mnemic")
    place = shipped.WEIGHTS / name / file
    if digest(place) != told["weights"]:
        raise CheckpointError(
            f"{path} was trained beside other weights of {name!r} than those that are here: "
            "install the mnemic it came with, or train it again"
        )
    return place
