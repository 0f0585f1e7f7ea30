"""Fill docs/explain/objectives.md from docs/results/objectives/table.json.

    python benchmarks/objectives_page.py

`mnemic table objectives … --out DIR` measures; copy its DIR/table.json to docs/results/objectives.
A table of the page is between `<!-- objectives: PART -->` and `<!-- end -->`, where PART is
`tokens`, `seconds`, `pairs`, `reasons` or `source`; the text around it is free.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attention_page import NOT_MEASURED, format_markdown

from mnemic.reproduce.objectives.format import format_budget, format_pairs, format_reasons, list_budgets

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "explain" / "objectives.md"
TABLE = DOCS / "results" / "objectives" / "table.json"
BLOCK = re.compile(r"(<!-- objectives: (\w+) -->)\n.*?<!-- end -->", re.DOTALL)


def main() -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")


def fill_page(page: str, table: Mapping[str, Any]) -> str:
    """Replace every table of the page."""

    def replace_block(match: re.Match[str]) -> str:
        """Format the lines of one block."""
        return "\n".join([match[1], "", *PARTS[match[2]](table), "", "<!-- end -->"])

    return BLOCK.sub(replace_block, page)


def format_rows(table: Mapping[str, Any], budget: str) -> Iterator[str]:
    """Format the rows at a budget; a line if none is measured."""
    if budget not in list_budgets(table):
        yield NOT_MEASURED
        return
    yield from format_markdown(*format_budget(table, budget))


def format_source(table: Mapping[str, Any]) -> Iterator[str]:
    """Format the command, the sizes and the hardware of the table."""
    settings = table["settings"]
    yield (
        f"Width {settings['width']}, {settings['depth']} layers, {settings['heads']} heads, "
        f"{settings['vocab']:,} words, sequences of {settings['length']} tokens, about "
        f"{settings['batch_tokens']:,} tokens a step. {table['hardware']}, {table['seconds'] / 60:.0f} minutes of "
        "training:"
    )
    yield ""
    yield f"```text\n{table['command']}\n```"


PARTS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "tokens": lambda table: format_rows(table, "tokens"),
    "seconds": lambda table: format_rows(table, "seconds"),
    "pairs": lambda table: format_markdown(*format_pairs(table, list_budgets(table)[0])),
    "reasons": lambda table: (f"- {line}" for line in format_reasons(table)),
    "source": format_source,
}


if __name__ == "__main__":
    main()
