"""Erase documents from a memory and verify that no trace of them is left."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mnemic.store.contract import Document, Vectors
from mnemic.store.relational import Store
from mnemic.store.retrieve.sentence_keys import pack_vector, quantize_vectors

MAX_SAMPLED_PASSAGES = 200  # per document, about; traces of these are searched
TRACE_BYTES = 24  # long enough not to occur by chance
MAX_TEXT_TRACES, MAX_WORD_TRACES = 400, 60  # per document
MIN_TRACE_BYTES = 10  # shorter words and samples leave no trace of their own
SCRUB_FINISHED = "a process ended before it had cleared the files of what was forgotten; they have been cleared now"
SCRUB_DELAYED = (
    "what was forgotten may still be in the memory's files, because another process is reading them; "
    "`mnemic check` clears them when it has ended"
)


class ForgetResult(NamedTuple):
    """The documents that were erased, and whether the files are clean of them."""

    documents: tuple[Document, ...]
    scrubbed: bool  # False: a reader of another process kept the journal from being emptied
    traces: tuple[str, ...] | None  # traces that are left; None: not verified
    unreachable_traces: str = ""  # where traces may be that the engine cannot reach


def forget_documents(store: Store, document_ids: Sequence[int], *, verify: bool) -> ForgetResult:
    """Erase documents with their retired older versions, then scrub indexes and journals."""
    if verify:
        store.find_traces([])  # raises here, before anything is erased, if files cannot be searched
    with store.write_session(), store.lock_erasing():
        with store.snapshot():
            documents = find_erasable(store, document_ids)
            sampled_documents = documents.values() if verify else ()
            traces = [trace for document in sampled_documents for trace in sample_traces(store, document)]
        with store.transaction():
            store.erase_documents(list(documents))
        scrubbed = store.scrub()
    remaining = tuple(trace.decode("utf-8", "replace") for trace in store.find_traces(traces)) if verify else None
    return ForgetResult(tuple(documents.values()), scrubbed, remaining, store.unreachable_traces)


def find_erasable(store: Store, document_ids: Sequence[int]) -> dict[int, Document]:
    """Return documents with their retired older versions; an older one that is active stays."""
    return {
        version.id: version
        for document_id in document_ids
        for version in store.list_versions(document_id)
        if version.id == document_id or (version.id < document_id and version.retired)
    }


def finish_scrub(store: Store, *, wait: bool = False) -> None:
    """Scrub the memory if a process was killed between erasing and scrubbing; report it.

    With ``wait``, wait for readers as ``forget`` does.
    """
    if store.has_pending_scrub():
        is_clean = store.scrub() if wait else store.resume_scrub()
        if is_clean is not None:
            store.on_notice(SCRUB_FINISHED if is_clean else SCRUB_DELAYED)


def sample_traces(store: Store, document: Document) -> list[bytes]:
    """Return byte traces of a document, from evenly sampled passages of a long one."""
    step = document.passages // MAX_SAMPLED_PASSAGES + 1
    slots = [slot for slot in store.list_slots(document.id) if slot.number % step == 0]
    slot_ids = [slot.id for slot in slots]
    questions = [question for lines in store.get_questions(slot_ids).values() for question in lines]
    texts = [*(slot.passage.text for slot in slots), *questions]
    key_vectors = (store.get_sentence_vectors(slot_ids).vectors, store.get_question_vectors(slot_ids).vectors)
    return collect_traces(document, texts, store.get_vectors(slot_ids), key_vectors)


def collect_traces(
    document: Document, texts: Sequence[str], vectors: Vectors, key_vectors: Sequence[Vectors]
) -> list[bytes]:
    """Collect byte strings of a document: names, texts, words and vectors."""
    names = [document.digest, document.title, *document.places]
    traces = [name.encode() for name in names if len(name.encode()) >= MIN_TRACE_BYTES]
    text_traces = [piece for text in texts for piece in split_bytes(text)]
    long_words = {
        word.lower()
        for text in texts
        for word in text.split()
        if len(word) >= MIN_TRACE_BYTES and word.isalpha() and word.isascii()
    }
    traces += sample_evenly(text_traces, MAX_TEXT_TRACES)
    # The index stores a stemmed term without the prefix it shares with the term before.
    traces += [word[2:8].encode() for word in sample_evenly(sorted(long_words), MAX_WORD_TRACES)]
    sampled_vectors = sample_evenly(vectors, MAX_TEXT_TRACES)
    stored = [pack_vector(vector) for vector in sampled_vectors]
    coded_vectors = [*sampled_vectors, *(row for rows in key_vectors for row in sample_evenly(rows, MAX_TEXT_TRACES))]
    codes = [quantize_vectors(vector[None])[1].tobytes() for vector in coded_vectors]
    return traces + [trace for row in stored + codes if (trace := sample_bytes(row))]


def sample_bytes(stored: bytes) -> bytes:
    """Return some bytes of a stored vector, from the first that is not 0.

    The result is empty if too few of them are not 0.
    """
    sample = stored.lstrip(b"\0")
    size = 4 * TRACE_BYTES
    while size < len(sample) and size - sample[:size].count(0) < MIN_TRACE_BYTES:
        size *= 2  # vectors of short texts are mostly 0
    sample = sample[:size]
    return sample if len(sample) - sample.count(0) >= MIN_TRACE_BYTES else b""


def split_bytes(text: str) -> Iterator[bytes]:
    """Split a text into pieces of about ``TRACE_BYTES`` bytes, at character boundaries."""
    content = text.encode("utf-8", "surrogatepass")
    for start in range(0, max(len(content) - TRACE_BYTES, 1), TRACE_BYTES):
        piece = content[start : start + TRACE_BYTES].decode("utf-8", "ignore").encode()
        if len(piece) >= MIN_TRACE_BYTES:
            yield piece


def sample_evenly(items: Sequence[Any] | Vectors, limit: int) -> list[Any]:
    """Return at most ``limit`` of the items, evenly spaced."""
    step = max(len(items) // limit, 1)
    return list(items[::step])[:limit]
