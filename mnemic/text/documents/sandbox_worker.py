"""The sandbox process that reads untrusted files and answers in JSON.

It starts with a memory limit, and its parent kills it when it takes too long. A line of input is
``["KIND", "PATH"]``; lines of output are ``["piece", …]``, ``["note", TEXT]``, ``["title", TEXT]``,
and at the end of each file ``["end"]`` or ``["error", TEXT]``.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mnemic.text.documents.piece import DocumentError, DocumentPart, DocumentPiece, Note
from mnemic.text.documents.registry import READERS


def main(memory: int) -> None:
    """Answer requests until the input ends; only answers go to standard output."""
    limit_memory(memory)
    logging.disable()
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    for line in sys.stdin:
        for answer in answer_request(*json.loads(line)):
            answers.write(json.dumps(answer) + "\n")
        answers.flush()


def answer_request(kind: str, path: str) -> Iterator[list[Any]]:
    """Read a file and yield its parts as answers; any error becomes an answer, too."""
    try:
        for document_part in READERS[kind](Path(path)):
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
    return ["note" if isinstance(document_part, Note) else "title", document_part.text]


def limit_memory(size: int) -> None:
    """Limit the memory of this process to ``size`` bytes."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
