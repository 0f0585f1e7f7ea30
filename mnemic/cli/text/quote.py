"""The words of evidence, from the files that a memory was read from, while they are the same."""

from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.cli.documents.common import short
from mnemic.cli.text_io import TYPED, text_of

if TYPE_CHECKING:
    from mnemic.predict.memory_state import State


class Quote(NamedTuple):
    """A stretch of a text, by its place there."""

    name: str  # of the text; "": nobody knows
    number: int  # which of all texts it is, from 1; 0: there is one, or nobody knows
    start: int
    end: int
    text: str | None  # its words, where they are at hand


class Quotes:
    """What stands at a place of all that was read, one text after another."""

    def __init__(self, state: "State", given: str = "") -> None:
        """``given`` is the whole text, where it is at hand."""
        self.texts = state.texts
        if sum(own.characters for own in self.texts) != state.characters:
            self.texts = ()  # it was begun before texts had names
        self.ends = list(accumulate(own.characters for own in self.texts))
        self.given, self.read, self.changed = given, dict[int, str](), list[str]()

    def at(self, start: int, end: int) -> Quote:
        """A stretch by its characters, counted through all texts."""
        if self.given or not self.texts:
            return Quote("", 0, start, end, self.given[start:end] if self.given else None)
        number = next(place for place, last in enumerate(self.ends) if start < last)
        own = self.texts[number]
        before = self.ends[number] - own.characters
        whole = self.whole(number) if own.name not in ("", TYPED) else ""
        words = whole[start - before : end - before] if whole else None
        which = number + 1 if len(self.texts) > 1 else 0
        return Quote(own.name, which, start - before, end - before, words)

    def whole(self, number: int) -> str:
        """A text that has a name, read once; nothing if it is not there or another one now."""
        from mnemic.predict.memory_state import Text

        if number not in self.read:
            own = self.texts[number]
            try:
                text = text_of(own.name) if Path(own.name).is_file() else ""
            except (OSError, ValueError):  # it may not be read, or is no text any more
                text = ""
            if Text.of(text, own.name) != own:
                self.changed.append(own.name)
                text = ""
            self.read[number] = text
        return self.read[number]

    def notes(self) -> list[str]:
        """Said of the texts that were looked for and could not be quoted, each once."""
        said = "is not there any more or has changed since it was read: no quotes"
        return [f"{short(name)} {said}" for name in dict.fromkeys(self.changed)]

    def report(self, one: Any) -> dict[str, Any]:
        """A source with its words, and its place in its own file, where they are known."""
        found = self.at(one.start, one.end)
        told = one._asdict() | ({} if found.text is None else {"text": found.text})
        return told | ({"file": found.name, "at": [found.start, found.end]} if found.name else {})
