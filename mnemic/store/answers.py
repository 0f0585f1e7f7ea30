"""The answer of a memory to a question: quotations, best first, with their evidence."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

AnswerKind: TypeAlias = Literal["span", "sentence"]
NUM_SHOWN = 5  # sentences of evidence, or passages of a search, by default


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A sentence that was read, its position, and the weight of its passage per hop.

    >>> with mnemic.Memory("letters.db") as memory:
    ...     steps = memory.remember("letters")
    ...     evidence = memory.ask("How long is the term of the loan?").evidence[0]
    >>> Path(evidence.name).name, evidence.line
    ('bank.txt', 1)
    >>> evidence.sentence
    'The terms of the loan are five years at 3 percent.'
    >>> Path(evidence.name).read_text()[evidence.first : evidence.last] == evidence.sentence
    True
    """

    document: int  # the id that `forget` and `update` take
    name: str  # path or title of the document
    page: int | None
    line: int  # line in the original; 0: it has no lines
    first: int  # character offsets in the original
    last: int
    passage: str
    start: int  # offsets of the sentence in the passage
    end: int
    weights: tuple[float, ...]  # one per hop
    score: float

    @property
    def sentence(self) -> str:
        """The text of the sentence, verbatim."""
        return self.passage[self.start : self.end]


@dataclass(frozen=True, kw_only=True)
class RankedAnswer:
    """One of several answers, with the sentence that it quotes."""

    start: int  # offsets in the passage of its evidence
    end: int
    score: float  # as ``Answer.score``
    evidence: Evidence

    @property
    def text(self) -> str:
        """The text of the answer, verbatim."""
        return self.evidence.passage[self.start : self.end]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question; without a reader, the sentence that matches best.

    >>> with mnemic.Memory("lease.db") as memory:
    ...     document = memory.note("The lease ends on 30 June. The rent is 700 euros a month.")
    ...     answer = memory.ask("How much is the rent?")
    ...     unknown = memory.ask("Who owns the house?")
    >>> answer.text
    '700 euros a month'
    >>> answer.score > 0.5  # the probability that it is right
    True
    >>> unknown.has_answer
    False
    """

    question: str
    text: str  # verbatim; empty: no answer
    score: float  # its confidence; without a reader, its softmax weight among the sentences read
    evidence: tuple[Evidence, ...]  # best first; the answer is a quotation of the first
    start: int  # offsets of the answer in the passage of the first evidence
    end: int
    ranked: tuple[RankedAnswer, ...]  # all answers, best first, whatever their confidence
    kind: AnswerKind  # a reader's span, or without a reader a sentence
    hops: int
    looked: int  # passages in memory, all of which were searched
    read: int  # passages that were read sentence by sentence
    notes: tuple[str, ...] = ()

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer."""
        return bool(self.text)


def answer_to_dict(answer: Answer) -> dict[str, Any]:
    """Convert an answer to a dict for JSON, with sentences instead of passages."""
    fields = asdict(answer) | {"answer": answer.text or None}
    fields["evidence"] = [evidence_to_dict(evidence) for evidence in answer.evidence]
    fields["ranked"] = [
        {"answer": ranked.text} | asdict(ranked) | {"evidence": evidence_to_dict(ranked.evidence)}
        for ranked in answer.ranked
    ]
    return {key: fields[key] for key in ("question", "answer", *fields) if key != "text"}


def evidence_to_dict(evidence: Evidence) -> dict[str, Any]:
    """Convert evidence to a dict for JSON, with its sentence instead of its passage."""
    fields = asdict(evidence)
    fields.pop("passage")
    return {"sentence": evidence.sentence} | fields
