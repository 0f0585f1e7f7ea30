"""Fixtures of the tests of assistants: they are asynchronous."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
