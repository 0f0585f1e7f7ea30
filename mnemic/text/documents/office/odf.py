"""Read OpenDocument texts and slides (.odt, .odp): one line per paragraph or table row.

Pages are slides, or where the office program last broke a text into pages.
"""

from collections.abc import Iterator, Mapping

from mnemic.text.documents.office.archive import open_archive, parse_xml, read_member
from mnemic.text.documents.office.blocks import Block, BlockBuilder, build_pieces
from mnemic.text.documents.office.docx import break_page, read_title
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source

HIDDEN_TAGS = frozenset({"annotation", "tracked-changes", "sequence-decls", "forms"})
MAX_REPEATED = 100  # blanks or cells that one element stands for


def read_odf(source: Source) -> Iterator[DocumentPart]:
    """Read an OpenDocument file: its title, then its text."""
    with open_archive(source.path, "OpenDocument file") as archive:
        member_names = set(archive.namelist())
        if "META-INF/manifest.xml" in member_names and b"encryption-data" in read_member(
            archive, "META-INF/manifest.xml"
        ):
            raise DocumentError("it is locked with a password; remember a copy without one")
        if "meta.xml" in member_names:
            yield from read_title(read_member(archive, "meta.xml"))
        blocks = read_blocks(read_member(archive, "content.xml"))
    yield from build_pieces(blocks)


def read_blocks(content: bytes) -> list[Block]:
    """Read the paragraphs and tables of a document's XML."""
    reader = OdfReader()
    for kind, name, attributes in parse_xml(content):
        if name in HIDDEN_TAGS and kind != "text":
            reader.num_hidden += 1 if kind == "start" else -1
        elif reader.num_hidden:
            continue
        elif kind == "text":
            reader.builder.add_text(name if reader.depth else "")
        elif kind == "start":
            reader.open_element(name, attributes)
        else:
            reader.close_element(name)
    blocks = reader.builder.blocks
    if all(block.page == 1 for block in blocks) and not reader.has_slides:
        blocks = [block._replace(page=None) for block in blocks]
    return blocks


class OdfReader:
    """Collect the blocks of OpenDocument XML, element by element."""

    def __init__(self) -> None:
        self.builder = BlockBuilder()
        self.builder.page = 1
        self.depth = 0  # of open paragraphs
        self.num_hidden = 0
        self.has_slides = False
        self.is_title = False  # inside the title of a slide

    def open_element(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        if name in ("p", "h"):
            self.depth += 1
        elif name == "page":  # a slide
            self.builder.page = (self.builder.page or 0) + 1 if self.has_slides else 1
            self.has_slides = True
        elif name == "frame":
            self.is_title = attributes.get("class") == "title"
        elif name == "soft-page-break" and not self.has_slides:
            break_page(self.builder)
        elif name == "s":
            self.builder.add_text(" " * parse_count(attributes.get("c", "1")))
        elif name in ("tab", "line-break"):
            self.builder.add_text("\t" if name == "tab" else "\n")
        elif name == "table":
            self.builder.start_table()
        elif name == "table-row":
            self.builder.start_row()
        elif name in ("table-cell", "covered-table-cell"):
            for _ in range(parse_count(attributes.get("number-columns-repeated", "1"))):
                self.builder.start_cell()

    def close_element(self, name: str) -> None:
        """Handle the end of an element."""
        if name in ("p", "h"):
            self.depth -= 1
            self.builder.end_paragraph("heading" if name == "h" or self.is_title else "paragraph")
        elif name == "table":
            self.builder.end_table()
        elif name == "frame":
            self.is_title = False


def parse_count(text: str) -> int:
    """Return a number of repetitions, at most ``MAX_REPEATED``."""
    return min(int(text), MAX_REPEATED) if text.isdecimal() else 1
