"""Read spreadsheets (.xlsx, .xls, .ods): a row is a unit that names its columns.

A sheet is a page, a row of it a line; offsets count characters of the text that is read.
"""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from mnemic.text.documents.data.header import NUM_SAMPLE_ROWS, is_header
from mnemic.text.documents.data.rows import RowBuilder
from mnemic.text.documents.office.archive import open_archive
from mnemic.text.documents.office.blocks import format_row
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source

ZIP_MAGIC = b"PK"
MAX_HEADER_ROW = 10  # rows before the names of the columns


def read_sheets(source: Source) -> Iterator[DocumentPart]:
    """Read each sheet of a workbook: its name, then its rows."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ModuleNotFoundError:
        raise DocumentError("a spreadsheet; pip install 'mnemic[office]' reads it") from None
    with source.path.open("rb") as file:
        if file.read(2) == ZIP_MAGIC:
            with open_archive(source.path, "spreadsheet"):  # checks that it is no bomb
                pass
        file.seek(0)
        try:
            book = CalamineWorkbook.from_filelike(file)
            for number, name in enumerate(book.sheet_names, start=1):
                sheet = book.get_sheet_by_name(name)
                rows = sheet.to_python(skip_empty_area=True)
                first_line = (sheet.start or (0, 0))[0] + 1
                texts = [[format_cell(cell) for cell in row] for row in rows]
                yield from read_sheet(name, texts, first_line, number if len(book.sheet_names) > 1 else None)
        except CalamineError as error:
            if "assword" in str(error):
                raise DocumentError("it is locked with a password; remember a copy without one") from None
            raise DocumentError(f"this is no spreadsheet that can be read: {error}") from None


def read_sheet(name: str, rows: list[list[str]], first_line: int, page: int | None) -> Iterator[DocumentPart]:
    """Read the rows of a sheet; after a blank row another table may begin."""
    builder, origin = RowBuilder(page), 0
    names: list[str] = []
    columns: list[int] = []  # that are filled in the table
    is_open = False  # whether the rows before belong to a table
    for number, row in enumerate(rows):
        filled = [column for column, cell in enumerate(row) if cell]
        if not filled:
            is_open = False
            continue
        if not builder.size and not origin:
            builder.add_line(name, 0, first_line + number)
        text = "; ".join(row[column] for column in filled)
        is_new = not is_open and not set(filled) <= set(columns)
        if (is_new or not names) and len(filled) > 1 and is_header(take_table(rows, number, filled)):
            names, columns = list(row), filled
        elif is_new:
            names, columns = [], filled
            text = format_row(names, row)
        else:
            text = format_row(names, row)
        is_open = len(filled) > 1
        builder.add_line(text, origin + builder.size, first_line + number)
        if builder.is_full:
            origin += builder.size
            yield from builder.take_piece()
    yield from builder.take_piece()


def take_table(rows: list[list[str]], number: int, columns: list[int]) -> list[list[str]]:
    """Return the given columns of some rows, down to a blank one."""
    table: list[list[str]] = []
    for row in rows[number : number + NUM_SAMPLE_ROWS]:
        if not any(row):
            break
        table.append([row[column] for column in columns])
    return table


def format_cell(value: Any) -> str:
    """Format the value of a cell; a date at midnight has no time."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value:.10g}" if abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, (date, time, timedelta)):
        return str(value)
    return " ".join(str(value).split())
