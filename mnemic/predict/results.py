"""What a network says of a text: small values with offsets into the string as it was given.

Each says how many tokens were ``seen`` of the ``total``: fewer only where ``truncation="first"``
was asked for. Networks with a memory say which slots an answer read, and what was written there.
"""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

DOUBT = 0.5  # from this probability of "no answer" on, there is none


class Source(NamedTuple):
    """A stretch of what was read, and how much of it there is in what it is told of."""

    start: int  # offsets into the text, half open
    end: int
    weight: float


class Slot(NamedTuple):
    """A slot of the memory that an answer read."""

    number: int
    weight: float  # how much of the reading was of this slot
    sources: tuple[Source, ...]  # what was written there, largest share first


@dataclass(frozen=True)
class Recollected:
    """An answer from memory alone, with where it was read."""

    text: str  # its words; "" of a network that says none, unless the reader points at some: then
    # the evidence is the answer. Where there is no evidence either, nothing is remembered
    probability: float  # of the words; that the evidence has an answer, says the reader; or, where
    # nobody says words, how much of all it read was the first evidence
    evidence: tuple[Source, ...]  # most read first
    slots: tuple[Slot, ...]  # most read first
    seen: int
    total: int


@dataclass(frozen=True)
class Classified:
    """The class of a text, or of a pair."""

    label: str
    probability: float
    ranked: tuple[tuple[str, float], ...]  # every class with its probability, best first
    seen: int
    total: int
    slots: tuple[Slot, ...] = ()  # read of the memory, most first, where there is one


@dataclass(frozen=True)
class Rated:
    """The number of a text, or of a pair."""

    number: float
    seen: int
    total: int
    slots: tuple[Slot, ...] = ()  # read of the memory, most first, where there is one


@dataclass(frozen=True)
class Entity:
    """A name in a text, and what kind of thing it names."""

    kind: str
    start: int  # offsets into the text, half open
    end: int
    probability: float  # of its least sure word's tag
    slots: tuple[Slot, ...] = ()  # that its first word read of the memory, where there is one

    def quote(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True)
class Tagged:
    """The names in a text, in their order."""

    entities: tuple[Entity, ...]
    seen: int
    total: int


@dataclass(frozen=True)
class Answered:
    """The best answer to a question, a stretch of its text, and how likely there is none."""

    start: int  # offsets into the text, half open
    end: int
    score: float  # probability of both ends, from 0 to 1
    no_answer: float  # probability that the text holds none
    seen: int
    total: int
    slots: tuple[Slot, ...] = ()  # read of the memory, most first, where there is one

    @property
    def found(self) -> bool:
        """Whether an answer is likelier than none."""
        return self.no_answer < DOUBT

    def quote(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True)
class Spoken:
    """What was said of a text, or after it."""

    text: str
    score: float  # log-probability of the whole of it
    ranked: tuple[tuple[str, float], ...]  # all that were thought of, best first
    seen: int
    total: int


@dataclass(frozen=True)
class Measured:
    """How likely a text is to a language model; None where there is no word to ask for."""

    perplexity: float | None  # unknown words are one word of the vocabulary
    known: float | None  # perplexity of the words that the vocabulary has
    unknown: int  # words that it does not have
    total: int


@dataclass(frozen=True)
class Embedded:
    """Texts as vectors of length 1."""

    vectors: Tensor  # e d
    seen: tuple[int, ...]
    total: tuple[int, ...]
    keys: tuple[Tensor, ...] = ()  # s d each: of every text, if they were asked for
