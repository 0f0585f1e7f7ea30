"""The network behind a memory's embedder and reader, loaded once where both are the same one."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.store.contract import StoreError

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint


SHIPPED = "reader"  # which both embeds and answers


def shipped() -> Path:
    """Where the weights are that come with the package."""
    folder = WEIGHTS / SHIPPED
    if not folder.is_dir():
        raise StoreError(
            f"the weights of the {SHIPPED} are not in this installation ({folder}); install mnemic "
            "again, or choose another embedder and the reader none"
        )
    return folder


def loaded(folder: Path) -> tuple["Checkpoint", str]:
    """A checkpoint of ours to read with, and the hash of its weights."""
    from mnemic.checkpoint.folder import WEIGHTS, digest, locate

    own = locate(folder)
    told = digest(own / WEIGHTS)
    return of_hash(own, told), told


@cache
def of_hash(folder: Path, told: str) -> "Checkpoint":
    """Products are in bfloat16 where the processor is built for them."""
    from mnemic.checkpoint.folder import load

    return load(folder, precision="auto")
