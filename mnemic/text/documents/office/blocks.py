"""Build pieces from the blocks of a document: headings, paragraphs and tables.

A block is a line of the text; offsets count characters of that text.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from mnemic.text.documents.data.header import NUM_SAMPLE_ROWS, is_header
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentPiece
from mnemic.text.documents.units import find_unit_ends


class Block(NamedTuple):
    """A heading, a paragraph or a table row, with its page or slide."""

    kind: Literal["heading", "paragraph", "row"]
    text: str
    page: int | None = None


def build_pieces(blocks: Iterable[Block]) -> Iterator[DocumentPiece]:
    """Join blocks as lines of pieces; a piece has one page."""
    parts, cuts, size, origin, line, page = list[str](), list[int](), 0, 0, 1, None
    for block in blocks:
        if parts and (block.page != page or size >= MIN_PIECE_LENGTH):
            text = "".join(parts)
            if text.strip():
                yield DocumentPiece(text, (Anchor(0, origin, line),), page, tuple(cuts))
            origin, line = origin + size, line + text.count("\n")
            parts, cuts, size = [], [], 0
        page = block.page
        text = block.text.rstrip() + "\n"
        cuts += [size + end for end in find_unit_ends(text)] if block.kind == "paragraph" else [size + len(text)]
        parts.append(text)
        size += len(text)
    if "".join(parts).strip():
        yield DocumentPiece("".join(parts), (Anchor(0, origin, line),), page, tuple(cuts))


def name_rows(rows: Sequence[Sequence[str]], page: int | None) -> Iterator[Block]:
    """Yield the rows of a table, each value with the name of its column."""
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    rows = [row for row in rows if any(row)]
    names = rows[0] if rows and is_header(rows[:NUM_SAMPLE_ROWS]) else []
    if names:
        yield Block("row", "; ".join(filter(None, names)), page)
    for row in rows[bool(names) :]:
        yield Block("row", format_row(names, row), page)


def format_row(names: Sequence[str], cells: Sequence[str]) -> str:
    """Format a row as ``Name: value; Name: value``; without names, two cells are a pair.

    >>> format_row(["Item", "Price"], ["Tea", "3.50"]), format_row([], ["Rent", "700"])
    ('Item: Tea; Price: 3.50', 'Rent: 700')
    """
    filled = [(names[number] if number < len(names) else "", cell) for number, cell in enumerate(cells) if cell]
    if not any(names) and len(filled) == 2:
        return f"{filled[0][1].rstrip(':')}: {filled[1][1]}"
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in filled)


def find_line_blocks(lines: list[str]) -> Iterator[Block]:
    """Yield lines as paragraphs; those whose cells end in ``|`` are rows of tables."""
    table: list[list[str]] = []
    for line in [*lines, ""]:
        if line.endswith("|") and line.count("|") > 1:
            table.append(line[:-1].split("|"))
            continue
        yield from name_rows(table, None)
        table = []
        yield Block("paragraph", line)


class BlockBuilder:
    """Collect text into paragraphs, and paragraphs of table cells into rows."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.text: list[str] = []
        self.page: int | None = None
        self.tables: list[list[list[str]]] = []  # open tables: rows of cells

    def add_text(self, text: str) -> None:
        """Add text to the paragraph."""
        self.text.append(text)

    def end_paragraph(self, kind: Literal["heading", "paragraph"] = "paragraph") -> None:
        """End a paragraph; in a table it belongs to the cell."""
        text = "".join(self.text)
        self.text = []
        if self.tables:
            if self.tables[-1] and self.tables[-1][-1]:
                self.tables[-1][-1][-1] += f" {text}"
        else:
            self.blocks.append(Block(kind, text, self.page))

    def start_table(self) -> None:
        self.tables.append([])

    def start_row(self) -> None:
        if self.tables:
            self.tables[-1].append([])

    def start_cell(self) -> None:
        if self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")

    def end_table(self) -> None:
        """End a table; one inside a cell is text of the cell."""
        if not self.tables:
            return
        rows = self.tables.pop()
        if self.tables:
            if self.tables[-1] and self.tables[-1][-1]:
                self.tables[-1][-1][-1] += " " + "; ".join(cell.strip() for row in rows for cell in row)
        else:
            self.blocks += name_rows(rows, self.page)
