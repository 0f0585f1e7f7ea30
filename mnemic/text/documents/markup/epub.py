"""Read EPUB books: the parts of their spine, in reading order, each as HTML.

A part's number stands for the page; offsets count characters of that part's source.
"""

import posixpath
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from mnemic.text.documents.markup.html import parse_html
from mnemic.text.documents.office.archive import open_archive, parse_xml, read_member
from mnemic.text.documents.office.docx import read_title
from mnemic.text.documents.piece import DocumentError, DocumentPart, Note, Title

CONTAINER = "META-INF/container.xml"


def read_epub(path: Path) -> Iterator[DocumentPart]:
    """Read a book: its title, then each part; a missing part becomes a note."""
    with open_archive(path, "EPUB book") as archive:
        package = find_package(read_member(archive, CONTAINER))
        content = read_member(archive, package)
        yield from read_title(content)
        member_names = set(archive.namelist())
        for number, name in enumerate(read_spine(content), start=1):
            member_path = posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(name)))
            if member_path not in member_names:
                yield Note(f"part {number} ({member_path}) is missing")
                continue
            source = read_member(archive, member_path).decode("utf-8-sig", "replace")
            yield from (
                document_part for document_part in parse_html(source, number) if not isinstance(document_part, Title)
            )


def find_package(content: bytes) -> str:
    """Find the path of the book's package file in its container file."""
    paths: list[str] = []

    def on_start(name: str, attributes: dict[str, str]) -> None:
        if name == "rootfile" and "full-path" in attributes:
            paths.append(attributes["full-path"])

    parse_xml(content, on_start)
    if not paths:
        raise DocumentError(f"{CONTAINER} names no book")
    return paths[0]


def read_spine(content: bytes) -> list[str]:
    """List the files of the book's parts, in reading order."""
    files: dict[str, str] = {}
    order: list[str] = []

    def on_start(name: str, attributes: dict[str, str]) -> None:
        if name == "item":
            files[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref":
            order.append(attributes.get("idref", ""))

    parse_xml(content, on_start)
    return [files[key] for key in order if key in files]
