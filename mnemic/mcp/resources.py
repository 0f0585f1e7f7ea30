"""The documents of a memory as resources, listed in pages and read in parts."""

import re
from typing import TYPE_CHECKING

from mcp_types import ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from mnemic.mcp.arguments import MAX_NUMBER
from mnemic.mcp.results import UNTRUSTED, clean_text, mark_untrusted
from mnemic.mcp.tools import check_documents, select_documents

if TYPE_CHECKING:
    from mnemic.store import Memory

PAGE_SIZE = 100  # resources of one page of the list
PART_CHARS = 50_000  # of a document; a longer one is read in parts
URI = "mnemic://document/{document}"
PART_URI = "mnemic://document/{document}/{part}"
TEXT_TYPE = "text/plain"
TEMPLATES = [
    ResourceTemplate(
        name="document",
        title="Text of a document",
        uri_template=PART_URI,
        description="The text of a document by its number; long ones in parts: 1, 2, 3 …",
        mime_type=TEXT_TYPE,
    )
]


def list_resources(memory: "Memory", cursor: str | None) -> ListResourcesResult:
    """List the documents with numbers above that of the cursor, one page."""
    after = parse_number(cursor) if cursor else 0
    documents = select_documents(memory, after, PAGE_SIZE)
    resources = [
        Resource(
            uri=URI.format(document=document.id),
            name=clean_text(document.name),
            title=clean_text(document.title),
            description=f"{document.kind}, {document.passages} passages, remembered {document.remembered}",
            mime_type=TEXT_TYPE,
        )
        for document in documents
    ]
    next_cursor = str(documents[-1].id) if len(documents) == PAGE_SIZE else None
    return ListResourcesResult(resources=resources, next_cursor=next_cursor)


def read_resource(memory: "Memory", uri: str) -> ReadResourceResult:
    """Read the text of a document, or a part of it, between marks."""
    match = re.fullmatch(r"mnemic://document/(\d{1,19})(?:/(\d{1,19}))?", uri, re.ASCII)
    if match is None:
        raise ValueError(f"a resource is mnemic://document/NUMBER or …/NUMBER/PART, not {uri[:80]!r}")
    document, part_number = parse_number(match[1]), parse_number(match[2] or "1")
    check_documents(memory, [document])
    text = memory.text(document)
    num_parts = max(1, -(-len(text) // PART_CHARS))
    if not 1 <= part_number <= num_parts:
        raise ValueError(f"document {document} has {num_parts} parts, numbered from 1; there is no part {part_number}")
    body = mark_untrusted(clean_text(text[(part_number - 1) * PART_CHARS : part_number * PART_CHARS]))
    if num_parts > 1:
        body += f"\nPart {part_number} of {num_parts}"
        if part_number < num_parts:
            body += f"; the next is {PART_URI.format(document=document, part=part_number + 1)}"
    content = TextResourceContents(uri=uri, mime_type=TEXT_TYPE, text=body, _meta={"untrusted": UNTRUSTED})
    return ReadResourceResult(contents=[content])


def parse_number(text: str) -> int:
    """Parse a number of a URI or cursor; raise if no document can have it."""
    if not text.isascii() or not text.isdecimal() or int(text[:20]) > MAX_NUMBER:
        raise ValueError(f"{text[:80]!r} is no number of a document")
    return int(text)
