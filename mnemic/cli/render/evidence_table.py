"""Format the evidence of an answer as a table."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mnemic.cli.render.colormap import MIN_VISIBLE, CellColors, pick_gate_colors, pick_weight_colors, to_hex
from mnemic.cli.render.console import build_table, get_stdout, style_text
from mnemic.cli.render.format import shorten_start

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

MIN_SHADED = 0.02  # smaller weights have no background color
MIN_PLACE_CHARS = 16
BLOCKS = "·▁▂▃▄▅▆▇█"  # closed to fully open


class EvidenceRow(NamedTuple):
    """A row of evidence; the table omits columns that are always empty."""

    text: str
    weights: Sequence[float]  # one per hop
    label: str = ""  # the number of the sentence or document
    citation: str = ""  # file and line
    gates: Sequence[float] = ()  # one per slot: how far it opened
    is_total: bool = False  # set apart from the evidence
    pick_colors: Callable[[float], CellColors] = pick_weight_colors


def evidence_table(
    rows: Sequence[EvidenceRow],
    weight_titles: Sequence[str],
    *,
    text_title: str = "sentence",
    place_title: str = "place",
) -> "Table":
    """Build the table of the evidence of documents, texts and stories."""
    has_labels, has_places, has_gates = (
        any(column) for column in zip(*((row.label, row.citation, len(row.gates)) for row in rows))
    )
    # Long paths are shortened at their beginning, so that file and line can be read.
    max_place_chars = max(MIN_PLACE_CHARS, get_stdout().width // 3)
    label_title = "id" if has_places else ""
    headers = [f">{label_title}"] * has_labels + [place_title] * has_places + [text_title]
    headers += [f">{title}" for title in weight_titles] + ["slots' gates"] * has_gates
    cells: list[Sequence[str | Text] | None] = []
    for row in rows:
        if row.is_total:
            cells.append(None)
        citation = style_text(shorten_start(row.citation, max_place_chars), "dim")
        cells.append([
            *[style_text(row.label, "" if has_places else "dim")] * has_labels,
            *[citation] * has_places,
            style_text(row.text, "dim" if row.is_total else ""),
            *(format_weight(weight, row.pick_colors) for weight in row.weights),
            *[""] * (len(weight_titles) - len(row.weights)),
            *[format_blocks(row.gates)] * has_gates,
        ])  # fmt: skip
    table = build_table(headers, cells)
    for header, column in zip(headers, table.columns):
        column.no_wrap = header in (place_title, "slots' gates")
        column.overflow = "fold" if header == text_title else "ellipsis"  # no word of it is cut
        column.min_width = 5 if header.removeprefix(">") in weight_titles else None
    return table


def format_blocks(gates: Sequence[float]) -> "Text":
    """Format gates as a line of block characters, one per slot."""
    line = style_text("", "")
    for gate in gates:
        color = to_hex(pick_gate_colors(max(gate, 0.4)).background)
        line.append(BLOCKS[round(gate * (len(BLOCKS) - 1))], style=color if gate > MIN_SHADED else "dim")
    return line


def format_weight(weight: float, pick_colors: Callable[[float], CellColors] = pick_weight_colors) -> "Text":
    """Format a weight on a background that is darker for a larger weight."""
    if weight < MIN_VISIBLE:
        return style_text("·", "dim")
    background, foreground = map(to_hex, pick_colors(weight))
    return style_text(f"{weight:.2f}", f"{foreground} on {background}" if weight >= MIN_SHADED else "")
