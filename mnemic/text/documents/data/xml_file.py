"""Read XML: values named by their elements; repeated elements are rows."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat

from mnemic.text.documents.data.records import PathValue, build_records
from mnemic.text.documents.data.rows import RowField
from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.piece import DocumentError, DocumentPart, Note, Source
from mnemic.text.documents.rewrite import find_line_ends

MAX_CHARACTERS = 50_000_000  # of a file
MAX_DEPTH = 200


class XMLStep(NamedTuple):
    """An element of a path: its name, and its number among those of its parent."""

    name: str
    number: int


class XMLScanner:
    """Collect the texts and attributes of XML with their paths and positions."""

    def __init__(self, text: str) -> None:
        self.line_ends = find_line_ends(text)
        self.path: list[XMLStep] = []
        self.counts: list[Counter[str]] = [Counter()]  # of the children, for each open element
        self.repeated: set[tuple[str, ...]] = set()  # names of elements that occur twice in a parent
        self.values: list[tuple[tuple[XMLStep, ...], RowField]] = []
        self.text: list[str] = []
        self.text_start = (1, 0)
        self.parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        self.parser.StartElementHandler = self.on_start
        self.parser.EndElementHandler = self.on_end
        self.parser.CharacterDataHandler = self.on_text
        self.parser.EntityDeclHandler = self.refuse
        self.parser.Parse(text.encode("utf-8", "replace"), True)

    def refuse(self, *_: object) -> None:
        raise DocumentError("it declares entities")

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element; its attributes are values."""
        self.flush_text()
        if len(self.path) >= MAX_DEPTH:
            raise DocumentError(f"more than {MAX_DEPTH} elements in each other")
        local = name.rpartition(" ")[2]
        self.counts[-1][local] += 1
        self.path.append(XMLStep(local, self.counts[-1][local] - 1))
        self.counts.append(Counter())
        if self.path[-1].number:
            self.repeated.add(tuple(step.name for step in self.path))
        position = (self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber)
        for key, value in attributes.items():
            if value.strip():
                self.add_value(value.strip(), position, XMLStep(key.rpartition(" ")[2], 0))

    def on_end(self, name: str) -> None:
        """Close an element."""
        self.flush_text()
        self.path.pop()
        self.counts.pop()

    def on_text(self, text: str) -> None:
        """Add text of the open element."""
        if not self.text and text.strip():
            lead = text[: len(text) - len(text.lstrip())]
            line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber
            num_breaks = lead.count("\n")
            self.text_start = (
                line + num_breaks,
                len(lead) - lead.rfind("\n") - 1 if num_breaks else column + len(lead),
            )
            text = text.lstrip()
        if self.text or text.strip():
            self.text.append(text)

    def flush_text(self) -> None:
        """End a text: white space at its end does not belong to it."""
        if text := "".join(self.text).strip():
            self.add_value(text, self.text_start)
        self.text = []

    def add_value(self, text: str, position: tuple[int, int], *last: XMLStep) -> None:
        """Add a value at a line and a column."""
        line, column = position
        origin = (self.line_ends[line - 2] + 1 if line > 1 else 0) + column
        self.values.append(((*self.path, *last), RowField("", text, origin, line)))

    def path_values(self) -> Iterator[PathValue]:
        """Yield the values with their paths, in which a repeated element is numbered."""
        for steps, field in self.values:
            path: list[str | int] = []
            for number, step in enumerate(steps[1:], start=2):
                path.append(step.name)
                if tuple(item.name for item in steps[:number]) in self.repeated:
                    path.append(step.number)
            yield PathValue(tuple(path), field)


def read_xml(source: Source) -> Iterator[DocumentPart]:
    """Read XML; a file that is broken, or declares entities, is read as plain text."""
    text = read_text(source.path, MAX_CHARACTERS)
    try:
        scanner = XMLScanner(text)
    except (expat.ExpatError, DocumentError) as error:
        yield Note(f"this is no XML that can be read ({error}); it was read as plain text")
        yield from read_plain(source)
        return
    yield from build_records(scanner.path_values())
