"""``mnemic forget``: erase documents from the memory without a trace."""

import sys
from typing import Annotated

from mnemic.cli.declare import Argument, Option
from mnemic.cli.documents.common import MemoryOption, open_memory, shorten_path
from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import print_json, print_status, print_text, print_warnings
from mnemic.cli.render.format import sanitize


def forget(
    targets: Annotated[list[str] | None, Argument("ID|PATH", "Numbers, files or folders of documents.")] = None,
    about: Annotated[str | None, Option("--about WORDS", "All documents that contain these words.")] = None,
    yes: Annotated[bool, Option("--yes", "Do not ask for confirmation.")] = False,
    verify: Annotated[bool, Option("--verify", "Search the raw bytes of the files for traces.")] = False,
    address: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase documents with all versions: text, vectors, keys, indexes, history, journal.

    The files themselves stay; `mnemic remember` adds one again.

    Example: mnemic forget 12 --verify

    By words: mnemic forget --about "tax return 2019"
    """
    with open_memory(address) as memory:
        document_ids = {number for target in targets or [] for number in memory.resolve_ids(target)}
        document_ids |= {document.id for document in memory.about(about)} if about else set()
        if not document_ids:
            raise ValueError(
                f"no document has all of these words: {about}"
                if about
                else "nothing to forget: give numbers, paths or --about WORDS"
            )
        if about and not yes:
            for number in sorted(document_ids):
                print_status(f"{number}  {sanitize(shorten_path(memory.document(number).name))}")
            confirm_forgetting(len(document_ids))
        report = memory.forget(*sorted(document_ids), verify=verify)
    if not report.scrubbed:
        journal_note = (
            "another process reads this memory, so that its journal still holds traces; they go "
            "with the next `mnemic check` after it has ended"
        )
        print_warnings([journal_note])
    print_warnings([report.unreachable_traces] if report.unreachable_traces else [])
    if as_json:
        documents = [{"id": document.id, "name": document.name} for document in report.documents]
        print_json({"forgotten": documents, "scrubbed": report.scrubbed, "remains": report.traces})
    else:
        for document in report.documents:
            print_text(f"forgotten: {document.id}  {sanitize(shorten_path(document.name))}")
        if report.traces is not None and not report.traces:
            print_text("verified: no trace is left in the files of the memory")
    if report.traces:
        raise ValueError(f"{len(report.traces)} traces are left, such as {report.traces[0]!r}")


def confirm_forgetting(count: int) -> None:
    """Ask for confirmation before documents found by their words are erased."""
    print_status(f"Forget {count} documents? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was forgotten; --yes forgets without asking")
