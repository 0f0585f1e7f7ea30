"""Results of predictions on texts, with offsets into the original string.

Each result has the number of tokens that were read (``seen``) and of all tokens (``total``); they
differ only with ``truncation="first"``. Networks with a memory also report which slots an answer
read, and which spans were written there.
"""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

NO_ANSWER_THRESHOLD = 0.5  # "no answer" from this probability on


class SourceSpan(NamedTuple):
    """A span of the text, with its weight in a slot or an answer."""

    start: int  # offsets into the text, half open
    end: int
    weight: float


class SlotEvidence(NamedTuple):
    """A memory slot that an answer read, with the spans written into it."""

    number: int
    weight: float  # share of the read weights
    sources: tuple[SourceSpan, ...]  # spans written into it, largest share first


@dataclass(frozen=True)
class MemoryAnswer:
    """An answer from memory alone, with the spans of the text it was read from."""

    # The answer's words. Empty if the network generates none and the reader extracts none: then
    # the evidence is the answer. Without evidence, too, nothing is remembered.
    text: str
    # Of the generated words; or, from the reader, that the evidence holds an answer; or, without
    # words, the read weight of the slot that was read most.
    probability: float
    evidence: tuple[SourceSpan, ...]  # largest weight first
    slots: tuple[SlotEvidence, ...]  # largest weight first
    seen: int
    total: int


@dataclass(frozen=True)
class Classification:
    """The predicted class of a text, or of a pair of texts."""

    label: str
    probability: float
    ranked: tuple[tuple[str, float], ...]  # every class with its probability, best first
    seen: int
    total: int
    slots: tuple[SlotEvidence, ...] = ()  # that were read, with a memory; largest weight first


@dataclass(frozen=True)
class Rating:
    """The predicted number of a text, or of a pair of texts (regression)."""

    number: float
    seen: int
    total: int
    slots: tuple[SlotEvidence, ...] = ()  # that were read, with a memory; largest weight first


@dataclass(frozen=True)
class Entity:
    """A named entity in a text, with its kind."""

    kind: str
    start: int  # offsets into the text, half open
    end: int
    probability: float  # the smallest of its words' tag probabilities
    slots: tuple[SlotEvidence, ...] = ()  # that its first word read, with a memory

    def quote(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True)
class TaggedText:
    """The named entities of a text, in order."""

    entities: tuple[Entity, ...]
    seen: int
    total: int


@dataclass(frozen=True)
class SpanAnswer:
    """The best span that answers a question, and the probability of no answer."""

    start: int  # offsets into the text, half open
    end: int
    score: float  # probability of start and end, from 0 to 1
    no_answer: float  # probability that the text holds none
    seen: int
    total: int
    slots: tuple[SlotEvidence, ...] = ()  # that were read, with a memory; largest weight first

    @property
    def has_answer(self) -> bool:
        """Whether an answer is more probable than none."""
        return self.no_answer < NO_ANSWER_THRESHOLD

    def quote(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True)
class GeneratedText:
    """A generated answer to a text, or its continuation."""

    text: str
    score: float  # log-probability of the generated text
    ranked: tuple[tuple[str, float], ...]  # all candidates with log-probabilities, best first
    seen: int
    total: int


@dataclass(frozen=True)
class TextPerplexity:
    """The perplexity of a text under a language model; None without words to score."""

    perplexity: float | None  # of all words; unknown ones are one word of the vocabulary
    known: float | None  # perplexity of the words in the vocabulary
    unknown: int  # number of words outside the vocabulary
    total: int


@dataclass(frozen=True)
class TextEmbeddings:
    """Embeddings of texts: vectors of length 1."""

    vectors: Tensor  # e d
    seen: tuple[int, ...]
    total: tuple[int, ...]
    keys: tuple[Tensor, ...] = ()  # s d per text: of its sentences, if requested
