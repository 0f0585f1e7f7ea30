"""The connection of the page: one-time links, the token, a server that goes and comes back."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import ServedPage, serve_page
from visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_link_signs_in_once(browser: "Browser", served: ServedPage) -> None:
    with Visitor(browser, served, signed_in=False) as visitor:
        visitor.page.goto(served.link)
        visitor.page.wait_for_selector("#question")
        assert "link" not in visitor.page.url
        visitor.check_log()
    with Visitor(browser, served, signed_in=False) as visitor:
        visitor.page.goto(served.link)
        visitor.page.wait_for_selector("#token")
        assert visitor.page.inner_text("#token-error") != ""


def test_the_page_asks_for_the_token(browser: "Browser", served: ServedPage) -> None:
    with Visitor(browser, served, signed_in=False) as visitor:
        visitor.page.goto(served.url)
        visitor.page.fill("#token", "no such token")
        visitor.page.keyboard.press("Enter")
        visitor.page.wait_for_selector("#token-error:has-text('not the token')")
        visitor.page.fill("#token", served.token)
        visitor.page.keyboard.press("Enter")
        visitor.page.wait_for_selector("#question")
        visitor.check_log()


def test_an_ended_session_shows_the_token_form(visitor: Visitor) -> None:
    visitor.open("documents", selector=".dropzone")
    visitor.context.clear_cookies()
    visitor.page.fill("#document-search", "x")
    visitor.page.wait_for_selector("#token")


@pytest.fixture
def mortal(tmp_path: Path) -> "ServedPage":
    """Serve a page whose server a test may stop."""
    with serve_page(tmp_path) as page:
        yield page  # type: ignore[misc]


def test_the_page_recovers_from_a_restart(browser: "Browser", mortal: ServedPage) -> None:
    with Visitor(browser, mortal) as visitor:
        visitor.add_note("The lease of the flat in Mill Street ends on 30 June.")
        assert visitor.ask("When does the lease end?") == "30 June"
        mortal.stop()
        visitor.page.fill("#question", "When does the lease of the flat end?")
        visitor.page.click("#ask")
        visitor.page.wait_for_selector(".notice:has-text('does not answer')")
        mortal.restart()
        visitor.page.wait_for_selector(".notice:has-text('is back')")
        visitor.page.wait_for_selector(".results:not([aria-busy]) .answer")
        assert visitor.page.inner_text(".answer-words") == "30 June"
        visitor.check_log()
