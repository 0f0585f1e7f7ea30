"""Quote evidence from the files that a memory was read from, if unchanged."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.documents.common import shorten_path
from mnemic.cli.render.evidence_table import EvidenceRow, print_evidence
from mnemic.cli.render.format import MAX_PASSAGE_CHARS, truncate
from mnemic.cli.text_io import STDIN, STDIN_NAME, read_text

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State


class Quote(NamedTuple):
    """A span of a text, with its words if they are available."""

    name: str  # of the text; "": unknown
    number: int  # of the text, from 1; 0: there is only one, or unknown
    start: int
    end: int
    text: str | None  # None: not available

    @property
    def citation(self) -> str:
        """The text and the character offsets in it."""
        name = display_name_of(self.name) or (f"text {self.number}" if self.number else "")
        return f"{name}{', ' if name else ''}{self.start}-{self.end}"


class QuoteFinder:
    """Finds the text behind character offsets that count through all texts."""

    def __init__(self, state: "State", full_text: str = "", files: Sequence[str] = ()) -> None:
        """``full_text`` is all that was read; ``files`` are texts that were, wherever they are."""
        self.texts = state.texts
        if sum(text.characters for text in self.texts) != state.characters:
            self.texts = ()  # an old memory file, written before texts had names
        self.ends = list(accumulate(text.characters for text in self.texts))
        self.full_text, self.contents, self.changed_names = full_text, dict[int, str](), list[str]()
        for file in files:
            content = read_text(file)
            numbers = [number for number, text in enumerate(self.texts) if text.digest == digest_of(content)]
            if not numbers:
                raise ValueError(f"{file} was not read into this memory, or has changed since")
            self.contents |= dict.fromkeys(numbers, content)

    def quote_span(self, start: int, end: int) -> Quote:
        """Quote a span by character offsets that count through all texts."""
        if self.full_text or not self.texts:
            return Quote("", 0, start, end, self.full_text[start:end] or None)
        number = next(index for index, last in enumerate(self.ends) if start < last)
        text, content = self.texts[number], self.load_text(number)
        text_start = self.ends[number] - text.characters
        start, end = start - text_start, end - text_start
        return Quote(text.name, (number + 1) * (len(self.texts) > 1), start, end, content[start:end] or None)

    def load_text(self, number: int) -> str:
        """Load a text once; empty if its file is missing or has changed."""
        text = self.texts[number]
        if number not in self.contents and text.name not in ("", STDIN):
            try:
                content = read_text(text.name) if Path(text.name).is_file() else ""
            except (OSError, ValueError):  # not readable, or no longer a text
                content = ""
            is_same = digest_of(content) == text.digest
            self.contents[number] = content if is_same else ""
            self.changed_names += [] if is_same else [text.name]
        return self.contents.get(number, "")

    def format_notes(self) -> list[str]:
        """Format one note per text that could not be quoted."""
        problem = "is not there any more or has changed since it was read: no quotes"
        return [f"{shorten_path(name)} {problem}" for name in dict.fromkeys(self.changed_names)]

    def source_to_dict(self, source: Any) -> dict[str, Any]:
        """Convert a source to a JSON object, with its quote and file if known."""
        quote = self.quote_span(source.start, source.end)
        values = source._asdict() | ({} if quote.text is None else {"text": quote.text})
        return values | ({"file": quote.name, "at": [quote.start, quote.end]} if quote.name else {})

    def print_table(self, slots: Sequence[tuple[float, Sequence[Any]]], weight_title: str) -> None:
        """Print weights with the quote of the first source; a long one loses its middle."""
        rows = []
        for weight, sources in slots:
            quote = self.quote_span(sources[0].start, sources[0].end)
            text = truncate(quote.text or "", tail_chars=MAX_PASSAGE_CHARS // 2)
            more = f"  and {len(sources) - 1} more" if len(sources) > 1 else ""
            rows.append(EvidenceRow(text + more, (weight,), citation=quote.citation))
        print_evidence(rows, [weight_title], place_title="text, characters")


def digest_of(text: str) -> str:
    """Compute the digest by which a memory knows a text."""
    from mnemic.predict.memory_state import TextRecord

    return TextRecord.from_text(text, "").digest


def display_name_of(name: str) -> str:
    return STDIN_NAME if name == STDIN else shorten_path(name)
