"""Write a large file in parts, and go on after an interruption.

Each part is a transaction. Until the file is read to its end, its documents have no place, their
titles say that they are read in part, and their digests end with the number of the last piece that
is stored. The version that the file held before stays as it is meanwhile. The next run reads the
same content again, but splits, embeds and stores only what comes after that piece.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from mnemic.store.contract import (
    DIGEST_LENGTH,
    MEMBER_SEPARATOR,
    Document,
    EmbeddedPassage,
    EmbeddedPassages,
    FileRecord,
    RaceError,
)
from mnemic.store.ingest.contents import FileMetadata, digest_of, make_file_record, path_of_member
from mnemic.store.relational import SELECT_FILE_RECORD, Store, parse_document_row

PART_PASSAGES = 256  # about; so many are written in one transaction
PART_MARK = " (read in part)"  # after the path, in the title of an unfinished document
PART_NOTE = "only a part of it was read so far; remember it again to go on"


class MemberPassages(NamedTuple):
    """Passages of one document of a file, with their embeddings."""

    member: str
    passages: list[EmbeddedPassage]


class PartWriter:
    """Writes the documents of one file, part by part."""

    def __init__(self, store: Store, metadata: FileMetadata, partial_documents: Iterable[Document]) -> None:
        self.store, self.metadata = store, metadata
        self.ids: dict[str, int] = {}  # of the documents, by member
        self.digests: dict[int, str] = {}  # of the documents, as they are stored
        self.stale_ids: list[int] = []  # documents of another content of the file
        self.position = 0  # of the last piece that is stored
        self.num_passages = 0  # that this writer wrote
        for document in partial_documents:
            member = find_member(document, str(metadata.path))
            if member is None:
                continue
            digest, position = document.digest[:DIGEST_LENGTH], document.digest[DIGEST_LENGTH + 1 :]
            if digest == digest_of(metadata.digest, member) and position.isdecimal():
                self.ids[member], self.digests[document.id] = document.id, document.digest
                self.position = max(self.position, int(position))
            else:
                self.stale_ids.append(document.id)

    def write(self, contents: Sequence[MemberPassages], position: int) -> None:
        """Write a part that ends with the piece at ``position``, in one transaction."""
        with self.store.transaction():
            for member, passages in contents:
                self.write_member(member, passages, position)
        self.position = position
        self.num_passages += sum(len(passages) for _, passages in contents)

    def write_member(self, member: str, passages: EmbeddedPassages, position: int) -> None:
        """Append passages to an unfinished document."""
        draft = self.metadata.make_draft(member, None)
        unfinished = draft._replace(
            digest=f"{draft.digest}/{position}", title=f"{draft.path}{PART_MARK}", notes=(PART_NOTE,)
        )
        if member not in self.ids:
            self.ids[member] = self.store.add_document(unfinished, passages)
        else:
            self.check_owned(self.ids[member])
            self.store.add_passages(self.ids[member], passages)
            self.store.update_metadata(self.ids[member], unfinished)
        self.digests[self.ids[member]] = unfinished.digest

    def check_owned(self, document_id: int) -> None:
        """Raise ``RaceError`` if another process has written to an unfinished document."""
        document = self.store.get_document(document_id) if self.store.lock_active_document(document_id) else None
        if document is None or document.digest != self.digests[document_id]:
            raise RaceError(f"{self.store.location}: another process reads {self.metadata.path}, too; try again")

    def finish(self, stat: os.stat_result) -> int:
        """Give the documents their places, titles and digests; return that of the file itself."""
        with self.store.transaction():
            for member, document_id in self.ids.items():
                self.check_owned(document_id)
                member_path = path_of_member(self.metadata.path, member)
                known_record = self.store.get_file_record(member_path)
                draft = self.metadata.make_draft(member, known_record.document if known_record else None)
                twin = self.store.find_by_digest(draft.digest)  # a copy that was read meanwhile
                if twin is None:
                    self.store.update_metadata(document_id, draft)
                else:
                    self.stale_ids.append(document_id)
                    self.ids[member] = twin
                self.store.put_file_record(make_file_record(member_path, self.ids[member], stat), "")
            member_paths = {path_of_member(self.metadata.path, member) for member in self.ids}
            remove_member_records(self.store, str(self.metadata.path), member_paths)
            self.erase_stale()
        return self.ids[""]

    def erase_stale(self) -> None:
        """Erase unfinished documents that are of no use any more."""
        if self.stale_ids:
            self.store.erase_documents(self.stale_ids)
            self.stale_ids = []

    def discard(self) -> None:
        """Erase all that was written of the file; it cannot be read to its end."""
        self.stale_ids += [document_id for document_id in self.ids.values() if self.store.get_document(document_id)]
        self.ids = {}
        with self.store.transaction():
            self.erase_stale()


def list_partial_documents(store: Store) -> list[Document]:
    """List the documents that are read in part, so far."""
    select = store.select_documents(f"retired IS NULL AND length(digest) > {DIGEST_LENGTH}")
    return [parse_document_row(row) for row in store.connection.fetch_all(select)]


def list_member_records(store: Store, path: str) -> list[FileRecord]:
    """List the records of the documents inside a file."""
    prefix = f"{path}{MEMBER_SEPARATOR}"
    select = f"{SELECT_FILE_RECORD} WHERE substr(path, 1, ?) = ? ORDER BY path"
    return [FileRecord(*row) for row in store.connection.fetch_all(select, (len(prefix), prefix))]


def find_member(document: Document, path: str) -> str | None:
    """Return which member of a file an unfinished document is; None: of another file."""
    member_path = document.title.removesuffix(PART_MARK)
    if member_path == path:
        return ""
    prefix = f"{path}{MEMBER_SEPARATOR}"
    return member_path.removeprefix(prefix) if member_path.startswith(prefix) else None


def list_companions(store: Store, document: Document, path: str) -> list[int]:
    """List the documents that are forgotten with a document, which is found at ``path``.

    They are those inside its files, what the file holds, and what was read in part of it.
    """
    paths = {*document.places, path}
    companions = {record.document for file_path in paths for record in list_member_records(store, file_path)}
    companions |= {record.document for file_path in paths if (record := store.get_file_record(file_path))}
    for partial in list_partial_documents(store):
        if any(find_member(partial, file_path) is not None for file_path in paths):
            companions.add(partial.id)
    return sorted(companions - {document.id})


def remove_member_records(store: Store, path: str, member_paths: Collection[str]) -> None:
    """Remove the records of documents that were inside a file, but for these paths."""
    for record in list_member_records(store, path):
        if record.path not in member_paths:
            store.remove_file_record(record.path)
