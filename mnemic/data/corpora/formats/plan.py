"""The plan of a sequence, the protocol of formats, and their helpers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple, Protocol

from mnemic.recipe import ConfigError

SentenceEnds = Sequence[int]  # number of tokens up to each sentence's end


class DocumentSpan(NamedTuple):
    """Tokens ``start`` to ``end`` (exclusive) of one document."""

    document: int
    start: int
    end: int


class SequencePlan(NamedTuple):
    """The plan of one sequence: [CLS], then each span followed by [SEP]."""

    spans: tuple[DocumentSpan, ...]
    segments: tuple[int, ...]  # the token type of each span
    follows: int  # 1: the second segment follows the first; 0: it does not; IGNORE: no target


class SequenceFormat(Protocol):
    """A function that plans the sequences of documents."""

    def __call__(self, documents: Sequence[SentenceEnds], max_tokens: int, generator: Random) -> list[SequencePlan]: ...


def cut_sentences(sentence_ends: SentenceEnds, max_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the span of each sentence; cut those of more than ``max_tokens`` tokens.

    They are cut into as few pieces as possible, whose lengths differ by at most one token.
    """
    start = 0
    for end in sentence_ends:
        count = -(-(end - start) // max_tokens)
        borders = [start + (end - start) * piece // count for piece in range(count + 1)]
        yield from pairwise(borders)
        start = end


def check_max_tokens(kind: str, max_tokens: int, min_tokens: int) -> None:
    """Raise a ConfigError if sequences of ``max_tokens`` are too short for a format."""
    if max_tokens < min_tokens:
        raise ConfigError(f"{kind} needs sequences of at least {min_tokens} tokens, not {max_tokens}")
