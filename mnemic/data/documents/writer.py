"""Write a document line by line, and remember where each value stands."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_STOPS = ".!?:;,…"  # after which ``Passage.mark_units`` adds no stop either
Value = str | Sequence[str]  # a sequence is a list: "a, b and c"
Spans = tuple[tuple[int, int], ...]


class GeneratedQuestion(NamedTuple):
    """A question about a generated document; without ``spans`` it has no answer."""

    question: str
    spans: Spans  # all of them are required
    date: str = ""  # that the answer means: a day, a month, a year or an interval, in ISO 8601


class GeneratedDocument(NamedTuple):
    """A generated document with its questions."""

    text: str
    form: str  # a key of ``generate.DOCUMENT_TYPES``
    questions: tuple[GeneratedQuestion, ...]


class DocumentWriter:
    """Append lines to a text; ``ends_lines_with_period`` ends lines as a reader sees them.

    A memory puts a stop in place of the line break after a line without one, since a network sees
    no line breaks (``Passage.mark_units``).

    >>> writer = DocumentWriter()
    >>> spans = writer.add_line("{name}: {items}", name="Anna", items=["tea", "rice"])
    >>> writer.text, [writer.text[start:end] for start, end in spans["items"]]
    ('Anna: tea and rice', ['tea', 'rice'])
    """

    def __init__(self, *, ends_lines_with_period: bool = False) -> None:
        self.text, self.ends_lines_with_period = "", ends_lines_with_period

    def add_line(self, template: str, **values: Value) -> dict[str, Spans]:
        """Append a line with its slots filled, and return where each value stands."""
        if self.text:
            self.text += "." if self.ends_lines_with_period and self.text[-1] not in _STOPS else "\n"
        line, spans = fill_template(template, values)
        shift = len(self.text)
        self.text += line
        return {name: tuple((start + shift, end + shift) for start, end in ranges) for name, ranges in spans.items()}


def fill_template(template: str, values: Mapping[str, Value]) -> tuple[str, dict[str, Spans]]:
    """Fill the slots of a template; return the text and the spans of each value."""
    text, position, spans = "", 0, dict[str, Spans]()
    for match in _PLACEHOLDER.finditer(template):
        text += template[position : match.start()]
        position, value = match.end(), values[match[1]]
        members, ranges = [value] if isinstance(value, str) else list(value), list[tuple[int, int]]()
        for number, member in enumerate(members):
            if number:
                text += " and " if number == len(members) - 1 else ", "
            ranges.append((len(text), len(text) + len(member)))
            text += member
        spans[match[1]] = tuple(ranges)
    return text + template[position:], spans


def ask_question(template: str, spans: Spans = (), date: str = "", **values: str) -> GeneratedQuestion:
    """Fill the template of a question."""
    return GeneratedQuestion(template.format(**values), spans, date)
