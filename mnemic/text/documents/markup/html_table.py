"""Name the columns of HTML tables in each row: ``Name: Anna; Age: 12``."""

import re

from mnemic.text.documents.rewrite import Layout

MAX_ROW_LENGTH = 1000  # characters; a longer row has several units
MAX_CELL_LENGTH = 200  # of a cell that goes on after a paragraph; a longer one lays out a page
LAYOUT_TAGS = {"h1", "h2", "h3", "h4", "h5", "h6", "table"}  # which no table of data has in its cells
_SPAN = re.compile(r"(col|row)span\s*=\s*[\"']?\s*(\d{1,4})", re.IGNORECASE)


class HTMLTable:
    """The columns of a table, and the row that is being read."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.has_columns = True  # False: a cell that spans rows moved them
        self.row_start = -1  # in the text; -1: outside a row
        self.is_cell_open = False
        self.is_data = True  # False: the row lays out a page
        self.headers: list[list[str]] = []  # words of the row's header cells
        self.num_cells = 0
        self.column = 0  # of the next cell
        self.name = ""  # of the cell's column, until its first word
        self.is_header = self.was_header = False
        self.has_words = self.is_first = False

    def begin_row(self, size: int) -> None:
        """Begin a row after ``size`` characters of text."""
        self.end_row()
        self.row_start, self.is_data = size, True

    def end_row(self) -> None:
        """End the row; one of header cells alone names the columns."""
        if self.headers and len(self.headers) == self.num_cells and self.num_cells > 1 and self.has_columns:
            self.columns = [" ".join("".join(words).split()) for words in self.headers]
        self.row_start, self.headers, self.num_cells, self.column = -1, [], 0, 0
        self.is_cell_open = self.is_header = self.has_words = self.is_first = False
        self.name = ""

    def begin_cell(self, is_header: bool, tag: str) -> None:
        """Begin a cell; ``tag`` is its start tag."""
        spans = {match[1].lower(): int(match[2]) for match in _SPAN.finditer(tag)}
        if spans.get("row", 1) > 1:
            self.columns, self.has_columns = [], False
        width = max(spans.get("col", 1), 1)
        is_named = not is_header and width == 1 and self.column < len(self.columns)
        self.name = self.columns[self.column] if is_named else ""
        self.was_header, self.is_header = self.is_header, is_header
        if is_header:
            self.headers += [[]] * width if width == 1 else [[] for _ in range(width)]
        self.column += width
        self.num_cells += width
        self.is_cell_open, self.is_first = True, True

    def holds_cell(self, name: str, size: int) -> bool:
        """Return whether a tag is inside a cell of data, and ends no block."""
        if self.row_start < 0 or not self.is_cell_open or name in ("tr", "thead", "tbody", "tfoot"):
            return False
        if name in LAYOUT_TAGS or size - self.row_start > MAX_CELL_LENGTH:
            self.is_data = False
        return self.is_data

    def separator(self) -> str:
        """Return what stands between the cell before and the first word of this one."""
        is_first, self.is_first = self.is_first, False
        if not is_first or not self.is_data or not self.has_words:
            self.has_words = True
            return ""
        if self.was_header and not self.is_header and not self.name:
            return ":"
        return ";" if self.columns else ""

    def pop_name(self) -> str:
        """Return the name of the cell's column before its first word, else nothing."""
        name, self.name = self.name if self.is_data else "", ""
        self.has_words = True
        return name

    def add_words(self, words: str) -> None:
        """Add words to the header cell, if this is one."""
        if self.is_header and self.headers:
            self.headers[-1].append(f"{words} ")

    def choose_layout(self, size: int, layout: Layout) -> Layout:
        """Return the layout of a block: a short row of data is a unit."""
        if self.row_start >= 0 and self.is_data:
            return "unit" if size - self.row_start <= MAX_ROW_LENGTH else "flow"
        return layout
