"""Folders that are made once for all tests, also for those of other worker processes."""

import atexit
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import torch

VARIABLE = "MNEMIC_TEST_FOLDERS"  # set by the first process; its workers inherit it
COPIES: dict[str, Path] = {}  # of this process


def make_temporary_folder() -> Path:
    """Make a folder that is removed when this process ends."""
    folder = Path(mkdtemp(prefix="mnemic-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def share_folders() -> None:
    """Make the root of the shared folders, unless a parent process has made it."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(make_temporary_folder())


def copy_shared(name: str, make: Callable[[Path], object]) -> Path:
    """Return this process's copy of a folder that the first process to ask for it fills.

    The others wait meanwhile. The global generator starts from 0 for ``make``, and is restored.
    """
    if name in COPIES:
        return COPIES[name]
    share_folders()
    folder = Path(os.environ[VARIABLE]) / name
    is_made = folder.with_name(f"{name}.made")
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that failed
            folder.mkdir()
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                make(folder)
            is_made.touch()
    COPIES[name] = Path(shutil.copytree(folder, make_temporary_folder() / name))
    return COPIES[name]
