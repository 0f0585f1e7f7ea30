"""Pages of documents as pictures, made in confined processes."""

from base64 import b64decode
from queue import Empty, SimpleQueue
from typing import Any

from mnemic.store.contract import Document, MemorySlot
from mnemic.store.ingest.contents import find_container
from mnemic.text.documents import Box, DocumentError, DocumentParser, Limits
from mnemic.web.jobs.pools import WorkerPool
from mnemic.web.limits import WebLimits
from mnemic.web.memories import ServedMemory
from mnemic.web.problems import Problem, make_sentence

PAGED_KINDS = ("pdf", "picture")
NO_PAGES = "Document {id} has no pages that can be shown: it is no PDF or picture, or its file is not here any more."


class PageRenderer:
    """A few sandbox processes; one that fails is replaced."""

    def __init__(self, limits: WebLimits) -> None:
        self.limits = Limits(timeout_s=limits.render_timeout_s)
        self.pool = WorkerPool("page", limits.num_renderers, limits.max_waiting, limits.render_timeout_s)
        self.parsers: SimpleQueue[DocumentParser] = SimpleQueue()

    def view(self, served: ServedMemory, document: Document, name: str, **options: Any) -> list[list[Any]]:
        """Return a view of a document's pages, or raise a problem."""
        store, files = served.memory.store, served.files
        has_pages = document.kind in PAGED_KINDS and any(find_container(path) == path for path in document.places)
        file = files.open_original(store, document) if has_pages else None
        if file is None:
            raise Problem(404, NO_PAGES.format(id=document.id))
        with file:
            parser = self.take_parser()
            try:
                return parser.view(file, document.kind, name, **options)
            except DocumentError as error:
                parser.stop_worker()
                raise Problem(422, make_sentence(f"the page cannot be shown: {error}")) from None
            finally:
                self.parsers.put(parser)

    def take_parser(self) -> DocumentParser:
        """Take a parser that is free, or make one."""
        try:
            parser = self.parsers.get_nowait()
        except Empty:
            parser = DocumentParser(self.limits)
        parser.num_timeouts = 0  # one bad page does not take time from others
        return parser

    def close(self) -> None:
        """End the processes."""
        self.pool.close()
        while True:
            try:
                self.parsers.get_nowait().stop_worker()
            except Empty:
                return


def join_image(parts: list[list[Any]]) -> bytes:
    """Join the parts of a picture that a sandbox process sent."""
    return b64decode("".join(text for (text,) in parts), validate=True)


def find_line_boxes(slot: MemorySlot, start: int, end: int) -> tuple[Box, ...]:
    """Return the boxes of a span's lines, if OCR has read them."""
    passage = slot.passage
    sentence = next((row for row in reversed(passage.sentences) if row.start <= start), passage.sentences[0])
    offset = max(sentence.line - passage.sentences[0].line, 0)
    first = offset + passage.text.count("\n", sentence.start, start)
    return passage.boxes[first : first + passage.text.count("\n", start, end) + 1]
