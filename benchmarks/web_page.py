"""Measure the page in the browser: first paint, question box, first evidence, whole answer.

    python benchmarks/web_page.py FOLDER [--visits 20] [--questions 40] [--passages 1000]
        [--embedder NAME]

FOLDER has text files; as many as make up --passages are remembered by `mnemic serve` (mnemic's own
documentation and source are enough). Every visit is a fresh profile of headless Chromium without a
cache. Questions are sentences of the documents with a question before them: what is timed is the
way through the page, not the answer. All times are taken in the page, from the press of the key on.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "browser")]

from serving import ServedPage, serve_page  # noqa: E402
from visitor import Visitor, launch_browser  # noqa: E402

SUFFIXES = {".md", ".py", ".txt", ".toml"}
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
WATCH_BOX = """
window.marks = {};
new MutationObserver(() => {
  const note = (name, selector) => {
    if (window.marks[name] === undefined && document.querySelector(selector)) window.marks[name] = performance.now();
  };
  note('box', '#question');
  note('found', '.results .card');
  note('answer', '.results:not([aria-busy]) .answer:not(.answer-waiting)');
}).observe(document, { childList: true, subtree: true, attributes: true });
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') window.marks = { start: performance.now(), box: 0 };
}, true);
"""


def format_times(name: str, times: list[float]) -> str:
    """Format the median and the 95th percentile of times in milliseconds."""
    marks = quantiles(times, n=20, method="inclusive")
    return f"{name:<16} p50 {marks[9]:6.0f} ms   p95 {marks[18]:6.0f} ms   n {len(times)}"


def remember_files(page: ServedPage, visitor: Visitor, folder: Path, num_passages: int) -> tuple[int, list[str]]:
    """Write files as notes until there are enough passages; return their number and some lines."""
    lines: list[str] = []
    passages = 0
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        if not text.strip() or passages >= num_passages:
            continue
        note: Any = page.post(f"/v1/memories/{visitor.memory}/notes", {"text": text, "title": path.name})
        passages += note["passages"]
        lines += [line.strip() for line in text.splitlines() if 40 < len(line.strip()) < 120][:3]
    return passages, lines


def time_visits(browser: Any, page: ServedPage, visits: int) -> dict[str, list[float]]:
    """Open the page in fresh profiles; return the times of first paint and question box."""
    times: dict[str, list[float]] = {"first paint": [], "question box": []}
    for _ in range(visits):
        with Visitor(browser, page) as visitor:
            visitor.context.add_init_script(WATCH_BOX)
            visitor.page.goto(f"{page.url}/#/ask")
            visitor.page.wait_for_selector("#question")
            visitor.page.wait_for_timeout(100)
            times["first paint"].append(float(visitor.page.evaluate(PAINT)))
            times["question box"].append(float(visitor.page.evaluate("window.marks.box")))
    return times


def time_answers(visitor: Visitor, questions: list[str]) -> dict[str, list[float]]:
    """Ask in the page; return the times of the first evidence and of the whole answer."""
    times: dict[str, list[float]] = {"first evidence": [], "whole answer": []}
    visitor.context.add_init_script(WATCH_BOX)
    for number, question in enumerate(questions):
        visitor.page.goto(f"{visitor.served.url}/#/ask?m={visitor.memory}")
        visitor.page.wait_for_selector("#question")
        visitor.page.fill("#question", question)
        visitor.page.press("#question", "Enter")
        visitor.page.wait_for_selector(".results:not([aria-busy]) .answer:not(.answer-waiting)")
        marks = visitor.page.evaluate("window.marks")
        if number:  # the first one loads the model
            times["first evidence"].append(marks["found"] - marks["start"])
            times["whole answer"].append(marks["answer"] - marks["start"])
    return times


def main() -> None:
    """Serve, remember, visit, ask; print the times beside the load of the machine."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--visits", type=int, default=20)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--passages", type=int, default=1000)
    parser.add_argument("--embedder", default="reader-small", help="hashed-ngrams fills a large memory in no time")
    options = parser.parse_args()
    home = tempfile.TemporaryDirectory()
    with home, serve_page(Path(home.name), "--embedder", options.embedder) as page, sync_playwright() as playwright:
        browser = launch_browser(playwright)
        with Visitor(browser, page) as visitor:
            visitor.create_memory("measured")
            passages, lines = remember_files(page, visitor, options.folder, options.passages)
            step = max(1, len(lines) // (options.questions + 1))
            questions = [f"What is said about: {line}?" for line in lines[::step][: options.questions + 1]]
            print(f"{passages} passages, {os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
            times = time_visits(browser, page, options.visits) | time_answers(visitor, questions)
        for name, values in times.items():
            print(format_times(name, values))
        print(f"load after {os.getloadavg()[0]:.1f}")
        browser.close()


if __name__ == "__main__":
    main()
