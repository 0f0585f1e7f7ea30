"""Freeze parts of a network, such as an encoder that other networks share."""

from collections.abc import Sequence

from torch import nn

from mnemic.models.contract import unwrap_network
from mnemic.recipe import ConfigError, join_words


def freeze(network: nn.Module, names: Sequence[str]) -> None:
    """Freeze the modules of these names, before an optimizer or wrapper is made."""
    for module in find_modules(network, names):
        module.requires_grad_(False)


def find_modules(network: nn.Module, names: Sequence[str]) -> list[nn.Module]:
    """Find the modules of these names, such as ``encode`` or ``encode.embeddings``.

    Other modules may share their weights.
    """
    unwrapped = unwrap_network(network)
    if names and unwrapped.num_runs is not None:
        raise ConfigError("train.frozen is for one run at a time: leave it out of a table")
    modules = dict(unwrapped.named_modules())
    if unknown := [name for name in names if not name or name not in modules]:
        top_level = join_words(name for name, _ in unwrapped.named_children())
        raise ConfigError(f"train.frozen names parts of {top_level}, or of these, not {join_words(unknown)}")
    return [modules[name] for name in names]
