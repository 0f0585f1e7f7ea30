"""The routes of documents: lists, notes, texts, history, and forgetting."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from mnemic.store.contract import Document, MissingMemoryError
from mnemic.store.retrieve.filters import make_filters
from mnemic.web.describe import describe_document, describe_event, describe_fields, describe_passage
from mnemic.web.forget import forget_with_files
from mnemic.web.limits import MAX_NUMBER, MAX_PAGE_ROWS
from mnemic.web.memories import ServedMemory
from mnemic.web.problems import Problem, document_problems
from mnemic.web.schemas.documents import (
    DocumentHistory,
    DocumentInfo,
    DocumentList,
    EventList,
    ForgetReport,
    NewNote,
    NewText,
    PassageList,
)
from mnemic.web.server import Served, Server

READ_PROBLEMS = document_problems(404, 422, 429, 504)
WRITE_PROBLEMS = document_problems(404, 409, 422, 429, 503, 504)
DocumentId = Annotated[int, Path(ge=1, le=MAX_NUMBER, description="A document's number.")]
Cursor = Annotated[int | None, Query(ge=0, le=MAX_NUMBER)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_ROWS)]
Day = Annotated[str | None, Query(max_length=10)]
router = APIRouter(prefix="/v1/memories/{m}", tags=["documents"])


def find_document(served: ServedMemory, document_id: int) -> Document:
    """Return a document by its number, or raise a problem."""
    document = served.memory.store.get_document(document_id)
    if document is None:
        raise Problem(404, f"There is no document {document_id} in the memory {served.name!r}; it may be forgotten.")
    return document


def select_documents(served: ServedMemory, query: str, kind: str | None, since: str | None, until: str | None,
                     *, retired: bool) -> list[Document]:  # fmt: skip
    """Select documents by the words of their names, kind and time, newest first."""
    memory, words = served.memory, query.casefold().split()
    try:
        documents = memory.memories(retired=retired)
        fitting_ids = memory.store.find_documents(make_filters(None, kind or None, since or None, until or None))
    except MissingMemoryError:
        return []
    is_fitting = None if fitting_ids is None else set(fitting_ids)
    selected = []
    for document in reversed(documents):
        if is_fitting is not None and document.id not in is_fitting:
            continue
        text = f"{served.files.describe_document(document).name} {document.title}".casefold() if words else ""
        if all(word in text for word in words):
            selected.append(document)
    return selected


@router.get("/documents", responses=READ_PROBLEMS)
async def list_documents(
    served: Served,
    server: Server,
    query: Annotated[str, Query(max_length=200, description="Words of the name or title.")] = "",
    kind: Annotated[str | None, Query(max_length=40)] = None,
    since: Day = None,
    until: Day = None,
    retired: bool = False,
    limit: Limit = 50,
    after: Cursor = None,
) -> DocumentList:
    """List the documents of a memory, newest first."""

    def list_page() -> DocumentList:
        documents = select_documents(served, query, kind, since, until, retired=retired)
        rest = [document for document in documents if after is None or document.id < after]
        rows = [describe_document(served, document) for document in rest[:limit]]
        next_after = str(rows[-1].id) if len(rest) > limit else None
        return DocumentList(documents=rows, next=next_after, total=len(documents))

    return await server.readers.run(list_page)


@router.post("/notes", status_code=201, responses=WRITE_PROBLEMS)
async def add_note(body: NewNote, served: Served, server: Server) -> DocumentInfo:
    """Remember a text that is in no file."""

    def write() -> DocumentInfo:
        with served.turns.take(server.options.limits.write_timeout_s):
            document_id = served.memory.note(body.text, body.title)
        return describe_document(served, find_document(served, document_id))

    return await server.writers.run(write)


@router.put("/documents/{document_id}", status_code=201, responses=WRITE_PROBLEMS)
async def replace_document(body: NewText, document_id: DocumentId, served: Served, server: Server) -> DocumentInfo:
    """Replace a document by a new text; the old version stays in its history."""

    def write() -> DocumentInfo:
        with served.turns.take(server.options.limits.write_timeout_s):
            find_document(served, document_id)
            new_id = served.memory.update(document_id, body.text)
        return describe_document(served, find_document(served, new_id))

    return await server.writers.run(write)


@router.get("/documents/{document_id}", responses=READ_PROBLEMS)
async def get_document(document_id: DocumentId, served: Served, server: Server) -> DocumentHistory:
    """Describe a document with all its versions and events."""

    def describe() -> DocumentHistory:
        document = find_document(served, document_id)
        versions, events = served.memory.history(document_id)
        return DocumentHistory(
            **describe_fields(served, document),
            versions=[describe_document(served, version, len(versions)) for version in versions],
            events=[describe_event(served.files, event) for event in events],
        )

    return await server.readers.run(describe)


@router.get("/documents/{document_id}/passages", responses=READ_PROBLEMS)
async def list_passages(
    document_id: DocumentId,
    served: Served,
    server: Server,
    limit: Limit = 50,
    after: Annotated[
        int | None, Query(ge=-1, le=MAX_NUMBER, description="`next` or `previous` of another page.")
    ] = None,
    around: Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="A passage to begin near.")] = None,
) -> PassageList:
    """List the passages of a document: its text, as it was read."""

    def list_page() -> PassageList:
        document, store = find_document(served, document_id), served.memory.store
        first = 0 if after is None else after
        if around is not None:
            slots = store.read_slots("WHERE id = ? AND document = ?", around, document_id)
            if not slots:
                raise Problem(404, f"There is no passage {around} in document {document_id}.")
            first = max(0, slots[0].number - limit // 2)
        where = "WHERE document = ? AND number >= ? ORDER BY number LIMIT ?"
        slots = store.read_slots(where, document_id, first, limit)
        end = first + limit
        return PassageList(
            passages=[describe_passage(slot) for slot in slots],
            next=str(end) if end < document.passages else None,
            previous=str(max(0, first - limit)) if first > 0 else None,
        )

    return await server.readers.run(list_page)


@router.get("/history", responses=READ_PROBLEMS)
async def list_history(served: Served, server: Server, limit: Limit = 50, after: Cursor = None) -> EventList:
    """List what happened in a memory, newest first."""

    def list_page() -> EventList:
        try:
            documents = served.memory.memories(retired=True)
        except MissingMemoryError:
            documents = []
        rows = served.memory.store.list_events([document.id for document in documents]) if documents else []
        first = after or 0
        events = list(reversed(rows))[first : first + limit]
        next_after = str(first + limit) if first + limit < len(rows) else None
        return EventList(events=[describe_event(served.files, event) for event in events], next=next_after)

    return await server.readers.run(list_page)


@router.delete("/documents/{document_id}", responses=WRITE_PROBLEMS)
async def forget_document(
    document_id: DocumentId,
    served: Served,
    server: Server,
    verify: Annotated[bool, Query(description="Search the raw files for traces.")] = False,
) -> ForgetReport:
    """Erase a document with all its versions, and the file that was uploaded."""

    def forget() -> ForgetReport:
        with served.turns.take(server.options.limits.write_timeout_s):
            find_document(served, document_id)
            return forget_with_files(served, server.jobs, document_id, verify=verify)

    return await server.writers.run(forget)
