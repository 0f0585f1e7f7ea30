"""Detect the encoding of a text file and open it without changing anything."""

import codecs
from pathlib import Path
from typing import TextIO

from mnemic.text.chinese import han_fraction
from mnemic.text.documents.piece import DocumentError
from mnemic.text.sentences import MIN_HAN_FRACTION

BLOCK_BYTES = 1 << 20
MAX_LINE_LENGTH = 10_000_000  # characters; a longer line is no text
BYTE_ORDER_MARKS = {  # longer marks first: that of UTF-32 begins like that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def detect_encoding(path: Path) -> str:
    """Detect a file's encoding: by its byte order mark, or by trial.

    Without a mark it is the first that decodes the whole file: UTF-8; GB 18030, if the text then
    looks Chinese; Windows-1252; else Latin-1.
    """
    with path.open("rb") as file:
        head = file.read(BLOCK_BYTES)
    for mark, name in BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return name
    if b"\0" in head:
        pairs = head[: len(head) // 2 * 2]
        for name, zeros in (("utf-16-le", pairs[1::2]), ("utf-16-be", pairs[0::2])):
            if zeros.count(0) > len(zeros) * 0.4:  # every second byte of Latin letters is zero
                return name
        raise DocumentError("this is no text: there are zero bytes in it")
    if can_decode(path, "utf-8"):
        return "utf-8"
    sample = head.decode("gb18030", "ignore")
    if han_fraction(sample) >= MIN_HAN_FRACTION and can_decode(path, "gb18030"):
        return "gb18030"
    return "cp1252" if can_decode(path, "cp1252") else "latin-1"


def can_decode(path: Path, encoding: str) -> bool:
    """Check whether the whole file can be decoded in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def open_text(path: Path, encoding: str = "") -> TextIO:
    """Open a file as text, keeping its line endings and dropping its byte order mark."""
    return path.open(encoding=encoding or detect_encoding(path), newline="")


def read_line(file: TextIO, number: int) -> str:
    """Read the next line with its line ending; empty at the end of the file.

    ``number`` is the line's number, for error messages.
    """
    try:
        line = file.readline(MAX_LINE_LENGTH)
    except UnicodeDecodeError as error:
        raise DocumentError(f"line {number} is not {error.encoding}: {error.reason}") from None
    if len(line) == MAX_LINE_LENGTH and not line.endswith("\n"):
        raise DocumentError(
            f"line {number} has more than {MAX_LINE_LENGTH:,} characters, which is no text; expected lines"
        )
    return line


def read_text(path: Path, max_characters: int, encoding: str = "") -> str:
    """Read a whole file; ``DocumentError`` if it has more than ``max_characters`` characters."""
    with open_text(path, encoding) as file:
        try:
            text = file.read(max_characters + 1)
        except UnicodeDecodeError as error:
            raise DocumentError(f"this is not {error.encoding}: {error.reason}") from None
    if len(text) > max_characters:
        raise DocumentError(f"more than {max_characters:,} characters, too many to be read at once")
    return text
