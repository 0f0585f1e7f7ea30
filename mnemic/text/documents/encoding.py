"""Detect the encoding of a text file and open it without changing anything."""

import codecs
from pathlib import Path
from typing import TextIO

from mnemic.text.chinese import han_fraction
from mnemic.text.documents.piece import DocumentError
from mnemic.text.sentences import MIN_HAN_FRACTION

BLOCK_BYTES = 1 << 20
MAX_LINE_LENGTH = 10_000_000  # characters; a longer line is no text
NO_CHARACTER_SETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
BYTE_ORDER_MARKS = {  # longer marks first: that of UTF-32 begins like that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

# What a file is that is no text, by its first bytes.
SIGNATURES = {
    b"%PDF-": "a PDF",
    b"7z\xbc\xaf": "a 7z archive",
    b"BZh": "a bzip2 file",
    b"GIF8": "a GIF picture",
    b"ID3": "an MP3 recording",
    b"II*\0": "a TIFF picture",
    b"MM\0*": "a TIFF picture",
    b"MZ": "a program for Windows",
    b"OggS": "an Ogg recording",
    b"PK\x03\x04": "a zip archive, or a document of an office program",
    b"RIFF": "a recording, a film or a WebP picture",
    b"Rar!": "a RAR archive",
    b"SQLite format 3": "a SQLite database",
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"\x7fELF": "a program",
    b"\x89PNG": "a PNG picture",
    b"\xd0\xcf\x11\xe0": "a document of an older office program",
    b"\xfd7zXZ": "an xz file",
    b"\xff\xd8\xff": "a JPEG picture",
}


def describe_binary(head: bytes) -> str:
    """Say what a file is that begins with these bytes and is no text."""
    names = (name for signature, name in SIGNATURES.items() if head.startswith(signature))
    return next(names, "data of an unknown kind")


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
        raise DocumentError(f"this is no text but {describe_binary(head)}")
    if can_decode(path, "utf-8"):
        return "utf-8"
    sample = head.decode("gb18030", "ignore")
    if han_fraction(sample) >= MIN_HAN_FRACTION and can_decode(path, "gb18030"):
        return "gb18030"
    return "cp1252" if can_decode(path, "cp1252") else "latin-1"


def find_encoding(name: str) -> str:
    """Return the character set that a file declares; UTF-8 if it is none.

    Python has codecs of other sorts, too, of which some take quadratic time.
    """
    try:
        b"a".decode(name, "replace")
        return "utf-8" if codecs.lookup(name).name in NO_CHARACTER_SETS else name
    except (LookupError, ValueError):  # unknown, or of no text
        return "utf-8"


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
