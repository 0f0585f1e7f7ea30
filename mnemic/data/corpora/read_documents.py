"""List the files of a corpus, and read their documents in bounded memory.

Names end in ``.jsonl`` or ``.txt``, or in either followed by ``.gz`` or ``.xz``. In ``.jsonl`` a
line is a document: an object whose ``field`` is the text. In ``.txt`` a blank line ends a document,
as in BERT's own corpora; a file without blank lines is one document. Texts whose paragraphs are
separated by blank lines, such as novels, belong in ``.jsonl``. Blank documents are skipped.
"""

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

TEXT_SUFFIXES = (".jsonl", ".txt")
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}  # of compressed files
EXPECTED_NAME = "a name that ends in .jsonl or .txt, or in either followed by .gz or .xz"
MAX_DOCUMENT_BYTES = 64 * 2**20  # of one line or document: memory must be bounded
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)  # of damaged compressed files
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some programs put before utf-8
SURROGATE = re.compile("[\ud800-\udfff]")


class CorpusError(ValueError):
    """A corpus is wrong; the message says where, and what was expected."""


def text_suffix(path: Path) -> str | None:
    """Return ``.jsonl`` or ``.txt``, without compression suffix; None for other files."""
    inner = Path(path.stem) if path.suffix in OPENERS else path
    return inner.suffix if inner.suffix in TEXT_SUFFIXES else None


def list_files(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    """List the given files, and all text files below the given folders, sorted by name.

    In a folder, other files and those whose names start with a dot are skipped.
    """
    if isinstance(paths, str | Path):
        raise ValueError(f"paths is one path, {str(paths)!r}; expected several: [path]")
    files = [path for root in paths for path in list_below(Path(root).expanduser())]
    seen: set[Path] = set()
    for path in files:
        if (real := path.resolve()) in seen:
            raise CorpusError(f"{path} is named twice, by itself or by its folder; name it once")
        seen.add(real)
    if not files:
        raise CorpusError("a corpus needs at least one file or folder; none was named")
    return tuple(files)


def read_raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file with their line ends, and number them from 1."""
    number = 0
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as stream:
            while line := stream.readline(MAX_DOCUMENT_BYTES + 1):
                number += 1
                if len(line) > MAX_DOCUMENT_BYTES:
                    raise CorpusError(describe_too_long(path, number))
                yield number, line
    except READ_ERRORS as error:
        raise CorpusError(f"{path} cannot be read after line {number}: {error}; unpack or fetch it again") from error


def describe_too_long(path: Path, line: int) -> str:
    """Return the error message for a document that is too long."""
    return (
        f"{path}:{line}: the document is longer than {MAX_DOCUMENT_BYTES // 2**20} MiB; divide it, "
        "in .txt by blank lines"
    )


def list_below(path: Path) -> list[Path]:
    """List a file itself, or all visible text files of a folder."""
    if path.is_dir():
        text_files = (file for file in path.rglob("*") if file.is_file() and text_suffix(file))
        parts = {file: file.relative_to(path).parts for file in text_files}
        visible_files = [file for file in parts if not any(name.startswith(".") for name in parts[file])]
        if not visible_files:
            raise CorpusError(f"no corpus in the folder {path}; expected {EXPECTED_NAME}")
        return sorted(visible_files, key=lambda file: parts[file])
    if not path.is_file():
        raise CorpusError(f"no file or folder {path}")
    if text_suffix(path) is None:
        raise CorpusError(f"{path} is of no known form; expected {EXPECTED_NAME}")
    return [path]


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus in a fixed order, read lazily."""

    files: tuple[Path, ...]
    field: str = "text"  # of a .jsonl line

    @classmethod
    def from_paths(cls, paths: Iterable[Path | str], *, field: str = "text") -> "Corpus":
        """Make a corpus of the given files and of all files of the given folders."""
        return cls(list_files(paths), field)

    @property
    def fingerprint(self) -> str:
        """Hash the files' names and sizes."""
        names_and_sizes = [(path.name, path.stat().st_size) for path in self.files]
        return sha256(json.dumps(names_and_sizes).encode()).hexdigest()

    def read(self) -> Iterator[str]:
        """Read the texts of all documents lazily, in the order of the files."""
        for path in self.files:
            lines = ((number, decode_line(line, number, path)) for number, line in read_raw_lines(path))
            if text_suffix(path) == ".txt":
                yield from join_paragraphs(lines, path)
            else:
                texts = (
                    parse_json_line(line, self.field, f"{path}:{number}") for number, line in lines if line.strip()
                )
                yield from (text for text in texts if text.strip())


def parse_json_line(line: str, field: str, location: str) -> str:
    """Return the text of a JSON line, or raise a CorpusError."""
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise CorpusError(f"{location}: no JSON: {error}; expected one object a line") from error
    if not isinstance(record, dict) or not isinstance(record.get(field), str):
        received = sorted(record) if isinstance(record, dict) else type(record).__name__
        raise CorpusError(
            f"{location}: {received} came; expected an object whose {field!r} is a string (another name: field=…)"
        )
    text: str = record[field]
    if SURROGATE.search(text):
        raise CorpusError(f"{location}: the text holds half a surrogate pair; write it as utf-8")
    return text


def join_paragraphs(lines: Iterable[tuple[int, str]], path: Path) -> Iterator[str]:
    """Join lines to documents at blank lines."""
    paragraphs: list[str] = []
    first = size = 0
    for number, line in chain(lines, [(0, "")]):  # a blank line ends the last document
        if not line.strip():
            if paragraphs:
                yield "\n".join(paragraphs)
            paragraphs, size = [], 0
            continue
        first = first if paragraphs else number
        paragraphs.append(line.rstrip("\r\n"))
        size += len(line.encode())
        if size > MAX_DOCUMENT_BYTES:
            raise CorpusError(describe_too_long(path, first))


def decode_line(line: bytes, number: int, path: Path) -> str:
    """Decode a line as utf-8, without a byte order mark, or raise a CorpusError."""
    content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}:{number}: no utf-8: {error.reason} at byte {error.start} of the line; write the file as utf-8"
        ) from error
