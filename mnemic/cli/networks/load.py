"""Load a trained network for a command."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.options import resolve_device

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.encode import TransformerEncoder


def load_network(
    model: Path, device: str = "cpu", overrides: Mapping[str, Any] | None = None
) -> tuple["Checkpoint", list[str]]:
    """Load a network onto a device, with a note if its training is not finished.

    ``overrides`` change its recipe.
    """
    from mnemic.checkpoint.folder import load_checkpoint

    checkpoint = load_checkpoint(model, overrides=overrides or {})
    checkpoint.network.to(resolve_device(device))
    return checkpoint, [] if checkpoint.progress.done else ["this network is not trained to the end"]


def choose_task(checkpoint: "Checkpoint", name: str | None) -> "Checkpoint":
    """Return the task that ``--task`` names; without it the network as it is."""
    from mnemic.predict.methods import methods_of
    from mnemic.predict.tasks import select_task

    if name is None:
        return checkpoint
    if "select_task" not in methods_of(checkpoint):
        raise ValueError("this network learned one task: leave out --task")
    return select_task(checkpoint, name)


def find_encoder(checkpoint: "Checkpoint", path: Path) -> "TransformerEncoder":
    """Find the only Transformer encoder of a checkpoint; raise if there is not one.

    That of a generator, which only helps in training, does not count.
    """
    from mnemic.encode import TransformerEncoder
    from mnemic.models import ReplacedTokenModel

    network = checkpoint.network
    modules = network.encode.modules() if isinstance(network, ReplacedTokenModel) else network.modules()
    encoders = [module for module in modules if isinstance(module, TransformerEncoder)]
    if len(encoders) != 1:
        raise ValueError(
            f"{path} has {len(encoders)} Transformer encoders; expected one: `mnemic inspect {path}` shows its parts"
        )
    return encoders[0]
