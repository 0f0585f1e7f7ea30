"""Fixtures of the browser tests: a server, Chromium, and a visitor of the page.

`make browser` runs them. Nothing is downloaded: the browser is the system's own chromium.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import ServedPage, serve_page
from visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OFFLINE = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here: `make test` needs no browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def find_browser() -> str:
    """Find the system's browser."""
    path = os.environ.get("CHROMIUM") or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail("there is no chromium here; install it: apt-get install chromium")
    return path


def launch_browser(playwright: object, *options: str) -> "Browser":
    """Launch the browser without a window; root has no sandbox."""
    options = (*OFFLINE, *options, *(["--no-sandbox"] if os.geteuid() == 0 else []))
    return playwright.chromium.launch(executable_path=find_browser(), args=list(options))  # type: ignore[attr-defined]


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
