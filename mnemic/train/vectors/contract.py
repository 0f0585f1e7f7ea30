"""The protocol of all ways to learn word vectors, and what they learn from.

Shapes: n words, d width.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from torch import Tensor

from mnemic.data.corpora.read_documents import Corpus
from mnemic.recipe import ConfigError
from mnemic.text.tokenizers.words import list_words

MAX_SPAN_WORDS = 1000  # of a document at once, as in word2vec
# Is told how many words of how many were read; 0 of all: they are still being counted.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class WordSpans:
    """The documents of a corpus as spans of words, read anew each time."""

    corpus: Corpus
    max_documents: int = 0  # 0: all

    def __iter__(self) -> Iterator[list[str]]:
        """Yield the words of each document, at most 1000 at a time."""
        for document in islice(self.corpus.read(), self.max_documents or None):
            words = list_words(document)
            for start in range(0, len(words), MAX_SPAN_WORDS):
                yield words[start : start + MAX_SPAN_WORDS]


def check_options(kind: str, **numbers: int) -> None:
    """Raise a ConfigError if one of the numbers of a kind is below 1."""
    for name, number in numbers.items():
        if number < 1:
            raise ConfigError(f"{kind}.{name} is a whole number from 1 on, not {number}")


class VectorLearner(Protocol):
    """A way to learn word vectors; its constructor's typed keywords are its options."""

    packages: tuple[str, ...]  # whose versions decide the result

    @property
    def min_count(self) -> int: ...  # a word that occurs less often has no vector

    def check_installed(self) -> None:
        """Raise a ValueError if a package that it needs is not installed."""

    def learn(
        self,
        spans: WordSpans,
        counts: Mapping[str, int],
        *,
        num_words: int,
        seed: int,
        threads: int,
        on_progress: OnProgress,
    ) -> Tensor:
        """Learn one vector for each word of ``counts``, in its order: n d.

        ``num_words`` words are in ``spans``, those without a vector included. With one thread the
        same words and seed give the same vectors. What ``on_progress`` raises ends the training.
        """
