"""Load a trained network for a command."""

from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.cli.options import resolve_device

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


def load_network(model: Path, device: str = "cpu") -> tuple["Checkpoint", list[str]]:
    """Load a network onto a device, with a note if its training is not finished."""
    from mnemic.checkpoint.folder import load_checkpoint

    checkpoint = load_checkpoint(model)
    checkpoint.network.to(resolve_device(device))
    return checkpoint, [] if checkpoint.progress.done else ["this network is not trained to the end"]
