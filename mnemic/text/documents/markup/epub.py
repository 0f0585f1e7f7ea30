"""EPUB books: the parts of their spine, in reading order, each read as HTML.

A part's number stands for the page; offsets count characters of that part's source.
"""

import posixpath
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from mnemic.text.documents.markup.html import html_parts
from mnemic.text.documents.office.archive import member, opened, parse
from mnemic.text.documents.office.docx import title_of
from mnemic.text.documents.piece import DocumentError, Note, Part, Title

CONTAINER = "META-INF/container.xml"


def read_epub(path: Path) -> Iterator[Part]:
    with opened(path, "EPUB book") as archive:
        package = package_of(member(archive, CONTAINER))
        content = member(archive, package)
        yield from title_of(content)
        inside = set(archive.namelist())
        for number, name in enumerate(spine(content), start=1):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(name)))
            if place not in inside:
                yield Note(f"part {number} ({place}) is missing")
                continue
            source = member(archive, place).decode("utf-8-sig", "replace")
            yield from (part for part in html_parts(source, number) if not isinstance(part, Title))


def package_of(content: bytes) -> str:
    """Where the book says what it is made of."""
    found: list[str] = []

    def start(name: str, values: dict[str, str]) -> None:
        if name == "rootfile" and "full-path" in values:
            found.append(values["full-path"])

    parse(content, start)
    if not found:
        raise DocumentError(f"{CONTAINER} names no book")
    return found[0]


def spine(content: bytes) -> list[str]:
    """The names of the parts, in reading order."""
    files: dict[str, str] = {}
    order: list[str] = []

    def start(name: str, values: dict[str, str]) -> None:
        if name == "item":
            files[values.get("id", "")] = values.get("href", "")
        elif name == "itemref":
            order.append(values.get("idref", ""))

    parse(content, start)
    return [files[key] for key in order if key in files]
