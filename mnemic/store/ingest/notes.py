"""Remember a text that is in no file."""

from hashlib import sha256

from mnemic.store.contract import Document, Draft, StoreError
from mnemic.store.ingest.contents import embed_passages
from mnemic.store.relational import Store
from mnemic.store.retrieve.query_words import check_chinese
from mnemic.store.retrieve.stored_embedder import StoredEmbedder
from mnemic.text.documents import Anchor, DocumentError, DocumentPiece, replace_unstorable, split_passages
from mnemic.text.documents.piece import split_long_piece

NOTE_KIND = "note"  # the kind of a document that came without a file
MAX_TITLE_LENGTH = 60  # characters of a note's first line that become its title


def remember_note(store: Store, stored: StoredEmbedder, text: str, title: str, previous: Document | None) -> int:
    """Store a text that is in no file; return the id of its document."""
    text = replace_unstorable(text)
    digest = sha256(f"{NOTE_KIND}\n{text}".encode()).hexdigest()
    if (known_id := store.find_by_digest(digest)) is not None:
        if previous is not None and previous.id != known_id:
            raise StoreError(f"document {known_id} says that already; forget {previous.id} instead")
        return known_id
    check_chinese(text)
    piece = DocumentPiece(text, (Anchor(0, 0, 1),))
    note_passages = list(split_passages(split_long_piece(piece), stored.count_tokens))
    if not note_passages:
        raise DocumentError("the text is empty; there is nothing to remember")
    name = replace_unstorable(title) or note_passages[0].text[:MAX_TITLE_LENGTH].split("\n")[0]
    with store.transaction():
        for path in previous.places if previous else ():
            store.remove_file_record(path)
        draft = Draft(digest, NOTE_KIND, name, (), previous.id if previous else None)
        return store.add_document(draft, embed_passages(note_passages, stored.embedder))
