"""Load the checkpoint of an embedder or a reader, once if both use the same."""

from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.store.contract import StoreError

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

SHIPPED_MODEL = "reader"  # the shipped checkpoint, which both embeds and answers
LOADING = Lock()


def find_shipped_folder() -> Path:
    """Return the folder of the checkpoint that ships with the package."""
    folder = WEIGHTS / SHIPPED_MODEL
    if not folder.is_dir():
        raise StoreError(
            f"the weights of the {SHIPPED_MODEL} are not in this installation ({folder}); install "
            "mnemic again, or choose another embedder and the reader none"
        )
    return folder


def load_with_digest(folder: Path) -> tuple["Checkpoint", str]:
    """Load a checkpoint for inference; return it with the digest of its weights."""
    from mnemic.checkpoint.folder import WEIGHTS, find_checkpoint, hash_file

    checkpoint_folder = find_checkpoint(folder)
    weights_digest = hash_file(checkpoint_folder / WEIGHTS)
    with LOADING:  # by one thread, while others wait
        return load_once(checkpoint_folder, weights_digest), weights_digest


@cache
def load_once(folder: Path, weights_digest: str) -> "Checkpoint":
    """Load a checkpoint, cached by its digest.

    Matrix products are in bfloat16 where the processor supports it.
    """
    from mnemic.checkpoint.folder import load_checkpoint

    return load_checkpoint(folder, precision="auto")
