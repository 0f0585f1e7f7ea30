"""Read zip files with XML from untrusted sources, in memory and within limits."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from xml.parsers import expat

from mnemic.text.documents.piece import DocumentError

MAX_MEMBER_BYTES = 100_000_000  # unpacked size of one member
MAX_MEMBERS = 10_000
BLOCK_BYTES = 1 << 16  # of XML that is parsed at once


@contextmanager
def open_archive(path: Path, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; errors become ``DocumentError``."""
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise DocumentError(f"it has more than {MAX_MEMBERS:,} files in it; this is no {kind}")
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DocumentError(f"this is no {kind} that can be read: {error}") from None
    except RuntimeError as error:  # zipfile raises it for a password
        raise DocumentError(f"it cannot be unpacked: {error}") from None


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a file of the archive; ``DocumentError`` if it is missing or too large.

    The limit counts the bytes actually unpacked, not the size that the archive declares.
    """
    try:
        with archive.open(name) as file:
            content = file.read(MAX_MEMBER_BYTES + 1)
    except KeyError:
        raise DocumentError(f"there is no {name} in it") from None
    if len(content) > MAX_MEMBER_BYTES:
        raise DocumentError(f"{name} unpacks to more than {MAX_MEMBER_BYTES:,} bytes; this may be a zip bomb")
    return content


class XMLEvent(NamedTuple):
    """The start or end of an element, or text; names are without their namespace."""

    kind: Literal["start", "end", "text"]
    name: str  # of the element; of "text": the text itself
    attributes: Mapping[str, str] = {}


def parse_xml(content: bytes) -> Iterator[XMLEvent]:
    """Yield the events of an XML file; entity declarations are refused."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    events: list[XMLEvent] = []

    def refuse(*_: object) -> None:
        raise DocumentError("its XML declares entities, which a document has no use for")

    def on_start(name: str, attributes: dict[str, str]) -> None:
        local = {local_name(key): value for key, value in attributes.items()}
        events.append(XMLEvent("start", local_name(name), local))

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = on_start
    parser.EndElementHandler = lambda name: events.append(XMLEvent("end", local_name(name)))
    parser.CharacterDataHandler = lambda text: events.append(XMLEvent("text", text))
    try:
        for start in range(0, len(content) + 1, BLOCK_BYTES):
            parser.Parse(content[start : start + BLOCK_BYTES], start + BLOCK_BYTES > len(content))
            yield from events
            events.clear()
    except expat.ExpatError as error:
        raise DocumentError(f"its XML is broken: {error}") from None


def local_name(name: str) -> str:
    """Remove the namespace from a name."""
    return name.rpartition(" ")[2]
