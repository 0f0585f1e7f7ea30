"""Format a table of attention, from its JSON, for a terminal or a page.

Headers with ``>`` in front are those of numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemic.recipe import join_words
from mnemic.reproduce.attention.columns import COST

SHOWN_TOKENS = (512, 2048, 8192, 32768)  # of the table of costs
DASH = "–"

Lines = list[list[str]]


def format_quality(result: Mapping[str, Any]) -> tuple[list[str], Lines]:
    """Format the columns of quality: headers and one line per row."""
    columns = {name: column for name, column in result["columns"].items() if "reason" not in column}
    headers = ["attention", *(f">{format_title(column)}" for column in columns.values())]
    lines = [
        [row["title"], *(format_cell(row["cells"][name], column) for name, column in columns.items())]
        for row in result["rows"]
    ]
    return headers, lines


def format_title(column: Mapping[str, Any]) -> str:
    """Format the title of a column with its unit."""
    return column["title"] + (f", {column['unit']}" if column["unit"] else "")


def format_cell(cell: Mapping[str, Any], column: Mapping[str, Any]) -> str:
    """Format a mean, with its deviation over several seeds; a dash where there is a reason."""
    if "reason" in cell:
        return DASH
    spread = f" ± {cell['std']:.{column['decimals']}f}" if len(cell["runs"]) > 1 else ""
    return f"{cell['mean']:.{column['decimals']}f}{spread}"


def format_costs(result: Mapping[str, Any], device: str) -> tuple[list[str], Lines]:
    """Format time and memory on a device by length, one line per row."""
    measured = {cell["tokens"] for row in result["rows"] for cell in lengths_of(row, device)}
    tokens = [length for length in SHOWN_TOKENS if length in measured] or sorted(measured)
    headers = ["attention", *(f">ms at {length:,}" for length in tokens), ">time grows by n^"]
    headers += [*(f">MiB at {length:,}" for length in tokens), ">memory grows by n^", *depth_headers(result, device)]
    lines = []
    for row in result["rows"]:
        cells = {cell["tokens"]: cell for cell in lengths_of(row, device)}
        if not cells:
            continue
        memory = "peak_mib" if any("peak_mib" in cell for cell in cells.values()) else "saved_mib"
        line = [row["title"], *(format_number(cells.get(length, {}).get("seconds"), 1000) for length in tokens)]
        line += [format_number(row[COST][device].get("seconds_slope"))]
        line += [format_number(cells.get(length, {}).get(memory)) for length in tokens]
        line += [format_number(row[COST][device].get(f"{memory}_slope"))]
        depths = next(iter(cells.values())).get("saved_mib_by_depth", {})
        lines.append([*line, *([" / ".join(map(format_number, depths.values()))] if depths else [])])
    return headers, lines


def depth_headers(result: Mapping[str, Any], device: str) -> list[str]:
    """Return the header of memory by number of layers, if it was measured."""
    cells = [cell for row in result["rows"] for cell in lengths_of(row, device)]
    depths = next((cell["saved_mib_by_depth"] for cell in cells if "saved_mib_by_depth" in cell), {})
    return [f">MiB with {' / '.join(depths)} layers"] if depths else []


def lengths_of(row: Mapping[str, Any], device: str) -> Sequence[Mapping[str, Any]]:
    """Return the costs of a row by length; none if it has a reason."""
    costs: Sequence[Mapping[str, Any]] = row[COST].get(device, {}).get("lengths", ())
    return costs


def format_number(value: float | None, factor: float = 1) -> str:
    """Format a number with three digits; a dash for None."""
    if value is None:
        return DASH
    number = value * factor
    decimals = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return f"{number:,.{decimals}f}"


def format_reasons(result: Mapping[str, Any]) -> list[str]:
    """Format why cells are empty: one line per column and reason, with its rows."""
    lines = [f"{column['title']}: {column['reason']}" for column in result["columns"].values() if "reason" in column]
    for name, column in result["columns"].items():
        rows_by_reason: dict[str, list[str]] = {}
        for row in result["rows"]:
            if "reason" not in column and (reason := row["cells"][name].get("reason")):
                rows_by_reason.setdefault(reason, []).append(row["title"])
        lines += [f"{column['title']}: {reason}: {join_words(rows)}" for reason, rows in rows_by_reason.items()]
    for row in result["rows"]:
        for device, cost in row[COST].items():
            reasons = (
                [cost["reason"]]
                if "reason" in cost
                else [cell["reason"] for cell in cost["lengths"] if "reason" in cell]
            )
            lines += [f"cost, {device}: {row['title']}: {reasons[0]}"] if reasons else []
    return lines


def format_limits(result: Mapping[str, Any]) -> tuple[list[str], Lines]:
    """Format what each row can and cannot do."""
    lines = []
    for row in result["rows"]:
        abilities = join_words(name for name, can in row["can"].items() if can)
        lines.append([row["title"], abilities or DASH, row["cannot"]])
    return ["attention", "can", "cannot"], lines
