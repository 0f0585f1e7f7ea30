"""The answer of a memory to a question: quotations, best first, with their evidence."""

from dataclasses import asdict, dataclass
from html import escape
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mnemic.text.documents import Box, Sentence

AnswerKind: TypeAlias = Literal["span", "sentence"]
DaySource: TypeAlias = Literal["text", "name", "remembered", "file"]
DAY_SOURCES: dict[DaySource, str] = {
    "text": "a date in the document",
    "name": "the date in the document's name",
    "remembered": "the day when the note was remembered",
    "file": "the day when the file was last changed, for want of a date in it",
}
NUM_SHOWN = 5  # sentences of evidence, or passages of a search, by default


@dataclass(frozen=True, kw_only=True, repr=False)
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
    boxes: "tuple[Box, ...]" = ()  # on the page, one per line of the sentence, if OCR has read it
    first: int  # character offsets in the original
    last: int
    passage: str
    start: int  # offsets of the sentence in the passage
    end: int
    weights: tuple[float, ...]  # one per hop
    score: float
    slot: int = 0  # the passage's number in the memory

    def __repr__(self) -> str:
        return f"<Evidence {shorten_text(self.sentence)} from {self.citation}>"

    @property
    def citation(self) -> str:
        """The document, and the page or line of the sentence."""
        return format_citation(self.name, self.page, self.line)

    @property
    def sentence(self) -> str:
        """The text of the sentence, verbatim."""
        return self.passage[self.start : self.end]

    @property
    def box(self) -> "Box | None":
        """The box around the lines of the sentence; None: no picture."""
        return join_boxes(self.boxes)

    def box_of(self, start: int, end: int) -> "Box | None":
        """Return the box on the page around the lines of a span of the passage."""
        first = self.passage.count("\n", self.start, start)
        return join_boxes(self.boxes[first : first + self.passage.count("\n", start, end) + 1])

    def line_of(self, position: int) -> int:
        """Return the line in the original of a position in the passage, within the sentence.

        A passage has the line breaks of the original within each sentence.
        """
        return self.line and self.line + self.passage.count("\n", self.start, position)


@dataclass(frozen=True, kw_only=True, repr=False)
class Quotation:
    """A span of a sentence of a document."""

    start: int  # offsets in the passage of its evidence
    end: int
    evidence: Evidence

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shorten_text(self.text)} from {self.citation}>"

    @property
    def text(self) -> str:
        """The text of the quotation, verbatim."""
        return self.evidence.passage[self.start : self.end]

    @property
    def line(self) -> int:
        """The line of the quotation in the original; 0: it has no lines."""
        return self.evidence.line_of(self.start)

    @property
    def citation(self) -> str:
        """The document, and the page or line of the quotation."""
        return format_citation(self.evidence.name, self.evidence.page, self.line)

    @property
    def box(self) -> "Box | None":
        """The box around the lines of the quotation; None: no picture."""
        return self.evidence.box_of(self.start, self.end)


@dataclass(frozen=True, kw_only=True, repr=False)
class RankedAnswer(Quotation):
    """One of several answers, with the sentence that it quotes."""

    score: float  # as ``Answer.score``

    def __repr__(self) -> str:
        return f"<RankedAnswer {shorten_text(self.text)} ({self.score:.2f}) from {self.citation}>"


