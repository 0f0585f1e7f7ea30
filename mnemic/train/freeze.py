"""Parts of a network that do not learn, such as an encoder whose weights others share."""

from collections.abc import Sequence

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mnemic.models.ensemble import Many
from mnemic.recipe import ConfigError, listed


def fix(network: nn.Module, names: Sequence[str]) -> None:
    """Let these parts learn no more; to be done before the network is wrapped or optimised."""
    for part in fixed_parts(network, names):
        part.requires_grad_(False)


def fixed_parts(network: nn.Module, names: Sequence[str]) -> list[nn.Module]:
    """The parts of these names, such as ``encode`` or ``encode.embeddings``.

    Their weights may be those of other parts, too.
    """
    if names and isinstance(network, Many):
        raise ConfigError("train.fixed is for one run at a time: leave it out of a table")
    whole = network.module if isinstance(network, DistributedDataParallel) else network
    known = dict(whole.named_modules())
    if unknown := [name for name in names if not name or name not in known]:
        first = listed(name for name, _ in whole.named_children())
        raise ConfigError(f"train.fixed names parts of {first}, or of these, not {listed(unknown)}")
    return [known[name] for name in names]
