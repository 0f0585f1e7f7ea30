"""The sandbox process that reads untrusted files and answers in JSON.

A request is a line of JSON, the fields of ``Request`` but the last, that comes through a socket,
standard input, together with the descriptor of the open file. Its parent kills it if it is slow.
Answers are lines on standard output: ``["piece", …]``, ``["note", TEXT]``, ``["title", TEXT]``,
``["member", NAME]``, for a view of pages ``["view", …]``, and at the end of each file ``["end"]``
or ``["error", TEXT]``.
"""

import json
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.text.documents.confine import confine_process, limit_processor_time
from mnemic.text.documents.limits import bound_parts
from mnemic.text.documents.members import expand_members
from mnemic.text.documents.piece import DocumentError, DocumentPart, DocumentPiece, Member, Note, Source
from mnemic.text.documents.registry import READERS

MAX_REQUEST_BYTES = 1 << 16


class Request(NamedTuple):
    """A file that the parent has opened, and how to read it."""

    kind: str
    name: str
    path: str
    password: str | None
    max_characters: int
    max_seconds: float
    view: dict[str, Any] | None  # of the pages, instead of the text: its name and options
    descriptor: int

    @property
    def source(self) -> Source:
        """What the reader may open: the descriptor or, without /proc, the same file."""
        path = Path(f"/proc/self/fd/{self.descriptor}")
        if not path.exists():
            path = Path(self.path)
            if not os.path.samestat(path.stat(), os.fstat(self.descriptor)):
                raise DocumentError("it was replaced by another file while it was read; remember it again")
        return Source(path, self.name, self.password)


def main(max_memory_bytes: int, parent_pid: int, *, may_start_programs: bool) -> None:
    """Answer requests until the input ends; only answers go to standard output."""
    confine_process(max_memory_bytes, parent_pid, may_start_programs=may_start_programs)
    logging.disable()
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what a library prints is no answer
    with socket.socket(fileno=0) as connection:
        for request in receive_requests(connection):
            limit_processor_time(request.max_seconds)
            for answer in answer_request(request):
                answers.write(json.dumps(answer) + "\n")
            answers.flush()


def receive_requests(connection: socket.socket) -> Iterator[Request]:
    """Yield the parent's requests; close the descriptor of each after it was read."""
    while True:
        line, descriptors = b"", list[int]()
        while not line.endswith(b"\n"):
            message, received, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 1)
            if not message:
                return
            line, descriptors = line + message, descriptors + received
        fields: list[Any] = json.loads(line)
        yield Request._make([*fields, descriptors[0]])
        os.close(descriptors[0])


def answer_request(request: Request) -> Iterator[list[Any]]:
    """Read a file and yield its parts as answers; any error becomes an answer, too."""
    try:
        source = request.source
        if request.view is not None:
            from mnemic.text.documents.pages.views import VIEWS  # imports numpy, which no other request needs

            yield from (["view", *answer] for answer in VIEWS[request.view["name"]](source, request.kind, request.view))
            yield ["end"]
            return
        parts = expand_members(READERS[request.kind](source), source, READERS)
        for document_part in bound_parts(parts, request.max_characters):
            yield encode_part(document_part)
        yield ["end"]
    except DocumentError as error:
        yield ["error", str(error)]
    except MemoryError:
        yield ["error", "it needs more memory than reading a file may take"]
    except OSError as error:
        yield ["error", error.strerror or str(error)]
    except Exception as error:  # one bad file must not stop the others
        yield ["error", f"it cannot be read: {type(error).__name__}: {error}"]


def encode_part(document_part: DocumentPart) -> list[Any]:
    """Convert a part of a document into a JSON answer."""
    if isinstance(document_part, DocumentPiece):
        return ["piece", *document_part]
    if isinstance(document_part, Member):
        return ["member", document_part.name]
    return ["note" if isinstance(document_part, Note) else "title", document_part.text]
