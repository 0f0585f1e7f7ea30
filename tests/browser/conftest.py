"""Fixtures of the browser tests: a server, Chromium, and a visitor of the page.

`make browser` runs them. Nothing is downloaded: the browser is the system's own chromium.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import ServedPage, serve_page
from visitor import Visitor, launch_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here: `make test` needs no browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def playwright() -> Iterator[object]:
    """Start the driver of browsers."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright: object) -> Iterator["Browser"]:
    """Launch one browser for all tests."""
    browser = launch_browser(playwright)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """Serve the page with a folder of the server; each test has a memory of its own."""
    folder = tmp_path_factory.mktemp("shelf")
    (folder / "garden.txt").write_text("The garden tools are in the green shed.\n", encoding="utf-8")
    with serve_page(tmp_path_factory.mktemp("home"), "--folder", str(folder)) as page:
        yield page


@pytest.fixture
def visitor(browser: "Browser", served: ServedPage, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """Open the page in a fresh profile; nothing may go elsewhere, and no script may fail."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:50]
    with Visitor(browser, served) as visitor:
        visitor.create_memory(name)
        yield visitor
        visitor.check_log()
