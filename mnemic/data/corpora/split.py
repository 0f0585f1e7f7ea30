"""Which documents are kept apart from training: decided by each text alone.

So the same text is always on the same side, wherever it stands, however often, and whatever other
documents there are.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from mnemic.data.contract import Part
from mnemic.data.corpora.document import Document
from mnemic.recipe import ConfigError


def part_of(text: str, *, validation: float = 0.01, test: float = 0.0) -> Part:
    """The part a text belongs to, each with its share of all texts on average.

    A larger share holds all that a smaller one held.
    """
    if not (validation >= 0 and test >= 0 and validation + test < 1):
        raise ConfigError(
            f"validation and test are shares from 0 on, less than 1 together, not {validation} "
            f"and {test}"
        )
    whole = int.from_bytes(sha256(text.encode("utf-8")).digest()[:8], "big")
    number = (whole >> 11) / 2**53  # below 1, exactly
    if number < validation:
        return "validation"
    return "test" if number >= 1 - test else "train"


def only(
    documents: Iterable[Document], part: Part, *, validation: float = 0.01, test: float = 0.0
) -> Iterator[Document]:
    """The documents of one part; the others are read and passed over."""
    for document in documents:
        if part_of(document.text, validation=validation, test=test) == part:
            yield document
