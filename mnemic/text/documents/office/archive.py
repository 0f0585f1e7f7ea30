"""Zip files with XML inside, from strangers: nothing is unpacked to the disk or beyond a limit."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.parsers import expat

from mnemic.text.documents.piece import DocumentError

MOST = 100_000_000  # bytes of one member, unpacked
MANY = 10_000  # members

Start = Callable[[str, dict[str, str]], None]


@contextmanager
def opened(path: Path, kind: str) -> Iterator[zipfile.ZipFile]:
    """The archive; what is wrong with it becomes a ``DocumentError``."""
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MANY:
                raise DocumentError(f"it has more than {MANY:,} files in it; this is no {kind}")
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DocumentError(f"this is no {kind} that can be read: {error}") from None
    except RuntimeError as error:  # zipfile's word for a password
        raise DocumentError(f"it cannot be unpacked: {error}") from None


def member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file of the archive; an error if it is missing or unpacks to too much.

    What is really unpacked is counted, not what the archive says of itself.
    """
    try:
        with archive.open(name) as file:
            content = file.read(MOST + 1)
    except KeyError:
        raise DocumentError(f"there is no {name} in it") from None
    if len(content) > MOST:
        raise DocumentError(f"{name} unpacks to more than {MOST:,} bytes; this may be a zip bomb")
    return content


def parse(content: bytes, start: Start, end: Callable[[str], None] | None = None,
          text: Callable[[str], None] | None = None) -> None:  # fmt: skip
    """Walk through XML. Names come without their namespace; entities of its own are refused."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise DocumentError("its XML declares entities, which a document has no use for")

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, values: start(local(name), named(values))
    if end is not None:
        parser.EndElementHandler = lambda name: end(local(name))
    if text is not None:
        parser.CharacterDataHandler = text
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DocumentError(f"its XML is broken: {error}") from None


def local(name: str) -> str:
    return name.rpartition(" ")[2]


def named(values: dict[str, str]) -> dict[str, str]:
    return {local(key): value for key, value in values.items()}
