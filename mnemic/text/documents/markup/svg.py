"""Read the words of SVG drawings: title, description and texts."""

from collections.abc import Iterator

from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.html import HTMLTextExtractor, TagRules
from mnemic.text.documents.markup.markdown import MAX_CHARACTERS
from mnemic.text.documents.piece import DocumentPart, Note, Source, Title

SVG_RULES = TagRules(
    hidden=frozenset({"style", "script", "metadata", "defs"}),
    paragraphs=frozenset({"text", "desc", "p", "div", "flowroot"}),
    lines=frozenset({"flowpara", "br"}),
)


def read_svg(source: Source) -> Iterator[DocumentPart]:
    """Read the title and the texts of a drawing."""
    extractor = HTMLTextExtractor(read_text(source.path, MAX_CHARACTERS), SVG_RULES)
    if title := " ".join(extractor.title.split()):
        yield Title(title)
    if not extractor.rewriter.size:
        yield Note("no text in it")
    yield from extractor.rewriter.make_pieces()
