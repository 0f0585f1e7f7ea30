"""Format the evidence of an answer as a table."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.render.colormap import MIN_VISIBLE, CellColors, pick_gate_colors, pick_weight_colors, to_hex
from mnemic.cli.render.console import AS_JSON, Styled, build_table, get_stdout, get_width
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
    marks: Sequence[tuple[int, int]] = ()  # starts and ends of what stands out in the text
    is_total: bool = False  # set apart from the evidence
    pick_colors: Callable[[float], CellColors] = pick_weight_colors


def print_evidence(
    rows: Sequence[EvidenceRow], weight_titles: Sequence[str], text_title: str = "sentence", place_title: str = "place"
) -> None:
    """Print the evidence of an answer, if there is any, for a person."""
    if rows and not AS_JSON.get():
        get_stdout().print(evidence_table(rows, weight_titles, text_title, place_title))


def evidence_table(
    rows: Sequence[EvidenceRow], weight_titles: Sequence[str], text_title: str = "sentence", place_title: str = "place"
) -> "Table":
    """Build the table of the evidence of documents, texts and stories."""
    has_labels, has_places, has_gates = (
        any(column) for column in zip(*((row.label, row.citation, len(row.gates)) for row in rows))
    )
    # Long paths are shortened at their beginning, so that file and line can be read.
    max_place_chars = max(MIN_PLACE_CHARS, get_width() // 3)
    headers = [">id" if has_places else ">"] * has_labels + [place_title] * has_places + [text_title]
    headers += [f">{title}" for title in weight_titles] + ["slots' gates"] * has_gates
    cells: list[list[Any] | None] = []
    for row in rows:
        cells += [None] * row.is_total
        head = [Styled(row.label, "" if has_places else "dim")] * has_labels
        head += [Styled(shorten_start(row.citation, max_place_chars), "dim")] * has_places
        weights = [format_weight(weight, row.pick_colors) for weight in row.weights[: len(weight_titles)]]
        gap = [""] * (len(weight_titles) - len(weights))
        text = Styled(row.text, "dim" if row.is_total else "", row.marks)
        cells.append([*head, text, *weights, *gap, *[format_blocks(row.gates)] * has_gates])
    table = build_table(headers, cells)
    for header, column in zip(headers, table.columns):
        column.no_wrap = header in (place_title, "slots' gates")
        column.min_width = 5 if header.removeprefix(">") in weight_titles else None
    return table


def format_blocks(gates: Sequence[float]) -> "Text":
    """Format gates as a line of block characters, one per slot."""
    from rich.text import Text

    line = Text()
    for gate in gates:
        color = to_hex(pick_gate_colors(max(gate, 0.4)).background)
        line.append(BLOCKS[round(gate * (len(BLOCKS) - 1))], style=color if gate > MIN_SHADED else "dim")
    return line


def format_weight(weight: float, pick_colors: Callable[[float], CellColors] = pick_weight_colors) -> Styled:
    """Format a weight on a background that is darker for a larger weight."""
    if weight < MIN_VISIBLE:
        return Styled("·", "dim")
    background, foreground = map(to_hex, pick_colors(weight))
    return Styled(f"{weight:.2f}", f"{foreground} on {background}" if weight >= MIN_SHADED else "")
