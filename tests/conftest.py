"""What every test can rely on: one thread, and the same dice whatever ran before."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def steady() -> Iterator[None]:
    """Small tensors on one thread; the global dice start at 0 and are put back."""
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
