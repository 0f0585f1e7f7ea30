"""What every test can rely on: one thread, and the same dice whatever ran before."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from learn_runs import finish, small


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
