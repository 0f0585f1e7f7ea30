"""Read EPUB books: the parts of their spine, in reading order, each as HTML.

A part's number stands for the page; offsets count characters of that part's source.
"""

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from mnemic.text.documents.markup.html import parse_html
from mnemic.text.documents.office.archive import MAX_MEMBERS, has_member, open_archive, parse_xml, read_member
from mnemic.text.documents.office.docx import read_title
from mnemic.text.documents.piece import DocumentError, DocumentPart, Note, Source

CONTAINER = "META-INF/container.xml"


def read_epub(source: Source) -> Iterator[DocumentPart]:
    """Read a book: its title, then each part; a missing part becomes a note."""
    with open_archive(source.path, "EPUB book") as archive:
        package = find_package(read_member(archive, CONTAINER))
        content = read_member(archive, package)
        yield from read_title(content)
        folder = posixpath.dirname(package)
        paths = [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in read_spine(content)]
        for number, member_path in enumerate(dict.fromkeys(paths), start=1):  # a part is read once
            if not has_member(archive, member_path):
                yield Note(f"part {number} ({member_path}) is missing")
                continue
            chapter = read_member(archive, member_path).decode("utf-8-sig", "replace")
            yield from parse_html(chapter, number)


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
    if len(order) > MAX_MEMBERS:
        raise DocumentError(f"its spine has {len(order):,} parts, more than {MAX_MEMBERS:,}; this may be a bomb")
    return [files[key] for key in order if key in files]
