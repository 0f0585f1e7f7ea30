"""What every test can rely on: one thread, the same dice whatever ran before, and a server."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import torch
from learn_runs import finish, small
from long_runs import MEMORIES, run_of, write_texts
from postgres_server import server

os.environ.pop("COLUMNS", None)  # tables are as wide as in a pipe, wherever tests run


@pytest.fixture(autouse=True)
def steady() -> Iterator[None]:
    """Small tensors on one thread; the global dice start at 0 and are put back."""
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed; do not change it."""
    torch.set_num_threads(1)
    return finish(small(), tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture(scope="session", params=list(MEMORIES))
def carrying(request: pytest.FixtureRequest) -> Path:
    """A run of each memory that is carried through a text; do not change it."""
    return run_of(request.param)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two texts and two that are none."""
    monkeypatch.chdir(tmp_path)
    return write_texts(tmp_path)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server, started when a test first asks for it; the address of its database."""
    with server() as address:
        yield address


@pytest.fixture(scope="session")
def new_address(postgres: str) -> Callable[[], str]:
    """Gives an address of a memory that is not there yet."""
    numbers = count()
    return lambda: f"{postgres}#memory{next(numbers)}"
