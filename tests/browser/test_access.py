"""Everybody can use the page: by keyboard, with a screen reader, small, dark, in Chinese.

And it calls nobody.
"""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import papers
import pytest
from serving import ServedPage
from visitor import Visitor, launch_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
AXE = Path(os.environ.get("AXE", ROOT / ".venv" / "axe-core" / "axe.min.js"))
LEASE = "When does the lease end?"
QUESTIONS = (LEASE, "How much is the deposit?", "When does the bakery open?", "What is the amount for brushes?")
CONTRASTS = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const luminance = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const decode = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const linear = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => decode(value / 255));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ratios = [];
  for (const name of ['heat-cell', 'gate-cell']) {
    for (let step = 0; step <= 100; step += 1) {
      const cell = document.createElement('div');
      cell.className = name;
      cell.style.setProperty('--w', step / 100);
      document.querySelector('main').append(cell);
      const style = getComputedStyle(cell);
      const [text, back] = [luminance(style.color), luminance(style.backgroundColor)];
      ratios.push((Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05));
      cell.remove();
    }
  }
  return ratios;
}"""
STORY = ".network-results .heat"


def run_axe(visitor: Visitor, view: str) -> list[str]:
    """Let axe-core check the page; return its serious and critical findings."""
    assert AXE.is_file(), f"{AXE} is missing: `make browser` fetches it"
    visitor.page.evaluate(AXE.read_text(encoding="utf-8"))
    result: dict[str, Any] = visitor.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{view}: {finding['id']}: {node['html'][:200]} {node['failureSummary']}"
        for finding in result["violations"]
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]


def walk_views(visitor: Visitor, papers_folder: Path) -> Any:
    """Visit every view, with content; yield the name of each when it is there."""
    visitor.open("ask", selector="#question")
    yield "ask, empty"
    visitor.open("documents", selector=".dropzone")
    yield "documents, empty"
    (papers_folder / "broken.pdf").write_bytes(b"nothing")
    visitor.upload(
        papers.write_letter(papers_folder / "letter.txt"),
        papers.write_contract(papers_folder / "contract.pdf"),
        papers.write_mail(papers_folder / "bakery.eml"),
        papers.write_table(papers_folder / "costs.csv"),
        papers_folder / "broken.pdf",
    )
    yield "documents"
    for question in (
        LEASE,
        "How much is the deposit?",
        "When does the bakery open?",
        "What is the amount for brushes?",
    ):
        visitor.ask(question)
        visitor.page.locator("details").evaluate_all("(nodes) => { for (const node of nodes) node.open = true; }")
        yield f"answer to {question}"
        visitor.open_evidence()
        yield f"evidence of {question}"
    visitor.ask("What is the phone number of the landlord?")
    yield "no answer"
    visitor.open("documents", selector=".document")
    visitor.page.click("text=Write a note" if visitor.page.get_attribute("html", "lang") == "en" else "text=写笔记")
    yield "note"
    visitor.page.keyboard.press("Escape")
    visitor.page.click(".document button")
    yield "forget"
    visitor.page.keyboard.press("Escape")
    visitor.open("networks", selector="#network")
    visitor.page.click(".network-form .primary")
    visitor.page.wait_for_selector(STORY)
    yield "networks"
    visitor.open("text", selector="#long-text")
    yield "long text, empty"
    visitor.page.fill("#long-text", "The museum was founded by Edith Marlowe in 1897. Visitors pay nothing on Sundays.")
    visitor.page.click(".text-form .primary")
    visitor.page.wait_for_selector(".strip")
    yield "long text"
    visitor.open("tables", selector="h1")
    yield "tables"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(visitor: Visitor, tmp_path: Path, theme: str) -> None:
    visitor.open("ask", selector="#question")
    visitor.set_theme(theme)
    findings: list[str] = []
    for view in walk_views(visitor, tmp_path):
        findings += run_axe(visitor, f"{view}, {theme}")
    visitor.context.clear_cookies()
    visitor.page.goto(f"{visitor.served.url}/#/ask")
    visitor.page.reload()
    visitor.page.wait_for_selector("#token")
    findings += run_axe(visitor, f"token, {theme}")
    assert findings == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_are_legible_on_every_shade(visitor: Visitor, theme: str) -> None:
    """The contrast of a number with its cell is at least 4.5 : 1, from weight 0 to 1."""
    visitor.open("networks", selector="#network")
    visitor.set_theme(theme)
    ratios = visitor.page.evaluate(CONTRASTS)
    assert len(ratios) == 202
    assert min(ratios) >= 4.5


@pytest.mark.parametrize("language", ["en", "zh"])
def test_small_screens_need_no_sideways_scrolling(
    browser: "Browser", served: ServedPage, tmp_path: Path, language: str
) -> None:
    with Visitor(browser, served, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as visitor:
        visitor.create_memory(f"small-{language}")
        visitor.page.goto(f"{served.url}/?lang={language}")
        too_wide = {view: width for view in walk_views(visitor, tmp_path) if (width := visitor.scroll_width()) > 390}
        assert too_wide == {}
        visitor.check_log()


def test_the_theme_follows_the_system_and_the_button(browser: "Browser", served: ServedPage) -> None:
    with Visitor(browser, served, color_scheme="dark") as visitor:
        visitor.open("ask", selector="#question")
        assert visitor.page.get_attribute("#theme", "aria-pressed") == "true"
        dark = visitor.list_colors(["html", ".ask-box"])
        visitor.page.click("#theme")
        light = visitor.list_colors(["html", ".ask-box"])
        assert all(first != second for first, second in zip(dark, light))
        visitor.page.reload()
        visitor.page.wait_for_selector("#question")
        assert visitor.list_colors(["html", ".ask-box"]) == light  # it is remembered
        visitor.check_log()


def test_the_interface_in_chinese(visitor: Visitor) -> None:
    visitor.add_note("小明住在北京。", "笔记")
    visitor.open("ask", selector="#question")
    visitor.page.click("#language")
    assert visitor.page.get_attribute("html", "lang") == "zh"
    assert visitor.page.inner_text("#tabs a >> nth=1") == "文档"
    visitor.page.fill("#question", "小明住在哪里?")
    visitor.page.click("#ask")
    visitor.page.wait_for_selector(".results:not([aria-busy]) .answer")
    assert "北京" in visitor.page.inner_text(".answer-words, .card >> nth=0")
    visitor.page.reload()
    visitor.page.wait_for_selector("#question")
    assert visitor.page.get_attribute("html", "lang") == "zh"
    visitor.page.goto(f"{visitor.served.url}/?lang=en#/ask")
    visitor.page.wait_for_selector("#question")
    assert visitor.page.get_attribute("html", "lang") == "en"


def press_until(visitor: Visitor, selector: str, limit: int = 40) -> None:
    """Press Tab until an element has the focus; each stop can be seen."""
    for _ in range(limit):
        visitor.page.keyboard.press("Tab")
        outline = visitor.page.evaluate(
            """() => {
                const node = document.activeElement;
                const style = (item) => (item ? getComputedStyle(item) : { outlineStyle: 'none', boxShadow: 'none' });
                const ring = (item) => style(item).outlineStyle !== 'none' || style(item).boxShadow !== 'none';
                return node === document.body || [node, node.closest('.card, .ask-box')].some(ring);
            }"""
        )
        assert outline, visitor.page.evaluate("document.activeElement.outerHTML")
        if visitor.page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached with Tab")


def test_the_keyboard_is_enough(visitor: Visitor) -> None:
    """Skip to the content, ask, open the evidence, go back, change the theme, forget: no mouse."""
    visitor.add_note("The lease of the flat in Mill Street ends on 30 June.", "Lease")
    visitor.open("tables", selector="h1")
    visitor.page.evaluate("document.activeElement.blur()")
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Enter")  # the skip link
    assert visitor.page.evaluate("document.activeElement.id") == "main"
    visitor.page.keyboard.press("Shift+Tab")
    visitor.open("ask", selector="#question")
    visitor.page.evaluate("document.activeElement.blur()")
    press_until(visitor, "#question")
    visitor.page.keyboard.type(LEASE)
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_selector(".results:not([aria-busy]) .answer")
    assert "30 June" in visitor.page.text_content("#live")
    press_until(visitor, ".card-link")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_selector("mark:focus")
    visitor.page.go_back()  # as Alt and the left arrow do; a browser without a window has no keys of its own
    visitor.page.wait_for_selector(".answer-words")
    visitor.open("documents", selector=".document")
    visitor.page.evaluate("document.activeElement.blur()")
    press_until(visitor, "#theme")
    visitor.page.keyboard.press("Space")
    assert visitor.page.get_attribute("html", "data-theme") == "dark"
    press_until(visitor, ".document button")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_selector("dialog")
    visitor.page.keyboard.press("Escape")
    assert visitor.page.evaluate("document.activeElement.closest('.document') !== null")  # the focus is back
    visitor.page.keyboard.press("Enter")
    press_until(visitor, "dialog .danger")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_selector(".proof-good")


def test_no_request_leaves_the_machine(playwright: object, served: ServedPage, tmp_path: Path) -> None:
    """Read the network log of the whole browser: each request names the page that started it."""
    log = tmp_path / "net.json"
    browser = launch_browser(playwright, f"--log-net-log={log}")
    with Visitor(browser, served) as visitor:
        visitor.create_memory("network-log")
        for _ in walk_views(visitor, tmp_path):
            pass
        visitor.check_log()
    browser.close()
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    sent = [event["params"] for event in events if "initiator" in event.get("params", {})]
    of_pages = [urlsplit(request["url"]).hostname for request in sent if request["initiator"] == served.url]
    assert len(of_pages) > 50
    assert set(of_pages) == {"127.0.0.1"}
    # nobody else is a page: "not an origin" is Chromium itself, which looks for its own updates
    assert {request["initiator"] for request in sent} == {served.url, "not an origin"}
