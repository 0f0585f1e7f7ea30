"""The routes of questions and searches."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from mnemic.store.answers import Evidence
from mnemic.web.describe import AnswerWriter, clean
from mnemic.web.events import EVENT_STREAM, STREAM_RESPONSE, format_event
from mnemic.web.memories import ServedMemory
from mnemic.web.problems import convert_error, document_problems
from mnemic.web.schemas.answers import AnswerInfo, FilterFields, FoundEvidence, HitList, Query, Question
from mnemic.web.server import Served, Server

PROBLEMS = document_problems(404, 422, 429, 504)
router = APIRouter(prefix="/v1/memories/{m}", tags=["ask"])


def make_filters(served: ServedMemory, fields: FilterFields) -> dict[str, Any]:
    """Make the filters as keywords of ``Memory.ask``; a folder becomes its path."""
    path = served.files.find_place(fields.inside) if fields.inside else None
    return {"inside": path, "kind": fields.kind or None, "since": fields.since, "until": fields.until}


def answer_question(
    served: ServedMemory, body: Question, on_found: Callable[[FoundEvidence], object] | None = None
) -> AnswerInfo:
    """Answer a question; ``on_found`` is called with what was retrieved, before it is read."""
    started, writer = time.monotonic(), AnswerWriter(served)
    options = make_filters(served, body) | {"hops": body.hops, "passages": body.passages, "lexical": body.lexical}
    if body.confidence is not None:
        options["confidence"] = body.confidence
    if on_found is not None:

        def report_found(evidence: Sequence[Evidence]) -> None:
            on_found(FoundEvidence(evidence=[writer.describe_evidence(row) for row in evidence]))

        options["on_found"] = report_found
    answer = served.memory.ask(body.question, **options)
    return writer.describe_answer(answer, time.monotonic() - started)


def search_passages(served: ServedMemory, body: Query) -> HitList:
    """Find passages by words and meaning."""
    writer, query = AnswerWriter(served), served.memory.correct(body.query)
    hits = served.memory.search(query, body.limit, **make_filters(served, body))
    return HitList(query=clean(query), hits=[writer.describe_hit(hit) for hit in hits])


@router.post("/ask", response_model=AnswerInfo, responses=PROBLEMS | STREAM_RESPONSE)
async def ask(body: Question, served: Served, server: Server, request: Request) -> AnswerInfo | StreamingResponse:
    """Answer a question from the documents of a memory, with the evidence.

    A client that accepts `text/event-stream` gets the events `found`, with the passages as they
    were retrieved, and `answer`, or `problem`.
    """
    request.state.audit = {"question": body.question}
    if EVENT_STREAM not in request.headers.get("accept", ""):
        return await server.readers.run(lambda: answer_question(served, body))
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[tuple[str, BaseModel | dict[str, Any]] | None]()

    def report(name: str, value: BaseModel | dict[str, Any]) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, (name, value))

    def run() -> None:
        try:
            report("answer", answer_question(served, body, lambda evidence: report("found", evidence)))
        except Exception as error:
            report("problem", convert_error(error).describe(request.url.path))

    work = server.readers.submit(run)  # too much work is a problem before the stream begins

    async def stream() -> AsyncIterator[bytes]:
        waiter = asyncio.ensure_future(server.readers.wait_for(work))
        waiter.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield format_event(*event)
            if isinstance(error := waiter.exception(), Exception):
                yield format_event("problem", convert_error(error).describe(request.url.path))
        finally:
            waiter.cancel()

    return StreamingResponse(stream(), media_type=EVENT_STREAM)


@router.post("/search", responses=PROBLEMS)
async def search(body: Query, served: Served, server: Server, request: Request) -> HitList:
    """Find passages by their words and their meaning, best first."""
    request.state.audit = {"query": body.query}
    return await server.readers.run(lambda: search_passages(served, body))
