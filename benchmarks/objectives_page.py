"""Fill docs/explain/objectives.md from docs/results/objectives/table.json.

    python benchmarks/objectives_page.py

`mnemic table objectives … --out DIR` measures; copy its DIR/table.json to docs/results/objectives.
A table of the page is between `<!-- objectives: PART -->` and `<!-- end -->`, where PART is
`tokens`, `seconds`, `pairs`, `reasons`, `source` or `batches`; the text around it is free.
`batches` is of the tables batches-*.json there, of `--rows mlm,batches`, one for each rate.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_page import NOT_MEASURED, format_markdown

from mnemic.reproduce.objectives.format import format_batches, format_budget, format_pairs, format_reasons, list_budgets

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


def format_batch_sizes(tables: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Format larger batches at several rates, a column each, and the commands."""
    if not tables:
        yield NOT_MEASURED
        return
    columns = [format_batches(table, "tokens")[1] for table in tables]
    headers = ["optimizer", ">batch, times", ">steps", ">rate, times"]
    headers += [f">perplexity, rate {read_rate(table)}" for table in tables]
    lines = [[*first[:4], *(line[4] for line in (first, *others))] for first, *others in zip(*columns, strict=True)]
    yield from format_markdown(headers, lines)
    seconds, settings = sum(table["seconds"] for table in tables), tables[0]["settings"]
    yield ""
    yield (
        f"Width {settings['width']}, {settings['depth']} layers, {settings['vocab']:,} words, {settings['tokens']:,} "
        f"tokens, {settings['batch_tokens']} of them a step at batch 1. {tables[0]['hardware']}, "
        f"{seconds / 60:.0f} minutes of training:"
    )
    yield ""
    commands = "\n".join(table["command"] for table in tables)
    yield f"```text\n{commands}\n```"


def read_rate(table: Mapping[str, Any]) -> str:
    """Read the rate of a table's smallest batches."""
    settings = [text.partition("=") for text in table["settings"]["pretraining"]]
    return next(value for name, _, value in settings if name == "train.rate")


def load_batch_tables() -> list[Any]:
    """Load the tables of larger batches, by rate."""
    paths = sorted(TABLE.parent.glob("batches-*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


PARTS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "tokens": lambda table: format_rows(table, "tokens"),
    "seconds": lambda table: format_rows(table, "seconds"),
    "pairs": lambda table: format_markdown(*format_pairs(table, list_budgets(table)[0])),
    "reasons": lambda table: (f"- {line}" for line in format_reasons(table)),
    "source": format_source,
    "batches": lambda table: format_batch_sizes(load_batch_tables()),
}


if __name__ == "__main__":
    main()
