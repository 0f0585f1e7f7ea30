"""Read YAML: values named by their paths; records of a list are rows."""

from collections.abc import Iterator
from typing import Any

from mnemic.text.documents.data.records import PathValue, build_records
from mnemic.text.documents.data.rows import RowField
from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.piece import DocumentError, DocumentPart, Note, Source
from mnemic.text.documents.rewrite import find_line_ends

MAX_CHARACTERS = 10_000_000  # of a file
MAX_DEPTH = 100


def read_yaml(source: Source) -> Iterator[DocumentPart]:
    """Read YAML; a file that is broken is read as plain text."""
    try:
        import yaml
    except ModuleNotFoundError:
        raise DocumentError("a YAML file; pip install 'mnemic[office]' reads it") from None
    text = read_text(source.path, MAX_CHARACTERS)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        values = [
            value
            for document in yaml.compose_all(text, Loader=loader)
            if document is not None
            for value in walk_node(document, (), set(), text)
        ]
    except (yaml.YAMLError, RecursionError) as error:
        yield Note(f"this is no YAML ({' '.join(str(error).split())}); it was read as plain text")
        yield from read_plain(source)
        return
    yield from build_records(values)


def walk_node(node: Any, path: tuple[str | int, ...], seen: set[int], text: str) -> Iterator[PathValue]:
    """Yield the values under a node; what an alias repeats comes once."""
    if id(node) in seen:
        return
    if len(path) > MAX_DEPTH:
        raise RecursionError(f"more than {MAX_DEPTH} levels")
    seen.add(id(node))
    if node.id == "mapping":
        for key, child in node.value:
            yield from walk_node(child, (*path, str(key.value) if key.id == "scalar" else "?"), seen, text)
    elif node.id == "sequence":
        for index, child in enumerate(node.value):
            yield from walk_node(child, (*path, index), seen, text)
    elif node.value.strip():
        yield PathValue(path, locate_scalar(node, text))


def locate_scalar(node: Any, text: str) -> RowField:
    """Make the field of a scalar, with an anchor per line of a block."""
    start, line = node.start_mark.index, node.start_mark.line + 1
    value = node.value.rstrip("\n")
    if node.style in ("'", '"'):
        return RowField("", value, start + 1, line)
    if node.style not in ("|", ">"):
        return RowField("", value, start, line)
    positions = list[int]()  # of the first letter of each line of the block
    end = text.find("\n", start)
    for _ in value.split("\n"):
        first = end + 1
        line_end = text.find("\n", first)
        end = line_end if line_end >= 0 else len(text)
        positions.append(first + len(text[first:end]) - len(text[first:end].lstrip(" ")))
    line_starts = [0, *(position + 1 for position in find_line_ends(value))]
    shifts = zip(line_starts[1:], positions[1:]) if node.style == "|" else ()
    return RowField("", value, positions[0], line + 1, tuple(shifts))
