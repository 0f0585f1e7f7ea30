"""Read tables (.csv, .tsv): each row, as written in the file, is a sentence."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from mnemic.text.documents.encoding import MAX_LINE_LENGTH, open_text, read_line
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentError, DocumentPart, DocumentPiece


class CSVLines:
    """The lines of a file for ``csv.reader``, recording the source text of each row."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.row_text = ""
        self.number = 1  # of the next line

    def __iter__(self) -> "CSVLines":
        return self

    def __next__(self) -> str:
        line = read_line(self.file, self.number)
        if not line:
            raise StopIteration
        self.number += 1
        self.row_text += line
        if len(self.row_text) > MAX_LINE_LENGTH:
            raise DocumentError(f"a row that ends at line {self.number - 1} has no end in sight")
        return line


def read_table(path: Path) -> Iterator[DocumentPart]:
    """Read a table in pieces of whole rows."""
    csv.field_size_limit(MAX_LINE_LENGTH)
    with open_text(path) as file:
        dialect = detect_dialect(file.read(MIN_PIECE_LENGTH), path)
        file.seek(0)
        rows = CSVLines(file)
        text, cuts, origin, first_line = "", [], 0, 1
        try:
            for _ in csv.reader(rows, dialect):
                text, rows.row_text = text + rows.row_text, ""
                cuts.append(len(text))
                if len(text) >= MIN_PIECE_LENGTH:
                    yield DocumentPiece(text, (Anchor(0, origin, first_line),), cuts=tuple(cuts))
                    text, cuts, origin, first_line = "", [], origin + len(text), rows.number
        except csv.Error as error:
            raise DocumentError(f"line {rows.number}: {error}") from None
    if text.strip():
        yield DocumentPiece(text, (Anchor(0, origin, first_line),), cuts=tuple(cuts))


def detect_dialect(sample: str, path: Path) -> type[csv.Dialect]:
    """Detect the column separator by the file's suffix or from a sample."""
    if path.suffix.lower() == ".tsv":
        return csv.excel_tab
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        return csv.excel
