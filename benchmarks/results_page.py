"""Fill the tables of docs/results.md from the measured tables in docs/results/*.json.

    python benchmarks/results_page.py

`mnemic table … --out DIR` measures; a copy of its DIR/table.json goes to docs/results/NAME.json.
A table on the page stands between `<!-- rows: NAME NAME -->` (one line a measured table) or
`<!-- tasks: NAME NAME -->` (one line a bAbI task) and `<!-- end -->`; the words around are free.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"<!-- (rows|tasks): (.*?) -->\n.*?<!-- end -->", re.DOTALL)


def main() -> None:
    page = DOCS / "results.md"
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str) -> str:
    """The page with every table written anew."""

    def block(found: re.Match[str]) -> str:
        kind, names = found[1], found[2].split()
        tables = [json.loads((DOCS / "results" / f"{n}.json").read_text("utf-8")) for n in names]
        lines = rows(tables) if kind == "rows" else tasks(tables)
        return "\n".join([f"<!-- {kind}: {found[2]} -->", "", *lines, "", "<!-- end -->"])

    return BLOCK.sub(block, page)


def rows(tables: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One line a measured table: published beside ours."""
    yield (
        "| setting | published | ours: best | mean ± deviation | median | failed, published / ours "
        "| seeds | command | hardware |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- | --- |"
    for table in tables:
        ours, paper = table["ours"], table["published"]
        same = not table["overrides"]
        published, theirs = (paper["mean_error"], paper["failed"]) if paper and same else ("–", "–")
        cells = [
            f"{table['size']} {table['setting']}",
            str(published),
            f"**{ours['best']:.1f}**",
            f"{ours['mean_error']:.1f} ± {ours['std']:.1f}",
            f"{ours['median']:.1f}",
            f"{theirs} / {ours['failed']}",
            f"0–{len(table['seeds']) - 1}",
            f"`{command(table)}`",
            table["hardware"],
        ]
        yield "| " + " | ".join(cells) + " |"


def tasks(tables: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One line a task, two columns a measured table."""
    titles = [f"{table['size']} {table['setting']}: {{}}" for table in tables]
    names = [title.format(what) for title in titles for what in ("published", "best", "mean")]
    yield "| task | " + " | ".join(names) + " |"
    yield "| --- |" + " ---: |" * len(names)
    for task in tables[0]["ours"]["per_task"]:
        cells = []
        for table in tables:
            paper = table["published"].get("per_task", {})
            cells.append(f"{paper[task]:.1f}" if task in paper else "–")
            cells += [f"{table['ours'][key][task]:.1f}" for key in ("per_task", "per_task_mean")]
        yield f"| {task} | " + " | ".join(cells) + " |"


def command(table: dict[str, Any]) -> str:
    """What was typed to measure it."""
    words = ["mnemic", "table", "babi", "--recipe", table["recipe"], "--size", table["size"]]
    words += ["--joint"] if table["setting"] == "joint" else []
    words += ["--seeds", str(len(table["seeds"])), "--data", "DIR"]
    for text in table["overrides"]:
        words += ["--set", text]
    return shlex.join(words)


if __name__ == "__main__":
    main()
