"""``mnemic forget``: erase documents from the memory without a trace."""

import sys
from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory, shorten_path
from mnemic.cli.render.console import print_json, print_status, print_text, print_warnings

JOURNAL_NOTE = (
    "another process reads this memory, so that its journal still holds traces; they go with the "
    "next `mnemic check` after it has ended"
)


def forget(
    targets: Annotated[list[str] | None, opt.Argument("ID|PATH", "Numbers, files or folders of documents.")] = None,
    about: Annotated[str | None, opt.Option("--about WORDS", "All documents that contain these words.")] = None,
    yes: Annotated[bool, opt.Option("--yes", "Do not ask for confirmation.")] = False,
    verify: Annotated[bool, opt.Option("--verify", "Search the raw bytes of the files for traces.")] = False,
    address: opt.Memory = None,
) -> None:
    """Erase documents with all versions: text, vectors, keys, indexes, history, journal.

    The files themselves stay; `mnemic remember` adds one again.

    Example: mnemic forget 12 --verify

    By words: mnemic forget --about "tax return 2019"
    """
    from mnemic.store.targets import resolve_ids

    with open_memory(address) as memory:
        document_ids = {number for target in targets or [] for number in resolve_ids(memory.store, target)}
        document_ids |= {document.id for document in memory.about(about)} if about else set()
        if not document_ids and about:
            raise ValueError(f"no document has all of these words: {about}")
        if not document_ids:
            raise ValueError("nothing to forget: give numbers, paths or --about WORDS")
        if about and not yes:
            for number in sorted(document_ids):
                print_status(f"{number}  {shorten_path(memory.document(number).name)}")
            confirm_forgetting(len(document_ids))
        report = memory.forget(*sorted(document_ids), verify=verify)
    print_warnings(*([] if report.scrubbed else [JOURNAL_NOTE]), *filter(None, [report.unreachable_traces]))
    documents = [{"id": document.id, "name": document.name} for document in report.documents]
    print_json({"forgotten": documents, "scrubbed": report.scrubbed, "remains": report.traces})
    for document in report.documents:
        print_text(f"forgotten: {document.id}  {', '.join(map(shorten_path, document.places or [document.name]))}")
    if report.traces is not None and not report.traces:
        print_text("verified: no trace is left in the files of the memory")
    if report.traces:
        raise ValueError(f"{len(report.traces)} traces are left, such as {report.traces[0]!r}")


def confirm_forgetting(count: int) -> None:
    """Ask for confirmation before documents found by their words are erased."""
    print_status(f"Forget {count} documents? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was forgotten; --yes forgets without asking")
