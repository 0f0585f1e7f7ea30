"""Read PowerPoint slides and their notes: one line per paragraph or table row."""

import posixpath
import zipfile
from collections.abc import Iterator

from mnemic.text.documents.office.archive import has_member, open_archive, parse_xml, read_member
from mnemic.text.documents.office.blocks import Block, BlockBuilder, build_pieces
from mnemic.text.documents.office.docx import read_title
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source

MAIN = "ppt/presentation.xml"
HIDDEN_PLACEHOLDERS = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})  # date, footer, number, picture


def read_pptx(source: Source) -> Iterator[DocumentPart]:
    """Read a presentation: its title, then its slides in order; a slide is a page."""
    with open_archive(source.path, "PowerPoint presentation") as archive:
        if has_member(archive, "docProps/core.xml"):
            yield from read_title(read_member(archive, "docProps/core.xml"))
        blocks: list[Block] = []
        notes: set[str] = set()
        for number, name in enumerate(list_slides(archive), start=1):
            blocks += read_slide(read_member(archive, name), number)
            for target in read_relations(archive, name).values():
                if "/notesSlides/" in target and target not in notes:  # each is read once
                    notes.add(target)
                    blocks += read_slide(read_member(archive, target), number)
    yield from build_pieces(blocks)


def list_slides(archive: zipfile.ZipFile) -> list[str]:
    """List the files of the slides, in the order of the presentation, each once."""
    targets = read_relations(archive, MAIN)
    slides = [
        targets.get(attributes.get("id", ""), "")
        for kind, name, attributes in parse_xml(read_member(archive, MAIN))
        if kind == "start" and name == "sldId"
    ]
    member_names = set(archive.namelist())
    if not any(slide in member_names for slide in slides):
        raise DocumentError(f"{MAIN} names no slide")
    return [slide for slide in dict.fromkeys(slides) if slide in member_names]


def read_relations(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Read which files a file of the archive refers to, by identifier."""
    folder, base = posixpath.split(name)
    path = f"{folder}/_rels/{base}.rels"
    if not has_member(archive, path):
        return {}
    return {
        attributes.get("Id", ""): posixpath.normpath(posixpath.join(folder, attributes.get("Target", ""))).lstrip("/")
        for kind, tag, attributes in parse_xml(read_member(archive, path))
        if kind == "start" and tag == "Relationship"
    }


def read_slide(content: bytes, number: int) -> list[Block]:
    """Read the paragraphs and tables of a slide; its title is a heading."""
    builder, placeholder, depth = BlockBuilder(), "", 0
    builder.page = number
    for kind, name, attributes in parse_xml(content):
        if kind == "text":
            builder.add_text(name if depth else "")
        elif name == "t":
            depth += 1 if kind == "start" else -1
        elif kind == "start":
            if name in ("sp", "graphicFrame"):
                placeholder = ""
            elif name == "ph":
                placeholder = attributes.get("type", "body")
            elif name == "br":
                builder.add_text("\n")
            elif name in ("tbl", "tr", "tc"):
                {"tbl": builder.start_table, "tr": builder.start_row, "tc": builder.start_cell}[name]()
        elif name == "tbl":
            builder.end_table()
        elif name == "p":
            if placeholder in HIDDEN_PLACEHOLDERS:
                builder.text.clear()
            elif builder.tables or "".join(builder.text).strip():
                builder.end_paragraph("heading" if placeholder in ("title", "ctrTitle") else "paragraph")
    return builder.blocks
