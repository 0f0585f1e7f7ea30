"""Read the documents of a corpus one by one, in bounded memory.

In ``.jsonl`` a line is a document: an object whose ``field`` is the text. In ``.txt`` a blank line
ends a document, as in BERT's own corpora; a file without blank lines is one document. Texts whose
paragraphs are separated by blank lines, such as novels, belong in ``.jsonl``. Blank documents are
skipped.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mnemic.data.corpora.document import CorpusDocument, CorpusError, ReadPosition
from mnemic.data.corpora.files import (
    MAX_DOCUMENT_BYTES,
    Line,
    describe_too_long,
    list_files,
    read_raw_lines,
    text_suffix,
)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some programs put before utf-8
FIRST_POSITION = ReadPosition()

_SURROGATE = re.compile("[\ud800-\udfff]")


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
        """Hash the files' names and sizes; a position is valid for one fingerprint only."""
        names_and_sizes = [(path.name, path.stat().st_size) for path in self.files]
        return sha256(json.dumps(names_and_sizes).encode()).hexdigest()

    def read(self, position: ReadPosition = FIRST_POSITION) -> Iterator[CorpusDocument]:
        """Read all documents from ``position`` to the end of the last file."""
        if position.file >= len(self.files):
            raise CorpusError(
                f"the position is in file {position.file + 1} of a corpus of {len(self.files)}; it "
                "was saved for other files"
            )
        num_documents = position.num_documents
        for file, path in enumerate(self.files[position.file :], start=position.file):
            for text, first, last in self._read_texts(path, position):
                num_documents += 1
                yield CorpusDocument(
                    text, path, first, ReadPosition(file, last.next_offset, last.number, num_documents)
                )
            position = FIRST_POSITION  # the next file is read from its beginning

    def _read_texts(self, path: Path, position: ReadPosition) -> Iterator[tuple[str, int, Line]]:
        """Read each text of a file, with its first line's number and its last line."""
        lines = (
            line._replace(content=line.content.removeprefix(BYTE_ORDER_MARK)) if line.number == 1 else line
            for line in read_raw_lines(path, offset=position.offset, num_lines=position.line)
        )
        if text_suffix(path) == ".txt":
            yield from _join_paragraphs(lines, path)
            return
        for line in lines:
            if line.content.strip() and (text := self._parse_json_line(line, path)).strip():
                yield text, line.number, line

    def _parse_json_line(self, line: Line, path: Path) -> str:
        """Return the text of a JSON line, or raise a CorpusError."""
        location = f"{path}:{line.number}"
        try:
            record = json.loads(_decode_line(line, path))
        except (json.JSONDecodeError, RecursionError) as error:
            raise CorpusError(f"{location}: no JSON: {error}; expected one object a line") from error
        if not isinstance(record, dict) or not isinstance(record.get(self.field), str):
            received = sorted(record) if isinstance(record, dict) else type(record).__name__
            raise CorpusError(
                f"{location}: {received} came; expected an object whose {self.field!r} is a string "
                "(another name: field=…)"
            )
        text: str = record[self.field]
        if _SURROGATE.search(text):
            raise CorpusError(f"{location}: the text holds half a surrogate pair; write it as utf-8")
        return text


def _join_paragraphs(lines: Iterator[Line], path: Path) -> Iterator[tuple[str, int, Line]]:
    """Join lines to documents at blank lines; yield as ``_read_texts`` does."""
    paragraphs: list[str] = []
    first = size = 0
    line = Line(b"", 0, 0)
    for line in lines:
        text = _decode_line(line, path).rstrip("\r\n")
        if not text.strip():
            if paragraphs:
                yield "\n".join(paragraphs), first, line
            paragraphs, size = [], 0
            continue
        first = first if paragraphs else line.number
        paragraphs.append(text)
        size += len(line.content)
        if size > MAX_DOCUMENT_BYTES:
            raise CorpusError(describe_too_long(path, first))
    if paragraphs:
        yield "\n".join(paragraphs), first, line


def _decode_line(line: Line, path: Path) -> str:
    """Decode a line as utf-8, or raise a CorpusError."""
    try:
        return line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}:{line.number}: no utf-8: {error.reason} at byte {error.start} of the line; write the file as utf-8"
        ) from error
