"""Quote evidence from the files that a memory was read from, if unchanged."""

from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.documents.common import shorten_path
from mnemic.cli.text_io import STDIN, read_text

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State


class Quote(NamedTuple):
    """A span of a text, with its words if they are available."""

    name: str  # of the text; "": unknown
    number: int  # of the text, from 1; 0: there is only one, or unknown
    start: int
    end: int
    text: str | None  # None: not available


class QuoteFinder:
    """Finds the text behind character offsets that count through all texts."""

    def __init__(self, state: "State", full_text: str = "") -> None:
        """``full_text`` is all that was read, if it is available."""
        self.texts = state.texts
        if sum(text.characters for text in self.texts) != state.characters:
            self.texts = ()  # an old memory file, written before texts had names
        self.ends = list(accumulate(text.characters for text in self.texts))
        self.full_text, self.contents, self.changed_names = full_text, dict[int, str](), list[str]()

    def quote_span(self, start: int, end: int) -> Quote:
        """Quote a span by character offsets that count through all texts."""
        if self.full_text or not self.texts:
            return Quote("", 0, start, end, self.full_text[start:end] if self.full_text else None)
        number = next(index for index, last in enumerate(self.ends) if start < last)
        text = self.texts[number]
        text_start = self.ends[number] - text.characters
        content = self.load_text(number) if text.name not in ("", STDIN) else ""
        quotation = content[start - text_start : end - text_start] if content else None
        text_number = number + 1 if len(self.texts) > 1 else 0
        return Quote(text.name, text_number, start - text_start, end - text_start, quotation)

    def load_text(self, number: int) -> str:
        """Load a named text once; empty if its file is missing or has changed."""
        from mnemic.predict.memory_state import TextRecord

        if number not in self.contents:
            text = self.texts[number]
            try:
                content = read_text(text.name) if Path(text.name).is_file() else ""
            except (OSError, ValueError):  # not readable, or no longer a text
                content = ""
            if TextRecord.from_text(content, text.name) != text:
                self.changed_names.append(text.name)
                content = ""
            self.contents[number] = content
        return self.contents[number]

    def format_notes(self) -> list[str]:
        """Format one note per text that could not be quoted."""
        problem = "is not there any more or has changed since it was read: no quotes"
        return [f"{shorten_path(name)} {problem}" for name in dict.fromkeys(self.changed_names)]

    def source_to_dict(self, source: Any) -> dict[str, Any]:
        """Convert a source to a JSON object, with its quote and file if known."""
        quote = self.quote_span(source.start, source.end)
        values = source._asdict() | ({} if quote.text is None else {"text": quote.text})
        return values | ({"file": quote.name, "at": [quote.start, quote.end]} if quote.name else {})
