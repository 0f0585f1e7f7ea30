"""Find out how a text file is encoded, and open it; nothing of it is changed or left out."""

import codecs
from pathlib import Path
from typing import TextIO

from mnemic.text.chinese import share_of_han
from mnemic.text.documents.piece import DocumentError
from mnemic.text.sentences import CHINESE_FROM

BLOCK = 1 << 20
LINE = 10_000_000  # characters; more on a line is no text
MARKS = {  # the longer one first: UTF-32 begins as UTF-16 does
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def encoding_of(path: Path) -> str:
    """By its mark, or as what it can be read without a fault: UTF-8, GB 18030, Windows-1252."""
    with path.open("rb") as file:
        head = file.read(BLOCK)
    for mark, name in MARKS.items():
        if head.startswith(mark):
            return name
    if b"\0" in head:
        pairs = head[: len(head) // 2 * 2]
        for name, zeros in (("utf-16-le", pairs[1::2]), ("utf-16-be", pairs[0::2])):
            if zeros.count(0) > len(zeros) * 0.4:  # Latin letters have a zero in one of two bytes
                return name
        raise DocumentError("this is no text: there are zero bytes in it")
    if decodes(path, "utf-8"):
        return "utf-8"
    sample = head.decode("gb18030", "ignore")
    if share_of_han(sample) >= CHINESE_FROM and decodes(path, "gb18030"):
        return "gb18030"
    return "cp1252" if decodes(path, "cp1252") else "latin-1"


def decodes(path: Path, encoding: str) -> bool:
    """Whether the whole file can be read in this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def open_text(path: Path, encoding: str = "") -> TextIO:
    """The file as text, its line ends as they are; characters are counted without a mark."""
    return path.open(encoding=encoding or encoding_of(path), newline="")


def next_line(file: TextIO, number: int) -> str:
    """The next line with its end, empty at the end of the file; ``number`` is for the error."""
    try:
        line = file.readline(LINE)
    except UnicodeDecodeError as error:
        raise DocumentError(f"line {number} is not {error.encoding}: {error.reason}") from None
    if len(line) == LINE and not line.endswith("\n"):
        raise DocumentError(
            f"line {number} has more than {LINE:,} characters, which is no text; expected lines"
        )
    return line


def whole_text(path: Path, most: int, encoding: str = "") -> str:
    """All of a file that is read at once; an error if it has more than ``most`` characters."""
    with open_text(path, encoding) as file:
        try:
            text = file.read(most + 1)
        except UnicodeDecodeError as error:
            raise DocumentError(f"this is not {error.encoding}: {error.reason}") from None
    if len(text) > most:
        raise DocumentError(f"more than {most:,} characters, too many to be read at once")
    return text
