"""The protocol of all tokenizers, and the encoding they return.

Offsets count characters of the original text, half open, so ``text[start:end]`` quotes it: never
bytes, never positions in a lower-cased or normalized copy.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from mnemic.files import ANYONE, replace_file

TOKENIZER_FILE = "tokenizer.json"


class Encoding(NamedTuple):
    """A tokenized text: four lists of equal length.

    ``tokens[i]`` is the vocabulary entry of ``ids[i]``; the text itself reads ``text[start:end]``
    there. ``segments[i]`` is the text that the token belongs to, and so the text that its offsets
    quote: 0 for the text, 1 for its pair. A special token that the tokenizer adds has an empty
    span: at 0 before a text, at ``len(text)`` after it.
    """

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    segments: list[int]


class SpecialTokens(NamedTuple):
    """The ids of the special tokens before, between and after the texts of an input."""

    before: list[int]
    between: list[int]
    after: list[int]


class Tokenizer(Protocol):
    """Convert strings to tokens and back; never truncate and never pad."""

    @property
    def kind(self) -> str: ...

    @property
    def pad(self) -> int: ...

    @property
    def unknown(self) -> int: ...

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids that stand for no text: padding and special tokens, but not ``unknown``."""

    def __len__(self) -> int:
        """Return the size of the vocabulary; ids run from 0 to one below it."""

    def __contains__(self, token: object) -> bool:
        """Return whether the vocabulary has an entry for ``token``."""

    def id_of(self, token: str) -> int:
        """Return the id of a vocabulary entry; ValueError if there is none.

        (``unknown`` is only for words of a text.)
        """

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        """Tokenize a text or a pair of texts; ``special=False`` adds no special tokens."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, without special tokens and offsets."""

    def special_tokens(self, *, pair: bool = False) -> SpecialTokens:
        """Return the special tokens that ``encode`` puts around a text or a pair."""

    def decode(self, ids: Iterable[int]) -> str:
        """Convert ids back to text, without special tokens.

        How much of the original's spelling survives depends on the kind.
        """

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` into a folder, for ``mnemic.text.load_tokenizer``."""


def write_tokenizer_file(folder: Path, content: str) -> None:
    """Write the folder's tokenizer file atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(folder / TOKENIZER_FILE, mode=ANYONE) as file:
        file.write(content.encode("utf-8"))
