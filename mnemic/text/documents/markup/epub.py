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
from mnemic.text.documents.piece import DocumentError, DocumentPart, Note

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
            yield from parse_html(source, number)


def find_package(content: bytes) -> str:
    """Find the path of the book's package file in its container file."""
    starts = [event for event in parse_xml(content) if event.kind == "start" and event.name == "rootfile"]
    paths = [event.attributes["full-path"] for event in starts if "full-path" in event.attributes]
    if not paths:
        raise DocumentError(f"{CONTAINER} names no book")
    return paths[0]


def read_spine(content: bytes) -> list[str]:
    """List the files of the book's parts, in reading order."""
    starts = [event for event in parse_xml(content) if event.kind == "start"]
    files = {tags.get("id", ""): tags.get("href", "") for _, name, tags in starts if name == "item"}
    order = [tags.get("idref", "") for _, name, tags in starts if name == "itemref"]
    return [files[key] for key in order if key in files]
