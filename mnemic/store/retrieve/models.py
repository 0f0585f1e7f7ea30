"""Load the checkpoint of an embedder or a reader, once if both use the same."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from mnemic.checkpoint import shipped
from mnemic.files import read_json
from mnemic.store.contract import StoreError

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint

WAIT_POLICY = "OMP_WAIT_POLICY"
LOADING = Lock()


def find_shipped_folder(name: str) -> Path:
    """Return the folder of a checkpoint that ships with the package."""
    folder = shipped.WEIGHTS / name
    if not folder.is_dir():
        raise StoreError(
            f"the weights of the {name} are not in this installation ({folder}); install "
            "mnemic again, or choose another embedder and the reader none"
        )
    return folder


@cache
def import_torch() -> bool:
    """Import torch with threads that sleep while they wait; return whether they spin instead.

    By default its threads spin, and on a busy machine they take more time from each other than a
    whole answer needs: texts are short. OpenMP reads the policy when torch is loaded; the
    environment is left as it was. If it has a policy, that one holds. If torch is loaded already,
    they spin.
    """
    if WAIT_POLICY in os.environ:
        return False
    if "torch" in sys.modules:
        return True
    os.environ[WAIT_POLICY] = "passive"
    try:
        import torch  # noqa: F401
    finally:
        os.environ.pop(WAIT_POLICY, None)
    return False


class ThreadLimit:
    """Lets torch compute with one thread, if its threads would spin.

    The number of threads belongs to the thread that sets it, so that others compute as before. But
    it is also that of new threads: whoever leaves restores what the first one found.
    """

    def __init__(self) -> None:
        self.lock, self.num_users, self.num_threads = Lock(), 0, 1

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Compute with one thread inside a ``with`` block."""
        if "torch" not in sys.modules or not import_torch():
            yield
            return
        import torch

        with self.lock:
            if not self.num_users:
                self.num_threads = torch.get_num_threads()
            self.num_users += 1
            torch.set_num_threads(1)
        try:
            yield
        finally:
            with self.lock:
                self.num_users -= 1
                torch.set_num_threads(self.num_threads)


THREAD_LIMIT = ThreadLimit()


def load_with_digest(folder: Path) -> tuple["Checkpoint", str]:
    """Load a checkpoint for inference; return it with the digest of its weights.

    Weights that it shares with a shipped network count as its own.
    """
    import_torch()
    from mnemic.checkpoint.folder import RECIPE, WEIGHTS, find_checkpoint, hash_file

    checkpoint_folder = find_checkpoint(folder)
    weights_digest = hash_file(checkpoint_folder / WEIGHTS)
    if shared := read_json(checkpoint_folder / RECIPE).get("shared"):
        weights_digest = sha256(f"{weights_digest} {shared.get('tensors', shared)}".encode()).hexdigest()
    with LOADING:  # by one thread, while others wait
        return load_once(checkpoint_folder, weights_digest), weights_digest


@cache
def load_once(folder: Path, weights_digest: str) -> "Checkpoint":
    """Load a checkpoint, cached by its digest.

    Matrix products are in bfloat16 where the processor supports it.
    """
    from mnemic.checkpoint.folder import load_checkpoint

    return load_checkpoint(folder, precision="auto")
