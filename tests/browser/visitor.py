"""A visitor of the page: opens views, adds documents, asks; and notes what the browser reports."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from serving import ServedPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OFFLINE = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
WAIT_MS = 60_000
WATCH_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""


def find_browser() -> str:
    """Find the system's browser."""
    path = os.environ.get("CHROMIUM") or next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert path, "there is no chromium here; install it: apt-get install chromium"
    return path


def launch_browser(playwright: object, *options: str) -> "Browser":
    """Launch the browser without a window; root has no sandbox."""
    options = (*OFFLINE, *options, *(["--no-sandbox"] if os.geteuid() == 0 else []))
    return playwright.chromium.launch(executable_path=find_browser(), args=list(options))  # type: ignore[attr-defined]


class Visitor:
    """A browser profile with one page, signed in to a server."""

    def __init__(self, browser: "Browser", served: ServedPage, *, signed_in: bool = True, **settings: Any) -> None:
        usual = {"viewport": {"width": 1280, "height": 860}, "locale": "en-US", "reduced_motion": "reduce"}
        self.served, self.memory = served, "default"
        self.context = browser.new_context(**usual | settings)
        self.context.add_init_script(WATCH_SHIFTS)
        self.context.set_default_timeout(WAIT_MS)
        self.page: Page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.note_message(message.type, message.text))
        if signed_in:
            origin = {"Origin": served.url}
            answer = self.context.request.post(f"{served.url}/v1/session", data={"token": served.token}, headers=origin)
            assert answer.ok, answer.text()

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *error: object) -> None:
        self.context.close()

    def note_message(self, kind: str, text: str) -> None:
        """Note errors of the console, but those of answers that a view expects and shows."""
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.errors.append(text)

    def check_log(self) -> None:
        """Check that no request left the machine, and that no script failed."""
        origins = {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, self.requests)} - {
            "blob://",
            "data://",
        }
        assert origins <= {self.served.url}
        assert self.errors == []

    def create_memory(self, name: str) -> None:
        """Create a memory, and stay in it."""
        self.memory = self.served.post("/v1/memories", {"name": name})["id"]  # type: ignore[index]

    def add_note(self, text: str, title: str = "") -> None:
        """Write a note by the API."""
        self.served.post(f"/v1/memories/{self.memory}/notes", {"text": text, "title": title})

    def open(self, route: str = "ask", query: str = "", selector: str = "h1") -> None:
        """Open a view by its address, and wait for what shows that it is there."""
        self.page.goto(f"{self.served.url}/#/{route}?m={quote(self.memory)}{query}")
        self.page.wait_for_selector(f"main .view-{route.split('/')[0]} {selector}", state="attached")

    def upload(self, *paths: Path) -> None:
        """Add files in the Documents view, and wait until they are read."""
        self.open("documents", selector=".dropzone")
        with self.page.expect_response(lambda answer: answer.request.method == "POST") as uploaded:
            self.page.set_input_files("#pick-files", [str(path) for path in paths])
        self.page.wait_for_selector(f"[data-job='{uploaded.value.json()['job']['id']}'].job-done")

    def ask(self, question: str) -> str:
        """Ask in the Ask view; return the words of the answer."""
        self.open("ask", selector="#question")
        self.page.fill("#question", question)
        self.page.press("#question", "Enter")
        self.page.wait_for_selector(".results:not([aria-busy]) .answer")
        return self.page.inner_text(".answer .answer-words")

    def open_evidence(self) -> "Locator":
        """Click the first card; return the marked words, which have the focus."""
        self.page.click(".card-link >> nth=0")
        self.page.wait_for_selector("main .view-document .reading :focus")
        return self.page.locator(".reading :focus")

    def wait_for_texts(self, selector: str, texts: Sequence[str]) -> None:
        """Wait until the elements of a selector have these texts."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_text(list(texts), timeout=WAIT_MS)

    def is_on_screen(self, place: "Locator") -> bool:
        """Return whether all of an element is within the window."""
        box, size = place.bounding_box(), self.page.viewport_size
        assert box is not None
        assert size is not None
        return box["y"] >= 0 and box["y"] + box["height"] <= size["height"]

    def scroll_width(self) -> int:
        """Measure the width of the page's content."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def set_theme(self, theme: str) -> None:
        """Choose the theme by its button."""
        button = self.page.locator("#theme")
        if (button.get_attribute("aria-pressed") == "true") != (theme == "dark"):
            button.click()

    def list_colors(self, selectors: Sequence[str]) -> list[str]:
        """Read the background colors of elements."""
        script = "(selector) => getComputedStyle(document.querySelector(selector)).backgroundColor"
        return [self.page.evaluate(script, selector) for selector in selectors]
