"""Find the tables of a page and give their cells the names of their columns.

A PDF or a picture has no tables, only cells with positions. A table is a row that can be a header
and the rows below it whose cells stand under its names.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from mnemic.text.documents.data.header import NUM_SAMPLE_ROWS, is_header
from mnemic.text.documents.office.blocks import format_row
from mnemic.text.documents.office.fragment import Fragment

MIN_ROWS = 3  # the header and two others; fewer may only look like a table
MAX_COLUMNS = 50
MAX_ROW_GAP = 2.5  # white space between two rows, in heights of a row

CellRow: TypeAlias = Sequence[Fragment]


def name_tables(rows: Sequence[CellRow]) -> dict[int, str]:
    """Return the texts of the rows that belong to tables, by their indexes."""
    texts: dict[int, str] = {}
    index = 0
    while index < len(rows):
        sample = read_table(rows[index : index + NUM_SAMPLE_ROWS])
        if len(sample) < MIN_ROWS or not is_header(sample):
            index += 1
            continue
        names, *table = read_table(rows[index:])
        texts[index] = "; ".join(names)
        for number, cells in enumerate(table, start=1):
            texts[index + number] = format_row(names, cells)
        index += 1 + len(table)
    return texts


def read_table(rows: Sequence[CellRow]) -> list[list[str]]:
    """Read rows whose cells stand under those of the first.

    A cell may be empty; the table ends before the first row that does not fit.
    """
    header = rows[0]
    if not 2 <= len(header) <= MAX_COLUMNS:
        return []
    table = [[cell.text for cell in header]]
    for above, row in pairwise(rows):
        columns = find_columns(header, row)
        if columns is None or is_far(above, row):
            break
        cells = [""] * len(header)
        for column, cell in zip(columns, row):
            cells[column] = cell.text
        table.append(cells)
    return table


def find_columns(header: CellRow, row: CellRow) -> list[int] | None:
    """Find the column of each cell; None if one has none."""
    if not 2 <= len(row) <= len(header):
        return None
    if len(row) == len(header):
        return list(range(len(header)))
    columns = [max(range(len(header)), key=lambda column: overlap(header[column], cell)) for cell in row]
    is_ordered = all(first < second for first, second in pairwise(columns))
    return columns if is_ordered and columns[0] == 0 else None


def overlap(first: Fragment, second: Fragment) -> float:
    """Return the width that two cells share; negative: the distance between them."""
    return min(first.x_max, second.x_max) - max(first.x_min, second.x_min)


def is_far(above: CellRow, row: CellRow) -> bool:
    """Check whether there is too much white space between two rows of a table."""
    bottom, top = min(cell.y_min for cell in above), max(cell.y_max for cell in row)
    return bottom - top > MAX_ROW_GAP * min(above[0].height, row[0].height) or top > above[0].y_max
