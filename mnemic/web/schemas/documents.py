"""Memories, their documents and passages."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mnemic.web.limits import MAX_TEXT_CHARS, MAX_TITLE_CHARS

Box = tuple[float, float, float, float]
BOX = "Left, top, right, bottom, as fractions of the page."


def to_box(numbers: Sequence[float]) -> Box:
    """Convert four numbers to a box."""
    x_min, top, x_max, bottom = numbers
    return x_min, top, x_max, bottom


class Body(BaseModel):
    """The body of a request; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class MemoryInfo(BaseModel):
    """A memory."""

    id: str
    name: str
    documents: int
    passages: int
    bytes: int
    embedder: str | None = Field(description="Null: it is read by words alone.")
    model_is_current: bool = Field(description="False: searched by words alone until `reindex`.")
    is_default: bool


class MemoryList(BaseModel):
    """The memories of the server."""

    memories: list[MemoryInfo]


class NewMemory(Body):
    """A memory to create."""

    name: str = Field(min_length=1, max_length=60, description="Letters, digits, - and _.")


class DocumentFields(BaseModel):
    """What is known of a document; a version that was superseded is not active."""

    id: int
    name: str = Field(description="The file, relative to its folder, or the title.")
    title: str
    kind: str
    bytes: int
    pages: int | None = Field(description="The last page that has text; null: it has no pages.")
    passages: int
    remembered_at: str
    modified_at: str | None
    is_active: bool
    source: Literal["upload", "note", "folder", "file"]
    has_original: bool
    notes: list[str] = Field(default=[], description="What could not be read of it.")


class DocumentInfo(DocumentFields):
    """A document, and how many versions it has."""

    versions: int


class DocumentList(BaseModel):
    """A page of the documents, newest first."""

    documents: list[DocumentInfo]
    next: str | None = Field(description="`after` of the next page; null on the last.")
    total: int


class EventInfo(BaseModel):
    """Something that happened to a document."""

    time: str
    kind: str = Field(description="remembered, superseded, moved, copied or gone.")
    note: str
    document: int


class DocumentHistory(DocumentFields):
    """A document with all its versions and events."""

    versions: list[DocumentInfo] = Field(description="The oldest first.")
    events: list[EventInfo]


class EventList(BaseModel):
    """A page of events, newest first."""

    events: list[EventInfo]
    next: str | None


class NewNote(Body):
    """A text to remember."""

    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    title: str = Field(default="", max_length=MAX_TITLE_CHARS)


class NewText(Body):
    """The new text of a document."""

    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)


class SentenceInfo(BaseModel):
    """A sentence of a passage."""

    start: int = Field(description="In the passage.")
    end: int
    line: int = Field(description="In the original; 0: it has no lines.")
    first: int = Field(description="In the original, in characters.")
    last: int


class PassageInfo(BaseModel):
    """A passage of a document, as it was read."""

    id: int
    page: int | None
    text: str
    sentences: list[SentenceInfo]
    boxes: list[Box] = Field(description=f"One per line, if OCR has read it. {BOX}")


class PassageList(BaseModel):
    """Some passages of a document, in its order."""

    passages: list[PassageInfo]
    next: str | None
    previous: str | None = Field(description="`after` of the page before; null at the beginning.")


class PageInfo(BaseModel):
    """A page of a document; the sizes are points, or pixels of a picture."""

    number: int
    width: float
    height: float


class PageList(BaseModel):
    """The pages of a document."""

    pages: list[PageInfo]


class Highlight(BaseModel):
    """Where words are on a page."""

    boxes: list[Box] = Field(description=BOX)


class ForgetReport(BaseModel):
    """What was erased, and whether anything is left of it."""

    documents: list[int]
    passages: int
    verified: bool = Field(description="The raw files were searched, and no trace is left.")
    traces: list[str] = Field(description="Traces that are left.")
    files_removed: int = Field(description="Uploaded files that were deleted.")
    notes: list[str] = []
