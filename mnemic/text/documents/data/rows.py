"""Build the text of rows, ``Name: value; Name: value``, with anchors into the file."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentPiece

UnitFinder = Callable[[str], Iterable[int]]  # text → ends of its units


class RowField(NamedTuple):
    """A named value of a row, with its position in the file.

    ``shifts`` are positions in the value and in the file that follow an escape.
    """

    name: str
    value: str
    origin: int
    line: int
    shifts: tuple[tuple[int, int], ...] = ()


class RowBuilder:
    """Collect rows, each a unit, until they make a piece.

    Values are anchored where they stand in the file, names at the beginning of their row. Between
    two fields there are as many line breaks as in the file.
    """

    def __init__(self, page: int | None = None) -> None:
        self.page = page
        self.start()

    def start(self) -> None:
        """Begin a piece."""
        self.parts: list[str] = []
        self.size = 0
        self.anchors: list[Anchor] = []
        self.cuts: list[int] = []

    @property
    def is_full(self) -> bool:
        """Whether the rows are enough for a piece."""
        return self.size >= MIN_PIECE_LENGTH

    def add_row(self, fields: Iterable[RowField], origin: int) -> None:
        """Add a row that begins at ``origin``; fields of one name share it."""
        last: RowField | None = None
        for field in fields:
            gap = self.find_gap(last, field)
            is_same = last is not None and last.name == field.name
            name = f"{field.name}: " if field.name and not is_same else ""
            if last is not None:
                self.append_text(("," if is_same and field.name else ";") + gap, Anchor(self.size, origin, last.line))
            if name:
                self.append_text(name, Anchor(self.size, origin, field.line))
            self.append_value(field)
            last = field
        if last is not None:
            self.end_unit()

    @staticmethod
    def find_gap(last: RowField | None, field: RowField) -> str:
        """Return the white space between two fields: a blank, or the file's line breaks."""
        if last is None:
            return ""
        return "\n" * max(field.line - last.line - last.value.count("\n"), 0) or " "

    def append_value(self, field: RowField) -> None:
        """Append a value, anchored at its beginning and after each escape."""
        start = self.size
        shifts = [shift for shift in field.shifts if shift[0] < len(field.value)]
        self.append_text(field.value, Anchor(start, field.origin, field.line))
        line, last = field.line, 0
        for position, origin in shifts:
            line += field.value.count("\n", last, position)
            last = position
            self.anchors.append(Anchor(start + position, origin, line))

    def add_block(self, fields: Sequence[RowField], find_ends: UnitFinder) -> None:
        """Add the values of fields as one text, whose units ``find_ends`` finds."""
        start = self.size
        text = "".join(field.value for field in fields)
        if text.strip():
            for field in fields:
                self.append_value(field)
            self.end_unit()
            self.cuts[-1:] = [start + end for end in find_ends(text + "\n")]

    def add_line(self, text: str, origin: int, line: int) -> None:
        """Add a line of text, such as a heading, as a unit."""
        if text.strip():
            self.append_text(text.strip(), Anchor(self.size, origin, line))
            self.end_unit()

    def append_text(self, text: str, anchor: Anchor) -> None:
        """Append a text with its anchor."""
        if text:
            self.anchors.append(anchor)
            self.parts.append(text)
            self.size += len(text)

    def end_unit(self) -> None:
        """End a unit by a line break."""
        self.parts.append("\n")
        self.size += 1
        self.cuts.append(self.size)

    def take_piece(self) -> list[DocumentPiece]:
        """Return the rows so far as a piece and begin the next one."""
        pieces = [DocumentPiece("".join(self.parts), tuple(self.anchors), self.page, tuple(self.cuts))]
        if not self.size:
            pieces = []
        self.start()
        return pieces


def name_cells(names: Sequence[str], cells: Iterable[RowField]) -> list[RowField]:
    """Give each cell that is not blank the name of its column."""
    named = [cell._replace(name=name) for cell, name in zip(cells, chain(names, repeat("")))]
    filled = [cell for cell in named if cell.value.strip()]
    if not any(names) and len(filled) == 2 and not filled[0].shifts:  # a row such as "Rent", "700"
        return [filled[1]._replace(name=filled[0].value.strip().rstrip(":"))]
    return filled
