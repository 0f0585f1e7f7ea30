"""Tables (.csv, .tsv): each row, as it stands in the file, is a sentence."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from mnemic.text.documents.encoding import LINE, next_line, open_text
from mnemic.text.documents.piece import PIECE, Anchor, DocumentError, Part, Piece


class Rows:
    """The lines of a file, for ``csv``, which takes as many as a row needs."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.held = ""
        self.number = 1  # of the next line

    def __iter__(self) -> "Rows":
        return self

    def __next__(self) -> str:
        line = next_line(self.file, self.number)
        if not line:
            raise StopIteration
        self.number += 1
        self.held += line
        if len(self.held) > LINE:
            raise DocumentError(f"a row that ends at line {self.number - 1} has no end in sight")
        return line


def read_table(path: Path) -> Iterator[Part]:
    csv.field_size_limit(LINE)
    with open_text(path) as file:
        dialect = dialect_of(file.read(PIECE), path)
        file.seek(0)
        rows = Rows(file)
        text, cuts, origin, first = "", [], 0, 1
        try:
            for _ in csv.reader(rows, dialect):
                text, rows.held = text + rows.held, ""
                cuts.append(len(text))
                if len(text) >= PIECE:
                    yield Piece(text, (Anchor(0, origin, first),), cuts=tuple(cuts))
                    text, cuts, origin, first = "", [], origin + len(text), rows.number
        except csv.Error as error:
            raise DocumentError(f"line {rows.number}: {error}") from None
    if text.strip():
        yield Piece(text, (Anchor(0, origin, first),), cuts=tuple(cuts))


def dialect_of(sample: str, path: Path) -> type[csv.Dialect]:
    """What separates columns: by the file's name, or as its beginning looks."""
    if path.suffix.lower() == ".tsv":
        return csv.excel_tab
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        return csv.excel
