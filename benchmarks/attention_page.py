"""Fill docs/explain/attention.md from docs/results/attention/table.json.

    python benchmarks/attention_page.py

`mnemic table attention … --out DIR` measures; copy its DIR/table.json to docs/results/attention. A
table of the page is between `<!-- attention: PART -->` and `<!-- end -->`, where PART is `quality`,
`cost`, `limits`, `reasons` or `source`; the text around it is free. The picture of cost against
length is docs/pictures/attention-cost.png.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemic.cli.render.plot_length_cost import plot_length_cost
from mnemic.reproduce.attention.format import format_costs, format_limits, format_quality, format_reasons

DOCS = Path(__file__).parents[1] / "docs"
TABLE = DOCS / "results" / "attention" / "table.json"
PICTURE = DOCS / "pictures" / "attention-cost.png"
NOT_MEASURED = "Not measured yet."
BLOCK = re.compile(r"(<!-- attention: (\w+) -->)\n.*?<!-- end -->", re.DOTALL)
DEVICES = {"cpu": "CPU", "cuda": "GPU"}


def main() -> None:
    page = DOCS / "explain" / "attention.md"
    table = read_table()
    page.write_text(fill_page(page.read_text(encoding="utf-8"), table), encoding="utf-8")
    if table is not None:
        plot_length_cost(table, PICTURE)


def read_table() -> dict[str, Any] | None:
    """Read the measured table; None if there is none."""
    return json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.is_file() else None


def fill_page(page: str, table: Mapping[str, Any] | None) -> str:
    """Replace every table of the page."""

    def replace_block(match: re.Match[str]) -> str:
        """Format the lines of one block."""
        lines = [NOT_MEASURED] if table is None else list(PARTS[match[2]](table))
        return "\n".join([match[1], "", *lines, "", "<!-- end -->"])

    return BLOCK.sub(replace_block, page)


def format_markdown(headers: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Format a table; headers with ``>`` align right."""
    yield "| " + " | ".join(header.removeprefix(">") for header in headers) + " |"
    yield "| " + " | ".join("---:" if header.startswith(">") else "---" for header in headers) + " |"
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def format_cost_tables(table: Mapping[str, Any]) -> Iterator[str]:
    """Format the picture and one table of costs per device."""
    yield "![Time and memory of a training pass against the tokens of a text](../pictures/attention-cost.png)"
    for device in table["rows"][0]["cost"]:
        cost = table["settings"]["cost"]
        memory = "kept for the backward pass" if device == "cpu" else "at the peak"
        yield ""
        layers = "1 layer" if cost["depth"] == 1 else f"{cost['depth']} layers"
        yield (
            f"{DEVICES[device]}: a training pass over one text, {layers} of width {cost['width']}; MiB {memory}, "
            f"in the last column of {cost['depth_length']:,} tokens."
        )
        yield ""
        yield from format_markdown(*format_costs(table, device))


def format_source(table: Mapping[str, Any]) -> Iterator[str]:
    """Format the command, the sizes and the hardware of the table."""
    settings = table["settings"]
    yield (
        f"Trained networks have width {settings['width']}, {settings['depth']} layers and {settings['heads']} heads. "
        f"{table['hardware']}, {table['seconds'] / 60:.0f} minutes of training:"
    )
    yield ""
    yield f"```text\n{table['command']}\n```"


def format_quality_table(table: Mapping[str, Any]) -> Iterator[str]:
    """Format the columns of quality, if any is measured."""
    headers, lines = format_quality(table)
    return format_markdown(headers, lines) if len(headers) > 1 else iter([NOT_MEASURED])


PARTS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "quality": format_quality_table,
    "cost": format_cost_tables,
    "limits": lambda table: format_markdown(*format_limits(table)),
    "reasons": lambda table: (f"- {line}" for line in format_reasons(table)),
    "source": format_source,
}


if __name__ == "__main__":
    main()
