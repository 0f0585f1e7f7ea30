"""Queries for documents and their files that all engines share, and what their rows hold."""

import json
from typing import Any

from mnemic.store.contract import DamageError, Document

DOCUMENT_COLUMNS = "id, digest, kind, title, notes, previous, remembered, retired, passages, characters"
COUNTED_ROWS = {
    "documents": "documents WHERE retired IS NULL",
    "retired": "documents WHERE retired IS NOT NULL",
    "places": "places",
    "vectors": "vectors",
}
SELECT_FILE_RECORD = "SELECT path, document, size, modified FROM places"
SELECT_VERSIONS = """
    WITH RECURSIVE older (id) AS (
        SELECT CAST(? AS bigint) UNION
        SELECT previous FROM documents JOIN older USING (id) WHERE previous IS NOT NULL
    ), newer (id) AS (
        SELECT CAST(? AS bigint) UNION
        SELECT documents.id FROM documents JOIN newer ON previous = newer.id
    )
    SELECT id FROM older UNION SELECT id FROM newer
"""


def parse_document_row(row: tuple[Any, ...]) -> Document:
    """Convert a row of ``select_documents`` to a document."""
    document = Document._make(row)
    try:
        notes, paths = json.loads(row[4]), sorted(json.loads(row[-1]))
    except (ValueError, TypeError):
        raise DamageError(f"document {document.id}") from None
    texts = (document.digest, document.kind, document.title, document.remembered, document.retired or "", *notes)
    numbers = (document.id, document.passages, document.characters)
    if not (all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)):
        raise DamageError(f"document {document.id}")
    return document._replace(notes=tuple(notes), places=tuple(paths))
