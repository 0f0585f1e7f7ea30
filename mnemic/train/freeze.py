"""Freeze parts of a network, such as an encoder that other networks share."""

from collections.abc import Sequence

from torch import nn

from mnemic.models.contract import unwrap_network
from mnemic.recipe import ConfigError, join_words


def freeze(network: nn.Module, names: Sequence[str]) -> None:
    """Freeze the modules and weights of these names, before an optimizer or wrapper is made."""
    for module_or_weight in find_parts(network, names):
        module_or_weight.requires_grad_(False)


def find_parts(network: nn.Module, names: Sequence[str]) -> list[nn.Module | nn.Parameter]:
    """Find the modules and weights of these names: ``encode``, ``encode.embeddings.tokens``.

    Other modules may share their weights.
    """
    unwrapped = unwrap_network(network)
    if names and unwrapped.num_runs is not None:
        raise ConfigError("train.frozen is for one run at a time: leave it out of a table")
    parts = dict(unwrapped.named_modules()) | dict(unwrapped.named_parameters())
    if unknown := [name for name in names if not name or name not in parts]:
        top_level = join_words(name for name, _ in unwrapped.named_children())
        raise ConfigError(f"train.frozen names parts of {top_level}, or of these, not {join_words(unknown)}")
    return [parts[name] for name in names]
