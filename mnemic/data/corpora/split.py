"""Split documents into training, validation and test by a hash of each text.

So the same text is always in the same split, wherever it stands, however often, and whatever other
documents there are.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from mnemic.data.contract import Split
from mnemic.recipe import ConfigError


def split_of(text: str, *, validation: float = 0.01, test: float = 0.0) -> Split:
    """Return the split of a text, by its hash; splits have their shares on average.

    A larger share contains all texts of a smaller one.
    """
    if not (validation >= 0 and test >= 0 and validation + test < 1):
        raise ConfigError(
            f"validation and test are shares from 0 on, less than 1 together, not {validation} and {test}"
        )
    digest = int.from_bytes(sha256(text.encode("utf-8")).digest()[:8], "big")
    fraction = (digest >> 11) / 2**53  # below 1, exactly
    if fraction < validation:
        return "validation"
    return "test" if fraction >= 1 - test else "train"


def filter_split(texts: Iterable[str], split: Split, *, validation: float = 0.01, test: float = 0.0) -> Iterator[str]:
    """Yield the texts of one split; read and skip the others."""
    return (text for text in texts if split_of(text, validation=validation, test=test) == split)
