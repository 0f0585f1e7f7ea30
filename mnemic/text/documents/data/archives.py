"""Read archives (.zip, .tar): the names of their files; a .gz file is unpacked."""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import PurePath
from typing import Self

from mnemic.text.documents.data.rows import RowBuilder
from mnemic.text.documents.office.archive import MAX_MEMBERS, MAX_RATIO, open_archive
from mnemic.text.documents.piece import DocumentError, DocumentPart, MemberContent, Note, Source

MAX_UNPACKED_BYTES = 100_000_000  # of a .gz file; of a tar archive, plus some for each packed byte
MAX_HEADER_BYTES = 1_000_000  # of a name or of attributes in a tar archive
EXTENDED_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, *tarfile.GNU_TYPES)
_ERRORS = (tarfile.TarError, OSError, EOFError, zlib.error, LZMAError)


def read_archive(source: Source) -> Iterator[DocumentPart | MemberContent]:
    """List the files of an archive, one per line."""
    if source.suffix == ".zip":
        with open_archive(source.path, "zip archive") as archive:
            members = [info.filename for info in archive.infolist() if not info.is_dir()]
    elif source.suffix == ".gz" and not source.name.lower().endswith(".tar.gz"):
        yield from read_packed(source)
        return
    else:
        members = list_tar(source)
    yield from list_members(members)


def list_members(members: list[str]) -> Iterator[DocumentPart]:
    """Yield the names of files as text, and a note."""
    builder = RowBuilder()
    for number, name in enumerate(members, start=1):
        builder.add_line(" ".join(name.split()), builder.size, number)
        if builder.is_full:
            yield from builder.take_piece()
    yield from builder.take_piece()
    if members:
        yield Note(f"what it holds is listed, not read ({len(members):,} files); unpack it to remember them")


class SmallHeader(tarfile.TarInfo):
    """A header of a tar archive whose long names and attributes have a limit."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse a header, as ``tarfile`` calls it before it reads more."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in EXTENDED_HEADERS and header.size > MAX_HEADER_BYTES:
            raise DocumentError(f"a header of it has {header.size:,} bytes; this may be a bomb")
        return header


def list_tar(source: Source) -> list[str]:
    """List the files of a tar archive, packed or not."""
    members: list[str] = []
    bytes_left = MAX_UNPACKED_BYTES + MAX_RATIO * source.path.stat().st_size
    try:
        with source.path.open("rb") as file, tarfile.open(fileobj=file, mode="r|*", tarinfo=SmallHeader) as archive:
            for number, info in enumerate(archive):
                bytes_left -= info.size
                if bytes_left < 0:
                    raise DocumentError("it unpacks to far more bytes than it has; this may be a bomb")
                if info.isfile():
                    members.append(info.name)
                if number >= MAX_MEMBERS:
                    raise DocumentError(f"it has more than {MAX_MEMBERS:,} files in it")
    except _ERRORS as error:
        raise DocumentError(f"this is no tar archive that can be read: {error}") from None
    return members


def read_packed(source: Source) -> Iterator[MemberContent]:
    """Read the file that a .gz file was made of."""
    try:
        with gzip.open(source.path) as file:
            content = file.read(MAX_UNPACKED_BYTES + 1)
    except _ERRORS as error:
        raise DocumentError(f"this is no gzip file that can be read: {error}") from None
    if len(content) > MAX_UNPACKED_BYTES:
        raise DocumentError(f"it unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; this may be a bomb")
    yield MemberContent(PurePath(source.name).stem, content)
