"""Find the documents that a user means by an id, a path or a folder."""

import os
from pathlib import Path

from mnemic.store.contract import Document, StoreError
from mnemic.store.ingest.parts import list_companions, list_partial_documents
from mnemic.store.relational import Store


def find_document(store: Store, target: int | str | Path) -> Document:
    """Find a document by its id (12 or "12") or its path."""
    if isinstance(target, int) or str(target).isdecimal():
        document = store.get_document(int(str(target)))
        if document is None:
            raise StoreError(f"there is no document {target}; list the documents to see their numbers")
        return document
    with store.snapshot():
        document_ids = store.find_by_path(os.path.abspath(target))
        if not document_ids:
            raise StoreError(f"nothing of {target} is remembered; list the documents to see what is")
        return find_document(store, document_ids[-1])


def resolve_ids(store: Store, target: int | str | Path) -> list[int]:
    """Return the ids of a document, or of all documents in a folder.

    With a file go the documents inside it, and what was read in part of it.
    """
    if isinstance(target, int) or not os.path.isdir(target):
        document = find_document(store, target)
        path = "" if isinstance(target, int) else os.path.abspath(target)
        return [document.id, *list_companions(store, document, path)]
    root = os.path.join(os.path.abspath(target), "")
    document_ids = {record.document for record in store.list_file_records() if record.path.startswith(root)}
    partial_documents = list_partial_documents(store)
    document_ids |= {document.id for document in partial_documents if document.title.startswith(root)}
    return sorted(document_ids) or [find_document(store, target).id]  # which raises: nothing of it is remembered
