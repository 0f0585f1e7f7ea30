"""Read zip files with XML from untrusted sources, in memory and within limits."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.parsers import expat

from mnemic.text.documents.piece import DocumentError

MAX_MEMBER_BYTES = 100_000_000  # unpacked size of one member
MAX_MEMBERS = 10_000

StartHandler = Callable[[str, dict[str, str]], None]


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


def parse_xml(content: bytes, on_start: StartHandler, on_end: Callable[[str], None] | None = None,
          on_text: Callable[[str], None] | None = None) -> None:  # fmt: skip
    """Parse XML with callbacks; names lose their namespace, entity declarations are refused."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise DocumentError("its XML declares entities, which a document has no use for")

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, values: on_start(local_name(name), strip_namespaces(values))
    if on_end is not None:
        parser.EndElementHandler = lambda name: on_end(local_name(name))
    if on_text is not None:
        parser.CharacterDataHandler = on_text
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DocumentError(f"its XML is broken: {error}") from None


def local_name(name: str) -> str:
    """Remove the namespace from a name."""
    return name.rpartition(" ")[2]


def strip_namespaces(attributes: dict[str, str]) -> dict[str, str]:
    """Remove the namespaces from attribute names."""
    return {local_name(key): value for key, value in attributes.items()}
