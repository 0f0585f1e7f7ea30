"""A server for the tests of one file."""

from collections.abc import Iterator

import pytest
from web_service import Api, open_api


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with open_api(tmp_path_factory.mktemp("web")) as opened:
        yield opened
