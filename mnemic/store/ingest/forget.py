"""Erase documents from a memory and verify that no trace of them is left."""

from collections.abc import Sequence
from typing import NamedTuple

from mnemic.store.contract import Document, Store
from mnemic.store.sqlite.residue import collect_traces

MAX_SAMPLED_PASSAGES = 200  # per document, about; traces of these are searched


class ForgetResult(NamedTuple):
    """The documents that were erased, and whether the files are clean of them."""

    documents: tuple[Document, ...]
    scrubbed: bool  # False: a reader of another process kept the journal from being emptied
    traces: tuple[str, ...] | None  # traces that are left; None: not verified
    unreachable_traces: str = ""  # where traces may be that the engine cannot reach


def forget_documents(store: Store, document_ids: Sequence[int], *, verify: bool) -> ForgetResult:
    """Erase documents with their older versions, then scrub indexes and journals."""
    if verify:
        store.find_traces([])  # raises here, before anything is erased, if files cannot be searched
    documents = {
        version.id: version for document_id in document_ids for version in list_versions_to_erase(store, document_id)
    }
    traces = [trace for document in documents.values() for trace in sample_traces(store, document)] if verify else []
    with store.write_session():
        with store.transaction():
            store.erase_documents(list(documents))
        scrubbed = store.scrub()
    remaining_traces = store.find_traces(traces) if verify else None
    trace_texts = (
        None if remaining_traces is None else tuple(trace.decode("utf-8", "replace") for trace in remaining_traces)
    )
    return ForgetResult(tuple(documents.values()), scrubbed, trace_texts, store.describe_unreachable_traces())


def finish_scrub(store: Store) -> None:
    """Scrub the memory if a process was killed between erasing and scrubbing."""
    if store.has_pending_scrub():
        store.scrub()


def list_versions_to_erase(store: Store, document_id: int) -> list[Document]:
    """Return a document and its retired older versions; an active older version stays."""
    versions = store.list_versions(document_id)
    return [
        version for version in versions if version.id == document_id or (version.id < document_id and version.retired)
    ]


def sample_traces(store: Store, document: Document) -> list[bytes]:
    """Return byte traces of a document, from evenly sampled passages of a long one."""
    step = document.passages // MAX_SAMPLED_PASSAGES + 1
    slots = [slot for slot in store.list_slots(document.id) if slot.number % step == 0]
    slot_ids = [slot.id for slot in slots]
    return collect_traces(document, slots, store.get_vectors(slot_ids), store.get_sentence_vectors(slot_ids).vectors)
