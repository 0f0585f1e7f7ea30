"""``mnemic forget``: erase documents from the memory without a trace."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mnemic.cli.documents.common import MemoryOption, open_memory, shorten_path
from mnemic.cli.options import JsonOption, refuse_options
from mnemic.cli.render.console import get_stdout, print_json, print_status, print_warning, sanitize
from mnemic.cli.text.forget import forget_state


def forget(
    context: typer.Context,
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[ID|PATH]...", help="Numbers, files or folders of documents.")
    ] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="WORDS", help="All documents that contain these words.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Search the raw bytes of the files for traces.")] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Forget in a file that mnemic read --state wrote: texts by path, or a span of characters START-END.",
        ),
    ] = None,
    address: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase documents with all versions: text, vectors, keys, indexes, history, journal.

    The files themselves stay; `mnemic remember` adds one again.

    Example: mnemic forget 12 --verify

    Example: mnemic forget --about "tax return 2019"

    From the memory file of a network: mnemic forget --state notes.mem novel.txt
    """
    if state is not None:
        refuse_options(context, ("about", "yes", "verify", "address"), "--state forgets in a file of its own")
        forget_state(state, targets or [], as_json=as_json)
        return
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
        print_warning(
            "another process reads this memory, so that its journal still holds traces; they go "
            "with the next `mnemic check` after it has ended"
        )
    if report.unreachable_traces:
        print_warning(report.unreachable_traces)
    if as_json:
        documents = [{"id": document.id, "name": document.name} for document in report.documents]
        print_json({"forgotten": documents, "scrubbed": report.scrubbed, "remains": report.traces})
    else:
        for document in report.documents:
            get_stdout().print(f"forgotten: {document.id}  {sanitize(shorten_path(document.name))}", markup=False)
        if report.traces is not None and not report.traces:
            get_stdout().print("verified: no trace is left in the files of the memory")
    if report.traces:
        raise ValueError(f"{len(report.traces)} traces are left, such as {report.traces[0]!r}")


def confirm_forgetting(count: int) -> None:
    """Ask for confirmation before documents found by their words are erased."""
    print_status(f"Forget {count} documents? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was forgotten; --yes forgets without asking")