@dataclass(frozen=True, kw_only=True)
class ResolvedDate:
    """The date of a relative time, with the date that it is counted from."""

    words: str  # the relative time, verbatim
    start: int  # its offsets in the passage of the answer
    end: int
    iso: str  # 2023-05-07, 2023-05, 2023, or a range first/last; empty: the text names two
    text: str  # "7 May 2023", "1 to 7 May 2023"; "7 May 2023 or 4 August 2023" where 05/08 is open
    source: DaySource  # of the day on which it was said
    anchor: Quotation | None  # the date that it is counted from; None: no sentence has it

    @property
    def basis(self) -> str:
        """The relative time and what it is counted from, as a text."""
        if self.anchor is not None:
            return f"“{self.words}”, counted from “{self.anchor.text}”, {self.anchor.citation}"
        return f"“{self.words}”, counted from {DAY_SOURCES[self.source]}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """The answer to a question; without a reader, the sentence that matches best.

    >>> with mnemic.Memory("lease.db") as memory:
    ...     document = memory.note("The lease ends on 30 June. The rent is 700 euros a month.")
    ...     answer = memory.ask("How much is the rent?")
    ...     unknown = memory.ask("Who owns the house?")
    >>> answer.text
    '700 euros'
    >>> answer.score > 0.5  # the probability that it is right
    True
    >>> answer.citation
    'The lease ends on 30 June. The rent is 700 euros a month., line 1'
    >>> unknown
    <Answer none to 'Who owns the house?'>
    """

    question: str
    text: str  # verbatim; empty: no answer
    score: float  # its confidence; without a reader, its softmax weight among the sentences read
    evidence: tuple[Evidence, ...]  # best first; the answer is a quotation of the first
    start: int  # offsets of the answer in the passage of the first evidence
    end: int
    ranked: tuple[RankedAnswer, ...]  # all answers, best first, whatever their confidence
    kind: AnswerKind  # a reader's span (a clause in languages it does not know), or without one a sentence
    hops: int
    looked: int  # passages in memory, all of which were searched
    read: int  # passages that were read sentence by sentence
    notes: tuple[str, ...] = ()
    date: ResolvedDate | None = None  # of a relative time in the answer, if the question asks for a time
    items: tuple[RankedAnswer, ...] = ()  # two or more, if the question asks for several answers

    def __repr__(self) -> str:
        if not self.has_answer:
            return f"<Answer none to {shorten_text(self.question)}>"
        return f"<Answer {shorten_text(self.text)} ({self.score:.2f}) from {self.citation}>"

    def _repr_html_(self) -> str:
        """Show the answer in its sentence, in a notebook."""
        if not self.has_answer:
            return f"<p>No answer to “{escape(self.question)}”</p>"
        evidence = self.evidence[0]
        last = max(self.end, evidence.end)
        before, after = evidence.passage[evidence.start : self.start], evidence.passage[self.end : last]
        quotation = f"{escape(before)}<mark>{escape(self.text)}</mark>{escape(after)}"
        date = f" = {escape(self.date.text)} <small>{escape(self.date.basis)}</small>" if self.date else ""
        items = "".join(f"<li>{escape(item.text)} <small>{escape(item.citation)}</small></li>" for item in self.items)
        return (
            f"<p><b>{escape(self.text)}</b>{date} ({self.score:.2f})</p>{f'<ul>{items}</ul>' if items else ''}"
            f"<blockquote>{quotation}<br><small>{escape(self.citation)}</small></blockquote>"
        )

    @property
    def citation(self) -> str:
        """The document, and the page or line of the answer; empty if there is none."""
        best = self.evidence[0] if self.has_answer else None
        return format_citation(best.name, best.page, self.line) if best else ""

    @property
    def line(self) -> int:
        """The line of the answer in the original; 0: none, or it has no lines."""
        return self.evidence[0].line_of(self.start) if self.has_answer else 0

    @property
    def box(self) -> "Box | None":
        """The box around the lines of the answer; None: no answer, or no picture."""
        return self.evidence[0].box_of(self.start, self.end) if self.has_answer else None

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer."""
        return bool(self.text)


class Hit(NamedTuple):
    """A passage that a search returned."""

    document: int
    name: str
    page: int | None
    text: str
    sentences: "tuple[Sentence, ...]"
    weight: float  # of the softmax over all candidates
    score: float
    box: "Box | None" = None  # on the page, around its lines; None: OCR has not read it
    slot: int = 0  # the passage's number in the memory

    def __repr__(self) -> str:
        citation = format_citation(self.name, self.page, self.sentences[0].line)
        return f"<Hit {shorten_text(self.text)} ({self.weight:.2f}) from {citation}>"


OnFound: TypeAlias = "Callable[[Sequence[Evidence]], object]"


def ignore_found(evidence: "Sequence[Evidence]") -> None:
    """Do nothing with evidence that was retrieved and is still to be read."""


def format_citation(name: str, page: int | None, line: int) -> str:
    """Format a document and the page or line of a sentence in it."""
    return name + (f", page {page}" if page else f", line {line}" if line else "")


def join_boxes(boxes: "Sequence[Box]") -> "Box | None":
    """Return the smallest box around others; None without any."""
    return boxes[0].join(boxes[1:]) if boxes else None


def shorten_text(text: str) -> str:
    """Shorten a text to one line of at most 60 characters, quoted."""
    return repr(shorten(text, 60, placeholder="…"))


def answer_to_dict(answer: Answer) -> dict[str, Any]:
    """Convert an answer to a dict for JSON, with sentences instead of passages."""
    fields = asdict(answer) | {"answer": answer.text or None, "line": answer.line or None, "box": answer.box}
    fields["evidence"] = [evidence_to_dict(evidence) for evidence in answer.evidence]
    fields["ranked"] = [ranked_to_dict(ranked) for ranked in answer.ranked]
    fields["items"] = [ranked_to_dict(item) for item in answer.items]
    if answer.date is not None and answer.date.anchor is not None:
        fields["date"]["anchor"] = quotation_to_dict(answer.date.anchor)
    return {key: fields[key] for key in ("question", "answer", *fields) if key != "text"}


def ranked_to_dict(ranked: RankedAnswer) -> dict[str, Any]:
    """Convert an answer of the ranking to a dict for JSON."""
    fields = {"answer" if key == "text" else key: value for key, value in quotation_to_dict(ranked).items()}
    return fields | {"score": ranked.score, "evidence": fields["evidence"]}


def quotation_to_dict(quotation: Quotation) -> dict[str, Any]:
    """Convert a quotation to a dict for JSON."""
    fields = {name: getattr(quotation, name) for name in ("text", "line", "box", "start", "end")}
    return fields | {"evidence": evidence_to_dict(quotation.evidence)}


def evidence_to_dict(evidence: Evidence) -> dict[str, Any]:
    """Convert evidence to a dict for JSON, with its sentence instead of its passage."""
    fields = asdict(evidence)
    del fields["passage"], fields["slot"]
    fields["boxes"] = evidence.box
    return {"sentence": evidence.sentence} | {"box" if key == "boxes" else key: fields[key] for key in fields}
