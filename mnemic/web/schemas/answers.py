"""Questions, searches, and what a memory answers."""

from typing import Literal

from pydantic import BaseModel, Field

from mnemic.web.limits import MAX_QUESTION_CHARS, MAX_RESULTS
from mnemic.web.schemas.documents import BOX, Body, Box, SentenceInfo

Source = Literal["upload", "note", "folder", "file"]
DAY = "2024-03-31, 2024-03 or 2024."


class FilterFields(Body):
    """Conditions that leave documents out."""

    inside: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Only this folder or file, named as in a document's name.",
    )
    kind: str | None = Field(default=None, max_length=40, description="Only this kind, such as pdf or note.")
    since: str | None = Field(default=None, max_length=10, description=f"Only files changed since: {DAY}")
    until: str | None = Field(default=None, max_length=10, description=f"Only files changed until: {DAY}")


class Question(FilterFields):
    """A question to a memory."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    hops: int = Field(default=1, ge=1, le=4, description="Reads; later ones also use what the first found.")
    passages: int = Field(default=5, ge=1, le=MAX_RESULTS, description="Passages to read per hop.")
    lexical: float | None = Field(default=None, ge=0, le=1, description="Weight of BM25 beside vectors.")
    confidence: float | None = Field(default=None, ge=0, le=1, description="Least probability; 0: always answer.")


class Query(FilterFields):
    """Words to search for."""

    query: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    limit: int = Field(default=10, ge=1, le=MAX_RESULTS)


class EvidenceInfo(BaseModel):
    """A sentence that was read, and where it is."""

    sentence: str = Field(description="Verbatim.")
    document: int
    name: str
    page: int | None
    line: int = Field(description="0: the original has no lines.")
    box: Box | None = Field(description=BOX)
    first: int = Field(description="In the original, in characters.")
    last: int
    start: int = Field(description="In the passage.")
    end: int
    weights: list[float] = Field(description="Read weight of its passage, one per hop.")
    score: float
    passage: int = Field(description="The passage's id.")
    kind: str = Field(description="The document's kind.")
    source: Source
    place: str = Field(description="A citation: the document, and the page or line.")
    confidence_words: str = Field(description="How much of the reading went to its passage.")


class RankedInfo(BaseModel):
    """One of several answers, best first."""

    answer: str
    line: int
    box: Box | None
    start: int
    end: int
    score: float
    confidence_words: str
    evidence: EvidenceInfo


class DateInfo(BaseModel):
    """The date of a relative time, such as "yesterday", and what it is counted from."""

    words: str = Field(description="Verbatim.")
    start: int = Field(description="In the passage of the answer.")
    end: int
    iso: str = Field(description="2023-05-07, 2023-05, 2023, or first/last; empty: the text allows two readings.")
    text: str = Field(description="For people: 7 May 2023.")
    source: str = Field(description="Of the day on which it was said: text, name, remembered or file.")
    anchor: str | None = Field(description="The date that it is counted from, verbatim.")
    anchor_start: int | None = Field(description="Of these words, in the passage of their evidence.")
    anchor_end: int | None
    anchor_evidence: EvidenceInfo | None


class AnswerInfo(BaseModel):
    """An answer with its evidence."""

    question: str
    answer: str | None = Field(description="A verbatim quotation; null: nothing supports an answer.")
    line: int | None
    box: Box | None
    score: float = Field(description="The probability that the answer is right.")
    confidence_words: str
    evidence: list[EvidenceInfo] = Field(description="Best first; the answer quotes the first.")
    start: int = Field(description="Of the answer, in the passage of the first evidence.")
    end: int
    ranked: list[RankedInfo]
    items: list[RankedInfo] = Field(description="If the question asks for several: each with its own evidence.")
    date: DateInfo | None = Field(description="If the answer is a relative time.")
    kind: Literal["span", "sentence"]
    hops: int
    looked: int = Field(description="Passages in memory, all of which were searched.")
    read: int = Field(description="Passages that were read sentence by sentence.")
    notes: list[str]
    place: str = Field(description="The citation of the answer; empty without one.")
    seconds: float


class FoundEvidence(BaseModel):
    """What was retrieved, before it is read."""

    evidence: list[EvidenceInfo]


class HitInfo(BaseModel):
    """A passage that a search found."""

    passage: int
    document: int
    name: str
    kind: str
    source: Source
    place: str
    page: int | None
    line: int
    text: str
    sentences: list[SentenceInfo]
    weight: float
    score: float
    box: Box | None


class HitList(BaseModel):
    """Passages, best first."""

    query: str = Field(description="As it was read, with spelling corrected.")
    hits: list[HitInfo]
