"""The files of documents: what they are called, and which may be served.

Uploads lie in a private folder beside the memory. Of all other files only those in the folders that
the server was started with are served, and only while they are what was remembered.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from mnemic.store.contract import Document
from mnemic.store.ingest.contents import find_container
from mnemic.store.ingest.notes import NOTE_KIND
from mnemic.store.locate import find_home_folder
from mnemic.store.postgres.address import Address
from mnemic.store.relational import Store
from mnemic.text.documents import DocumentError, OpenFile

Source = Literal["upload", "note", "folder", "file"]
INCOMING = ".incoming"  # uploads that are not complete, within the folder of files


class PlaceName(NamedTuple):
    """What the file of a document is called here, and where it is from."""

    name: str
    source: Source


def find_files_folder(memory_path: Path | Address) -> Path:
    """Return the folder for uploads: beside the memory's file, or among the named memories."""
    if isinstance(memory_path, Address):
        return find_home_folder() / f"{memory_path.schema}-files"
    return memory_path.absolute().with_name(f"{memory_path.name}-files")


class ServedFiles:
    """The files that the documents of one memory were read from."""

    def __init__(self, folder: Path, served_folders: Mapping[str, Path]) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.served_folders = served_folders  # id → folder

    def describe_place(self, path: str) -> PlaceName:
        """Name the file of a document: relative to its folder, without what is above."""
        if not os.path.isabs(path):
            return PlaceName(path, "file")
        if path.startswith(f"{self.folder}{os.sep}"):
            return PlaceName(os.path.relpath(path, self.folder), "upload")
        for folder in self.served_folders.values():
            if path.startswith(f"{folder}{os.sep}"):
                return PlaceName(f"{folder.name}{os.sep}{os.path.relpath(path, folder)}", "folder")
        return PlaceName(path, "file")

    def describe_document(self, document: Document) -> PlaceName:
        """Name a document, and say where it is from."""
        if document.places:
            return self.describe_place(document.places[0])
        return PlaceName(document.title, "note" if document.kind == NOTE_KIND else "file")

    def find_place(self, name: str) -> str:
        """Return the path of a file or folder by its name, without looking at it."""
        name = name.replace("\\", "/").strip()
        if os.path.isabs(name):
            return os.path.normpath(name)
        first, *rest = os.path.normpath(os.path.join(os.sep, name)).split(os.sep)[1:]
        for folder in self.served_folders.values():
            if folder.name == first:
                return str(folder.joinpath(*rest))
        return str(self.folder.joinpath(first, *rest))

    def find_original(self, store: Store, document: Document) -> tuple[Path, Path] | None:
        """Return an unchanged file of a document that may be served, and its folder."""
        for member_path in document.places:
            path = Path(find_container(member_path))
            root = self.find_root(path)
            record = store.get_file_record(member_path)
            if root is None or record is None:
                continue
            with suppress(OSError):
                status = path.stat()
                # The time of a file that was new when it was read is stored a nanosecond too early.
                if status.st_size == record.size and status.st_mtime_ns - record.modified_ns in (0, 1):
                    return path, root
        return None

    def find_root(self, path: Path) -> Path | None:
        """Return the folder that a path may be served from; None if there is none."""
        roots = [self.folder, *self.served_folders.values()]
        root = next((root for root in roots if path.is_relative_to(root)), None)
        if root is None or any(name.startswith(".") for name in path.relative_to(root).parts):
            return None
        return root

    def open_original(self, store: Store, document: Document) -> OpenFile | None:
        """Open the file of a document; None if it has changed or is private."""
        original = self.find_original(store, document)
        if original is None:
            return None
        try:
            return OpenFile(*original)
        except (DocumentError, OSError):
            return None

    def list_uploads(self, member_paths: Iterable[str]) -> list[Path]:
        """List the uploaded files among the places of documents."""
        paths = {Path(find_container(path)) for path in member_paths if path}
        return sorted(path for path in paths if path.is_relative_to(self.folder))
