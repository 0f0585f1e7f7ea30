"""The routes of long texts that are read into one memory."""

import asyncio

from fastapi import APIRouter, Request, Response

from mnemic.web.jobs.table import make_record
from mnemic.web.problems import document_problems
from mnemic.web.schemas.jobs import JobAccepted
from mnemic.web.schemas.networks import NewLongText, TextAnswer, TextInfo, TextList, TextQuestion
from mnemic.web.server import Server

PROBLEMS = document_problems(404, 422, 429, 504)
router = APIRouter(prefix="/v1/texts", tags=["texts"])


@router.get("", responses=PROBLEMS)
async def list_texts(server: Server) -> TextList:
    """List the long texts that were read."""

    def collect() -> TextList:
        return TextList(texts=[server.texts.summarize(text_id) for text_id in server.texts.list_ids()])

    return await server.readers.run(collect)


@router.post("", status_code=202, responses=PROBLEMS | document_problems(507))
async def read_text(body: NewLongText, server: Server) -> JobAccepted:
    """Read a long text into a memory; the job's result is its id."""
    record = make_record("text")
    job = await asyncio.to_thread(server.jobs.start, record, lambda job: server.texts.read(job, body))
    return JobAccepted(job=job.describe())


@router.get("/{text_id}", responses=PROBLEMS)
async def get_text(text_id: str, server: Server) -> TextInfo:
    """Describe a long text: what is in the slots, and how that changed."""
    return await server.readers.run(lambda: server.texts.describe(text_id))


@router.post("/{text_id}/ask", responses=PROBLEMS)
async def ask_text(text_id: str, body: TextQuestion, server: Server, request: Request) -> TextAnswer:
    """Answer a question from the memory of a long text."""
    request.state.audit = {"question": body.question}
    return await server.readers.run(lambda: server.texts.ask(text_id, body.question))


@router.delete("/{text_id}", status_code=204, responses=PROBLEMS)
async def delete_text(text_id: str, server: Server) -> Response:
    """Delete a long text and its memory."""

    def delete() -> None:
        server.texts.delete(text_id)
        server.jobs.remove_text(text_id)

    await server.writers.run(delete)
    return Response(status_code=204)
