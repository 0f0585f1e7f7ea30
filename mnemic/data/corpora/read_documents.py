"""Documents from files, one after another, in bounded memory.

In ``.jsonl`` a line is a document: an object whose ``field`` is the text. In ``.txt`` a blank line
ends a document, as in BERT's own corpora; a file without blank lines is one document. Texts whose
paragraphs are parted by blank lines, such as novels, belong in ``.jsonl``. Blank documents are
passed over.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mnemic.data.corpora.document import CorpusError, Document, Place
from mnemic.data.corpora.files import MOST, Line, files_of, form_of, lines, too_long

MARK = b"\xef\xbb\xbf"  # which some programs put before utf-8
START = Place()

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Corpus:
    """Files in a fixed order; nothing is read before it is asked for, and nothing is kept."""

    files: tuple[Path, ...]
    field: str = "text"  # of a .jsonl line

    @classmethod
    def of(cls, paths: Iterable[Path | str], *, field: str = "text") -> "Corpus":
        """The corpus of these files, and of all files in these folders."""
        return cls(files_of(paths), field)

    @property
    def fingerprint(self) -> str:
        """The same for files of the same names and sizes: a place in others means nothing."""
        named = [(path.name, path.stat().st_size) for path in self.files]
        return sha256(json.dumps(named).encode()).hexdigest()

    def read(self, place: Place = START) -> Iterator[Document]:
        """All documents behind ``place``, to the end of the last file."""
        if place.file >= len(self.files):
            raise CorpusError(
                f"the place is in file {place.file + 1} of a corpus of {len(self.files)}; it was "
                "saved for other files"
            )
        number = place.number
        for file, path in enumerate(self.files[place.file :], start=place.file):
            for text, first, last in self._texts(path, place):
                number += 1
                yield Document(text, path, first, Place(file, last.after, last.number, number))
            place = START  # the next file is read from its beginning

    def _texts(self, path: Path, place: Place) -> Iterator[tuple[str, int, Line]]:
        """Each text with the number of its first line, and the line behind which to go on."""
        read = _unmarked(lines(path, offset=place.offset, number=place.line))
        if form_of(path) == ".txt":
            yield from _paragraphs(read, path)
            return
        for line in read:
            if line.content.strip() and (text := self._text(line, path)).strip():
                yield text, line.number, line

    def _text(self, line: Line, path: Path) -> str:
        where = f"{path}:{line.number}"
        try:
            content = json.loads(_decoded(line, path))
        except (json.JSONDecodeError, RecursionError) as error:
            raise CorpusError(f"{where}: no JSON: {error}; expected one object a line") from error
        if not isinstance(content, dict) or not isinstance(content.get(self.field), str):
            found = sorted(content) if isinstance(content, dict) else type(content).__name__
            raise CorpusError(
                f"{where}: {found} came; expected an object whose {self.field!r} is a string "
                "(another name: field=…)"
            )
        text: str = content[self.field]
        if _SURROGATE.search(text):
            raise CorpusError(f"{where}: the text holds half a surrogate pair; write it as utf-8")
        return text


def _unmarked(read: Iterator[Line]) -> Iterator[Line]:
    for line in read:
        if line.number == 1:
            yield line._replace(content=line.content.removeprefix(MARK))
        else:
            yield line


def _paragraphs(read: Iterator[Line], path: Path) -> Iterator[tuple[str, int, Line]]:
    held: list[str] = []
    first = size = 0
    line = Line(b"", 0, 0)
    for line in read:
        text = _decoded(line, path).rstrip("\r\n")
        if not text.strip():
            if held:
                yield "\n".join(held), first, line
            held, size = [], 0
            continue
        first = first if held else line.number
        held.append(text)
        size += len(line.content)
        if size > MOST:
            raise CorpusError(too_long(path, first))
    if held:
        yield "\n".join(held), first, line


def _decoded(line: Line, path: Path) -> str:
    try:
        return line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}:{line.number}: no utf-8: {error.reason} at byte {error.start} of the line; "
            "write the file as utf-8"
        ) from error
