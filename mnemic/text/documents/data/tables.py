"""Read tables (.csv, .tsv): a row is a unit that names its columns."""

import csv
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple, TextIO

from mnemic.text.documents.data.header import NUM_SAMPLE_ROWS, is_header
from mnemic.text.documents.data.rows import RowBuilder, RowField, name_cells
from mnemic.text.documents.encoding import MAX_LINE_LENGTH, open_text, read_line
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, DocumentError, DocumentPart, Source

MAX_COLUMNS = 16_384  # as in a spreadsheet


class TableRow(NamedTuple):
    """A row of a table as it is written, with its position in the file."""

    cells: list[str]
    text: str
    origin: int
    line: int


class CSVLines:
    """The lines of a file for ``csv.reader``, recording the source text of each row."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.row_lines: list[str] = []
        self.row_length = 0
        self.number = 1  # of the next line

    def __iter__(self) -> "CSVLines":
        return self

    def __next__(self) -> str:
        line = read_line(self.file, self.number)
        if not line:
            raise StopIteration
        self.number += 1
        self.row_lines.append(line)
        self.row_length += len(line)
        if self.row_length > MAX_LINE_LENGTH:
            raise DocumentError(f"a row that ends at line {self.number - 1} has no end in sight")
        return line

    def take_row(self) -> str:
        """Return the text of the row so far and begin the next one."""
        text = "".join(self.row_lines)
        self.row_lines, self.row_length = [], 0
        return text


def read_table(source: Source) -> Iterator[DocumentPart]:
    """Read a table in pieces of whole rows."""
    csv.field_size_limit(MAX_LINE_LENGTH)
    with open_text(source.path) as file:
        dialect = detect_dialect(file.read(MIN_PIECE_LENGTH), source.suffix)
        file.seek(0)
        rows = read_rows(file, dialect)
        sample = list(islice(rows, NUM_SAMPLE_ROWS))
        names: list[str] = []
        first = next((number for number, row in enumerate(sample) if sum(map(bool, map(str.strip, row.cells))) > 1), 0)
        has_names = is_header([row.cells for row in sample[first:]] or [[]])
        builder = RowBuilder()
        for number, row in enumerate(chain(sample, rows)):
            cells = split_cells(row, dialect)
            if number == first and has_names:  # rows of one cell may stand before it, such as a title
                names = [cell.strip() for cell in row.cells]
                builder.add_row([cell for cell in cells if cell.value.strip()], row.origin)
            else:
                builder.add_row(name_cells(names, cells), row.origin)
            if builder.is_full:
                yield from builder.take_piece()
    yield from builder.take_piece()


def read_rows(file: TextIO, dialect: type[csv.Dialect]) -> Iterator[TableRow]:
    """Yield the rows of a table that are not blank."""
    lines = CSVLines(file)
    origin, line = 0, 1
    try:
        for cells in csv.reader(lines, dialect):
            row = TableRow(cells, lines.take_row(), origin, line)
            origin, line = origin + len(row.text), lines.number
            if any(cell.strip() for cell in cells):
                yield row
    except csv.Error as error:
        raise DocumentError(f"line {lines.number}: {error}") from None


def split_cells(row: TableRow, dialect: type[csv.Dialect]) -> list[RowField]:
    """Split a row into cells with their positions.

    Where a row is not written as expected, all its cells are anchored at its beginning. A row of
    very many cells is none of a table, and stays a line of text.
    """
    if len(row.cells) > MAX_COLUMNS:
        return [RowField("", row.text.strip("\r\n"), row.origin, row.line)]
    fields = list(scan_cells(row, dialect.delimiter, dialect.quotechar or '"'))
    if [field.value for field in fields] == row.cells:
        return fields
    return [RowField("", cell, row.origin, row.line) for cell in row.cells]


def scan_cells(row: TableRow, delimiter: str, quote: str) -> Iterator[RowField]:
    """Yield the cells of a row; two quotes in quotes are one."""
    text = row.text.rstrip("\r\n")
    position, line, last_start = 0, row.line, 0
    while position <= len(text):
        start, shifts = position, list[tuple[int, int]]()
        if text.startswith(quote, position):
            start = position + 1
            end = text.find(quote, start)
            parts = [text[start:end] if end >= 0 else text[start:]]
            length = len(parts[0])
            while end >= 0 and text.startswith(quote, end + 1):  # an escaped quote
                after = text.find(quote, end + 2)
                shifts.append((length + 1, row.origin + end + 2))
                parts += [quote, text[end + 2 : after] if after >= 0 else text[end + 2 :]]
                length += len(quote) + len(parts[-1])
                end = after
            position, value = end + 1 if end >= 0 else len(text), "".join(parts)
        else:
            end = text.find(delimiter, position)
            position = end if end >= 0 else len(text)
            value = text[start:position]
        line += text.count("\n", last_start, start)
        last_start = start
        yield RowField("", value, row.origin + start, line, tuple(shifts))
        if not text.startswith(delimiter, position):
            return
        position += len(delimiter)


def detect_dialect(sample: str, suffix: str) -> type[csv.Dialect]:
    """Detect the column separator by the file's suffix or from a sample."""
    if suffix == ".tsv":
        return csv.excel_tab
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        return csv.excel
