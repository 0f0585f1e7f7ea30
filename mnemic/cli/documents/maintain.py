"""``mnemic check``, ``reindex``, ``export-memory``, ``import-memory``: maintain a memory."""

from pathlib import Path
from typing import Annotated

import typer

from mnemic.cli.documents.common import EmbedderOption, MemoryOption, open_memory, shorten_path
from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import get_stdout, print_json, print_warning
from mnemic.cli.render.progress import ProgressBars


def check(address: MemoryOption = None, as_json: JsonOption = False) -> None:
    """Check the integrity of a memory: its file, references and indexes.

    If the memory cannot be written now, the checks that need to write are skipped and listed.

    Example: mnemic check
    """
    with open_memory(address) as memory:
        report = memory.check()
    if report.left_out and not as_json:
        print_warning(f"left out: {'; '.join(report.left_out)}. Why: {report.why}")
    if as_json:
        print_json({"memory": str(memory.path)} | report._asdict())
    elif not report.faults:
        limits = ", as far as a reader can see" if report.left_out else ""
        get_stdout().print(f"{shorten_path(str(memory.path))} is sound{limits}", markup=False, soft_wrap=True)
    if report.faults and not as_json:
        faults = "; ".join(report.faults)
        raise ValueError(f"{memory.path}: {len(report.faults)} faults: {faults}")
    if report.faults:
        raise typer.Exit(2)


def reindex(embedder: EmbedderOption = None, address: MemoryOption = None, as_json: JsonOption = False) -> None:
    """Compute missing vectors and keys, or all of them with another embedder.

    An interrupted run resumes when the command is repeated.

    Example: mnemic reindex --embedder minilm
    """
    with open_memory(address) as memory:
        with ProgressBars("passages") as bars:
            for done, total in memory.reindex(embedder):
                bars.show("reindexing", done, total)
        model = memory.store.get_model()
        counts = memory.stats()
    if as_json:
        report = {"memory": str(memory.path), "embedder": model._asdict() if model else None}
        print_json(report | {"vectors": counts.vectors})
    else:
        name = model.name if model else "none"
        get_stdout().print(f"{counts.vectors} vectors by {name}", markup=False)


def export_memory(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    address: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a memory and its history as JSON lines, for backup or transfer.

    Example: mnemic export-memory backup.jsonl
    """
    count = 0
    with open_memory(address) as memory, ProgressBars("documents") as bars:
        for step in memory.export(file):
            count = step.done
            bars.show("writing", step.done, step.total)
    if as_json:
        print_json({"file": str(file), "documents": count})
    else:
        get_stdout().print(f"{count} documents written to {shorten_path(str(file.absolute()))}", markup=False)


def import_memory(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that export-memory wrote.")],
    address: MemoryOption = None,
    embedder: EmbedderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import an exported memory; documents that are already present are skipped.

    Example: mnemic import-memory backup.jsonl --memory new.db
    """
    with open_memory(address, embedder) as memory, ProgressBars("documents") as bars:
        for step in memory.take(file):
            bars.show("reading", step.done, step.total)
        count = memory.stats().documents
    if as_json:
        print_json({"memory": str(memory.path), "documents": count})
    else:
        get_stdout().print(f"{count} documents in {shorten_path(str(memory.path))}", markup=False)
