"""Fixtures of all tests: one thread, a fixed seed, trained runs, and a server."""

import gc
import os
from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
import torch
from learn_runs import finish, small
from long_runs import MEMORIES, run_of, write_texts
from postgres_server import server
from shared_folders import copy_shared, share_folders

os.environ["XDG_CONFIG_HOME"] = os.path.join(os.sep, "nowhere")  # no settings of the user who runs the tests
share_folders()  # before the workers start
os.environ.pop("COLUMNS", None)  # tables are as wide as in a pipe, in every terminal


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what lasts: walking all modules and tests takes a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def steady() -> Iterator[None]:
    """Use one thread, seed the global generator with 0, and restore it."""
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # torch.manual_seed keeps a stack trace for each GPU to come
        yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def finished() -> Path:
    """Train an uninterrupted run; do not change it."""
    torch.set_num_threads(1)
    return copy_shared("finished", lambda folder: finish(small(), folder / "run")) / "run"


@pytest.fixture(scope="session", params=list(MEMORIES))
def carrying(request: pytest.FixtureRequest) -> Path:
    """Train a run of each memory of long texts; do not change it."""
    return run_of(request.param)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working folder with two texts, and two files that are not texts."""
    monkeypatch.chdir(tmp_path)
    return write_texts(tmp_path)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a PostgreSQL server when a test first needs it; yield its database's address."""
    with server() as address:
        yield address


@pytest.fixture(scope="session")
def new_address(postgres: str) -> Callable[[], str]:
    """Return a function that makes addresses of new memories."""
    numbers = count()
    return lambda: f"{postgres}#memory{next(numbers)}"
