"""Read Word documents: one line per paragraph or table row.

Pages are where Word last broke them, which it records in the file; without such records there are
none. Offsets count characters of those lines.
"""

from collections.abc import Iterator

from mnemic.text.documents.office.archive import open_archive, parse_xml, read_member
from mnemic.text.documents.office.blocks import Block, BlockBuilder, build_pieces
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source, Title

# A second copy of a text box, what was deleted or moved away, and the stops of tabs.
HIDDEN_TAGS = frozenset({"Fallback", "del", "moveFrom", "tabs"})
HEADINGS = ("heading", "title", "subtitle")  # beginnings of the names of styles


def read_docx(source: Source) -> Iterator[DocumentPart]:
    """Read a Word document: its title, its body, then footnotes and endnotes."""
    with open_archive(source.path, "Word document") as archive:
        member_names = set(archive.namelist())
        if "docProps/core.xml" in member_names:
            yield from read_title(read_member(archive, "docProps/core.xml"))
        styles = (
            read_heading_styles(read_member(archive, "word/styles.xml")) if "word/styles.xml" in member_names else set()
        )
        blocks = read_blocks(read_member(archive, "word/document.xml"), styles)
        note_files = [name for name in ("word/footnotes.xml", "word/endnotes.xml") if name in member_names]
        notes = [block for name in note_files for block in read_blocks(read_member(archive, name), styles)]
    if all(block.page == 1 for block in blocks):  # no page is known
        blocks = [block._replace(page=None) for block in blocks]
    yield from build_pieces([*blocks, *(note._replace(page=None) for note in notes)])


def read_heading_styles(content: bytes) -> set[str]:
    """Return the identifiers of the styles that are headings, in any language."""
    styles, identifier = set[str](), ""
    for kind, name, attributes in parse_xml(content):
        if kind == "start" and name == "style":
            identifier = attributes.get("styleId", "")
        elif kind == "start" and name == "name" and attributes.get("val", "").lower().startswith(HEADINGS):
            styles.add(identifier)
    return styles


def read_blocks(content: bytes, heading_styles: set[str]) -> list[Block]:
    """Read the paragraphs and tables of a document's XML."""
    builder, num_hidden, depth, is_heading = BlockBuilder(), 0, 0, False
    builder.page = 1
    for kind, name, attributes in parse_xml(content):
        if name in HIDDEN_TAGS and kind != "text":
            num_hidden += 1 if kind == "start" else -1
        elif num_hidden:
            continue
        elif kind == "text":
            builder.add_text(name if depth else "")
        elif name == "t":
            depth += 1 if kind == "start" else -1
        elif kind == "end":
            if name == "p":
                builder.end_paragraph("heading" if is_heading else "paragraph")
                is_heading = False
            elif name == "tbl":
                builder.end_table()
        elif name == "pStyle":
            style = attributes.get("val", "")
            is_heading = style in heading_styles or style.lower().startswith(HEADINGS)
        elif name == "lastRenderedPageBreak" or (name == "br" and attributes.get("type") == "page"):
            break_page(builder)
        else:
            start_element(builder, name)
    return builder.blocks


def start_element(builder: BlockBuilder, name: str) -> None:
    """Handle the start of an element that is white space or part of a table."""
    if name in ("tab", "br", "cr"):
        builder.add_text("\t" if name == "tab" else "\n")
    elif name == "noBreakHyphen":
        builder.add_text("-")
    elif name == "tbl":
        builder.start_table()
    elif name == "tr":
        builder.start_row()
    elif name == "tc":
        builder.start_cell()


def break_page(builder: BlockBuilder) -> None:
    """Begin a page; a paragraph that began on the last one is split."""
    assert builder.page is not None
    if "".join(builder.text).strip() and not builder.tables:
        builder.end_paragraph()
    builder.page += 1


def read_title(content: bytes) -> Iterator[DocumentPart]:
    """Yield the Dublin Core title, if any, of an office document or EPUB book."""
    open_tags: list[str] = []
    title = ""
    try:
        for kind, name, _ in parse_xml(content):
            if kind == "start":
                open_tags.append(name)
            elif kind == "end":
                open_tags.pop()
            elif open_tags[-1:] == ["title"]:
                title += name
    except DocumentError:
        return  # the text can still be read
    if title.strip():
        yield Title(title.strip())
