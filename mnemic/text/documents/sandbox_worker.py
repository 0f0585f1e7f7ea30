"""The process that reads strangers' files: it takes paths on standard input and answers in JSON.

It is started with little memory, and whoever started it ends it when it takes too long. A line of
input is ``["KIND", "PATH"]``; lines of output are ``["piece", …]``, ``["note", TEXT]``,
``["title", TEXT]``, and at the end of each file ``["end"]`` or ``["error", TEXT]``.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mnemic.text.documents.piece import DocumentError, Note, Part, Piece
from mnemic.text.documents.registry import READERS


def main(memory: int) -> None:
    """Answer until the input ends. Nothing but answers goes to standard output."""
    limit_memory(memory)
    logging.disable()
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    for line in sys.stdin:
        for answer in answered(*json.loads(line)):
            answers.write(json.dumps(answer) + "\n")
        answers.flush()


def answered(kind: str, path: str) -> Iterator[list[Any]]:
    """A file as answers; whatever goes wrong is one, too."""
    try:
        for part in READERS[kind](Path(path)):
            yield told(part)
        yield ["end"]
    except DocumentError as error:
        yield ["error", str(error)]
    except MemoryError:
        yield ["error", "it needs more memory than reading a file may take"]
    except OSError as error:
        yield ["error", error.strerror or str(error)]
    except Exception as error:  # one file must not end the others
        yield ["error", f"it cannot be read: {type(error).__name__}: {error}"]


def told(part: Part) -> list[Any]:
    if isinstance(part, Piece):
        return ["piece", *part]
    return ["note" if isinstance(part, Note) else "title", part.text]


def limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
