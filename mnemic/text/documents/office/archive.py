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
MAX_UNPACKED_BYTES = 10_000_000  # of all members together, plus these for each packed byte:
MAX_RATIO = 100
HEADER_BYTES = 30  # before the name of a member, at least
OLE_MAGIC = b"\xd0\xcf\x11\xe0"  # of old office files, and of new ones that are encrypted
BLOCK_BYTES = 1 << 16  # of XML that is parsed at once


@contextmanager
def open_archive(path: Path, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; errors become ``DocumentError``."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive.infolist(), kind, path.stat().st_size)
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        with path.open("rb") as file:
            if file.read(len(OLE_MAGIC)) == OLE_MAGIC:
                raise DocumentError("it is locked with a password; remember a copy without one") from None
        raise DocumentError(f"this is no {kind} that can be read: {error}") from None
    except RuntimeError as error:  # zipfile raises it for a password
        raise DocumentError(f"it cannot be unpacked: {error}") from None


def check_members(members: list[zipfile.ZipInfo], kind: str, packed_bytes: int) -> None:
    """Raise ``DocumentError`` for too many members, overlapping ones, or a zip bomb.

    Nothing is unpacked for it: no member unpacks to more than the archive declares.
    """
    if len(members) > MAX_MEMBERS:
        raise DocumentError(f"it has more than {MAX_MEMBERS:,} files in it; this is no {kind}")
    max_bytes = MAX_UNPACKED_BYTES + MAX_RATIO * packed_bytes
    if (num_bytes := sum(member.file_size for member in members)) > max_bytes:
        raise DocumentError(
            f"{packed_bytes:,} bytes would unpack to {num_bytes:,}, more than {max_bytes:,}; this may be a zip bomb"
        )
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise DocumentError(f"its files overlap ({member.filename[:60]}); this may be a zip bomb")
        end = member.header_offset + HEADER_BYTES + member.compress_size


def has_member(archive: zipfile.ZipFile, name: str) -> bool:
    """Return whether a file is in the archive."""
    try:
        archive.getinfo(name)
    except KeyError:
        return False
    return True


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
        plain_first = sorted(attributes.items(), key=lambda item: " " in item[0])  # r:id wins over id
        local = {local_name(key): value for key, value in plain_first}
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
