"""What a memory says to a question: answers, best first, each a quotation with its evidence."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["span", "sentence"]
SHOWN = 5  # sentences of evidence, and passages of a search


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A sentence that was read, where it stands, and how much each hop read of its passage."""

    document: int  # the id that `forget` and `update` take
    name: str  # of the document: its path, or its title
    page: int | None
    line: int  # of the original; 0: it has no lines
    first: int  # character offsets in the original
    last: int
    passage: str
    start: int  # of the sentence, in the passage
    end: int
    weights: tuple[float, ...]  # one a hop
    score: float

    @property
    def sentence(self) -> str:
        """The exact words."""
        return self.passage[self.start : self.end]


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One of several answers, and the sentence it is quoted from."""

    start: int  # in the passage of its evidence
    end: int
    score: float  # as ``Answer.score``
    evidence: Evidence

    @property
    def text(self) -> str:
        """The exact words."""
        return self.evidence.passage[self.start : self.end]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the memory says to a question; without a reader, the sentence that fits best."""

    question: str
    text: str  # verbatim; empty: no answer
    score: float  # its confidence; without a reader, its share of all sentences that were read
    evidence: tuple[Evidence, ...]  # best first; the answer is a quotation of the first
    start: int  # of the answer, in the passage of the first evidence
    end: int
    ranked: tuple[Ranked, ...]  # all answers that were found, best first, however unsure
    kind: Kind  # what a reader found, or without one a sentence
    hops: int
    looked: int  # passages in memory, all of which were looked at
    read: int  # passages that were read sentence by sentence
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        return bool(self.text)


def report(answer: Answer) -> dict[str, Any]:
    """An answer as plain values; each sentence beside its offsets, its passage left out."""
    told = asdict(answer) | {"answer": answer.text or None}
    told["evidence"] = [sentence(one) for one in answer.evidence]
    told["ranked"] = [
        {"answer": one.text} | asdict(one) | {"evidence": sentence(one.evidence)}
        for one in answer.ranked
    ]
    return {key: told[key] for key in ("question", "answer", *told) if key != "text"}


def sentence(one: Evidence) -> dict[str, Any]:
    told = asdict(one)
    told.pop("passage")
    return {"sentence": one.sentence} | told
