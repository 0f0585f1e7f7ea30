"""What every tokenizer promises, whatever its kind.

Offsets count characters of the text as it was given, half open, so ``text[start:end]`` quotes it:
never bytes, never positions in a lower-cased or normalised copy.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

FILE = "tokenizer.json"


class Encoded(NamedTuple):
    """A text as tokens; the four lists are equally long.

    ``tokens[i]`` is the vocabulary entry of ``ids[i]``; what the text itself says there is
    ``text[start:end]``. ``segments[i]`` names the text that token belongs to, and so the text its
    offsets quote: 0 for the text, 1 for its pair. A special token that the tokenizer adds has an
    empty span at the place where it stands: at 0 before a text, at ``len(text)`` after it.
    """

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    segments: list[int]


class Frame(NamedTuple):
    """The special tokens before, between and after the texts of one input."""

    before: list[int]
    between: list[int]
    after: list[int]


class Tokenizer(Protocol):
    """Strings to tokens and back. It never truncates and never pads."""

    @property
    def kind(self) -> str: ...

    @property
    def pad(self) -> int: ...

    @property
    def unknown(self) -> int: ...

    @property
    def specials(self) -> frozenset[int]:
        """The ids that stand for no text: padding and what ``encode`` adds; not ``unknown``."""

    def __len__(self) -> int:
        """How many tokens the vocabulary has: ids run from 0 to one below it."""

    def __contains__(self, token: object) -> bool:
        """Whether ``id_of(token)`` has an answer."""

    def id_of(self, token: str) -> int:
        """The id of a vocabulary entry; ValueError if there is none (``unknown`` is for text)."""

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoded:
        """The tokens of a text, or of a pair of texts; ``special=False`` adds no special tokens."""

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many texts, without special tokens: ``encode`` for those who need no more."""

    def frame(self, *, pair: bool = False) -> Frame:
        """The special tokens that ``encode`` puts around a text, or around a pair."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids, as far as the kind keeps it; special tokens are left out."""

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` into ``folder``, from where ``mnemic.text.load`` reads it."""


def write(folder: Path, content: str) -> None:
    """Put ``content`` into the folder's tokenizer file, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f"{FILE}.new"
    beside.write_text(content, encoding="utf-8")
    beside.replace(folder / FILE)
