"""The routes of a document's file, its pages, and boxes of words."""

import os
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse

from mnemic.text.documents import OpenFile
from mnemic.web.limits import MAX_NUMBER
from mnemic.web.pages import find_line_boxes, join_image
from mnemic.web.problems import Problem, document_problems
from mnemic.web.routes.documents import DocumentId, find_document
from mnemic.web.schemas.documents import Highlight, PageInfo, PageList, to_box
from mnemic.web.server import Served, Server

BLOCK_BYTES = 1 << 18
MAX_PAGE = 100_000
PROBLEMS = document_problems(404, 422, 429, 504)
PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The page.", "content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}
}
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
PageNumber = Annotated[int, Path(ge=1, le=MAX_PAGE, description="From 1.")]
Offset = Annotated[int | None, Query(ge=0, le=MAX_NUMBER)]
router = APIRouter(prefix="/v1/memories/{m}/documents/{document_id}", tags=["pages"])


def read_blocks(file: OpenFile) -> Iterator[bytes]:
    """Yield the content of a file, and close it."""
    with file:
        position = 0
        while block := os.pread(file.descriptor, BLOCK_BYTES, position):
            position += len(block)
            yield block


@router.get("/original", response_class=StreamingResponse, responses=PROBLEMS | FILE)
async def get_original(document_id: DocumentId, served: Served, server: Server) -> StreamingResponse:
    """Return the file of a document, as an attachment."""

    def open_file() -> OpenFile:
        document = find_document(served, document_id)
        file = served.files.open_original(served.memory.store, document)
        if file is None:
            raise Problem(
                404, f"The file of document {document_id} is not here, has changed, or is in no folder of this server."
            )
        return file

    file = await server.readers.run(open_file)
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.path.name, safe='', errors='replace')}",
        "Content-Length": str(file.stat.st_size),
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(read_blocks(file), media_type="application/octet-stream", headers=headers)


@router.get("/pages", responses=PROBLEMS)
async def list_pages(document_id: DocumentId, served: Served, server: Server) -> PageList:
    """List the pages of a PDF or a picture."""

    def list_sizes() -> PageList:
        sizes = server.pages.view(served, find_document(served, document_id), "sizes")
        rows = [PageInfo(number=number, width=width, height=height) for number, (width, height) in enumerate(sizes, 1)]
        return PageList(pages=rows)

    return await server.pages.pool.run(list_sizes)


@router.get("/pages/{number}/image", response_class=Response, responses=PROBLEMS | PICTURE)
async def get_page_image(
    document_id: DocumentId,
    number: PageNumber,
    served: Served,
    server: Server,
    width: Annotated[int, Query(ge=50, le=2400, description="Pixels.")] = 900,
) -> Response:
    """Return a page as a picture."""

    def render() -> bytes:
        document = find_document(served, document_id)
        return join_image(server.pages.view(served, document, "image", page=number, width=width))

    return Response(await server.pages.pool.run(render), media_type="image/png")


@router.get("/pages/{number}/highlight", responses=PROBLEMS)
async def find_highlight(
    document_id: DocumentId,
    number: PageNumber,
    served: Served,
    server: Server,
    passage: Annotated[int, Query(ge=1, le=MAX_NUMBER, description="The passage's id.")],
    start: Offset = None,
    end: Offset = None,
) -> Highlight:
    """Return the boxes of a span of a passage, or of all of it."""

    def find() -> Highlight:
        document = find_document(served, document_id)
        slots = served.memory.store.read_slots("WHERE id = ? AND document = ?", passage, document_id)
        if not slots or (slots[0].passage.page or 1) != number:
            raise Problem(404, f"There is no passage {passage} on page {number} of document {document_id}.")
        text = slots[0].passage.text
        first, last = start or 0, len(text) if end is None else min(end, len(text))
        if first >= last:
            raise Problem(
                422, f"The span from {start} to {end} is empty, or outside of the passage of {len(text)} characters."
            )
        if slots[0].passage.boxes:
            boxes = [to_box(box) for box in find_line_boxes(slots[0], first, last)]
        else:
            options = {"page": number, "text": text, "start": first, "end": last}
            boxes = [to_box(row) for row in server.pages.view(served, document, "words", **options)]
        return Highlight(boxes=boxes)

    return await server.pages.pool.run(find)
