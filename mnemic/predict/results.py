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
    """An answer from memory alone, with the spans of the text it was read from.

    >>> text = "The museum was founded by Edith Marlowe in 1897. Visitors pay nothing on Sundays."
    >>> model = mnemic.load("bert-mass")
    >>> answer = model.ask(model.remember(text), "Who founded the museum?", text=text)
    >>> answer.text
    'Edith Marlowe'
    >>> span = answer.evidence[0]
    >>> text[span.start : span.end]
    'The museum was founded by Edith Marlowe in 1897.'
    """

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
    """The predicted class of a text, or of a pair of texts.

    >>> model = mnemic.load("runs/reviews")  # of `mnemic train bert-classes`
    >>> result = model.classify(["a lovely film"])[0]
    >>> result.label
    'good'
    >>> [label for label, probability in result.ranked]
    ['good', 'bad']
    >>> result.seen == result.total  # every token was read
    True
    """

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
    """The named entities of a text, in order.

    >>> model = mnemic.load("runs/names")  # of `mnemic train bert-tags`
    >>> text = "Ada Berg lives in London ."
    >>> for entity in model.tag([text])[0].entities:
    ...     print(entity.kind, entity.quote(text), entity.start, entity.end)
    person Ada Berg 0 8
    place London 18 24
    """

    entities: tuple[Entity, ...]
    seen: int
    total: int


@dataclass(frozen=True)
class SpanAnswer:
    """The best span that answers a question, and the probability of no answer.

    >>> text, model = "Bram Stoker wrote Dracula in 1897.", mnemic.load("reader")
    >>> answer = model.answer("Who wrote Dracula?", text)
    >>> answer.quote(text), answer.has_answer
    ('Bram Stoker', True)
    >>> model.answer("Where was he born?", text).has_answer
    False
    """

    start: int  # offsets into the text, half open
    end: int
    score: float  # probability of start and end, from 0 to 1
    no_answer: float  # probability that the text holds none
    seen: int
    total: int
    slots: tuple[SlotEvidence, ...] = ()  # that were read, with a memory; largest weight first
    relevance: float = 0.0  # how well the text answers: log-odds, or a logit of a head for it

    @property
    def has_answer(self) -> bool:
        """Whether an answer is more probable than none."""
        return self.no_answer < NO_ANSWER_THRESHOLD

    def quote(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True)
class RankedPassage:
    """A passage with its score: how well it answers a question.

    >>> passages = ["The rent is 700 euros a month.", "Bram Stoker wrote Dracula in 1897."]
    >>> best = mnemic.load("reader").rerank("Who wrote Dracula?", passages)[0]
    >>> passages[best.index], best.score > 0
    ('Bram Stoker wrote Dracula in 1897.', True)
    """

    index: int  # of the passage, in the list that was ranked
    score: float  # log-odds that it answers, a logit of a head for it, or a network's number
    seen: int
    total: int


@dataclass(frozen=True)
class GeneratedText:
    """A generated answer to a text, or its continuation.

    >>> model = mnemic.load("runs/dates")  # of `mnemic train dates`
    >>> result = model.generate(["the third of march nineteen eighty four"], num_beams=2)[0]
    >>> result.text
    '1984-03-03'
    >>> len(result.ranked)  # one candidate per beam, with its log-probability
    2
    """

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
    """Embeddings of texts: vectors of length 1.

    >>> model = mnemic.load("reader")
    >>> passages = ["Bram Stoker wrote Dracula in 1897.", "The rent is 700 euros a month."]
    >>> question = model.embed(["Who wrote Dracula?"]).vectors[0]
    >>> similarities = model.embed(passages).vectors @ question  # cosine
    >>> passages[similarities.argmax()]
    'Bram Stoker wrote Dracula in 1897.'
    """

    vectors: Tensor  # e d
    seen: tuple[int, ...]
    total: tuple[int, ...]
    keys: tuple[Tensor, ...] = ()  # s d per text: of its sentences, if requested


@dataclass(frozen=True)
class WordGaze:
    """A word of a caption, and how much of each region was read for it."""

    word: str
    weights: tuple[tuple[float, ...], ...]  # rows and columns of the grid of regions; they add up to 1

    @property
    def region(self) -> tuple[int, int]:
        """The row and column of the region with the largest weight."""
        best = max(range(len(self.weights)), key=lambda row: max(self.weights[row]))
        return best, self.weights[best].index(max(self.weights[best]))


@dataclass(frozen=True)
class PictureCaption:
    """A caption of a picture, with the gaze of each word."""

    text: str
    log_probability: float  # of the caption with its end
    gaze: tuple[WordGaze, ...]  # empty for a network that reads no regions


@dataclass(frozen=True)
class AlignedWord:
    """A word of a caption, and the region of the picture that it is about."""

    word: str
    region: int  # its number
    box: tuple[float, ...]  # x1 y1 x2 y2, shares of the picture's side
    score: float  # the product of word and region


@dataclass(frozen=True)
class DetectedObject:
    """An object that was detected in a picture."""

    label: str
    attribute: str
    box: tuple[float, ...]  # x1 y1 x2 y2, shares of the picture's side
    probability: float  # of the label
