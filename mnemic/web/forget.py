"""Forget documents together with the files that were uploaded for them."""

import json
from contextlib import suppress
from pathlib import Path

from mnemic.files import make_private_folder, read_json, replace_file
from mnemic.store.targets import resolve_ids
from mnemic.web.describe import clean
from mnemic.web.jobs.table import JobTable
from mnemic.web.memories import ServedMemory
from mnemic.web.schemas.documents import ForgetReport

PENDING = ".forgetting.json"  # files that are to be deleted once their documents are erased
JOURNAL_NOTE = "another process reads this memory; its journal still holds traces, which go when that has ended"


def forget_with_files(served: ServedMemory, jobs: JobTable, document_id: int, *, verify: bool) -> ForgetReport:
    """Erase a document with its older versions, and the uploads that no other document needs.

    The files are noted before the document is erased: whatever ends this process, they go.
    """
    memory, files = served.memory, served.files
    document_ids = resolve_ids(memory.store, document_id)
    documents = [memory.document(number) for number in document_ids]
    versions = {version.id: version for number in document_ids for version in memory.store.list_versions(number)}
    paths = {path for document in (*documents, *versions.values()) for path in files.list_uploads(document.places)}
    paths |= set(files.list_uploads(event.path for event in memory.store.list_events(list(versions))))
    note_pending(files.folder, sorted(paths))
    names = [path for document in (*documents, *versions.values()) for path in document.places] + list(map(str, paths))
    report = memory.forget(*document_ids, verify=verify)
    num_removed = remove_pending(served)
    jobs.remove_names([clean(files.describe_place(name).name) for name in names], names)
    remaining = [str(path.relative_to(files.folder)) for path in paths if path.exists() and not is_needed(served, path)]
    traces = [clean(trace) for trace in report.traces or ()] + remaining
    notes = [] if report.scrubbed else [JOURNAL_NOTE]
    return ForgetReport(
        documents=[document.id for document in report.documents],
        passages=sum(document.passages for document in report.documents),
        verified=report.traces is not None and not traces,
        traces=traces,
        files_removed=num_removed,
        notes=notes + [note for note in [report.unreachable_traces] if note],
    )


def note_pending(folder: Path, paths: list[Path]) -> None:
    """Note files that are to be deleted."""
    if paths:
        make_private_folder(folder)
        with replace_file(folder / PENDING) as file:
            file.write(json.dumps({"paths": [str(path) for path in paths]}).encode())


def is_needed(served: ServedMemory, path: Path) -> bool:
    """Return whether a document is still read from an uploaded file."""
    store = served.memory.store
    return store.get_file_record(str(path)) is not None


def remove_pending(served: ServedMemory) -> int:
    """Delete the files that were noted and that no document needs; return their number."""
    folder = served.files.folder
    pending = folder / PENDING
    if not pending.is_file():
        return 0
    num_removed = 0
    for text in read_json(pending).get("paths", []):
        path = Path(text)
        if path.is_relative_to(folder) and path.is_file() and not is_needed(served, path):
            path.unlink()
            num_removed += 1
            remove_empty_folders(folder, path.parent)
    pending.unlink()
    return num_removed


def remove_empty_folders(folder: Path, path: Path) -> None:
    """Remove folders that are empty, from ``path`` up to below ``folder``."""
    with suppress(OSError):
        while path != folder and path.is_relative_to(folder):
            path.rmdir()
            path = path.parent
