"""``mnemic check``, ``reindex``, ``export-memory``, ``import-memory``: maintain a memory."""

from pathlib import Path
from typing import Annotated

from mnemic.cli.declare import Argument
from mnemic.cli.documents.common import EmbedderOption, MemoryOption, open_memory, shorten_path
from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import print_json, print_text, print_warnings
from mnemic.cli.render.progress import ProgressBars


def check(address: MemoryOption = None, as_json: JsonOption = False) -> int:
    """Check the integrity of a memory: its file, references and indexes.

    If the memory cannot be written now, the checks that need to write are skipped and listed.

    Example: mnemic check
    """
    with open_memory(address) as memory:
        report = memory.check()
    if as_json:
        print_json({"memory": str(memory.path)} | report._asdict())
        return 2 if report.faults else 0
    if report.left_out:
        print_warnings([f"left out: {'; '.join(report.left_out)}. Why: {report.why}"])
    if report.faults:
        faults = "; ".join(report.faults)
        raise ValueError(f"{memory.path}: {len(report.faults)} faults: {faults}")
    limits = ", as far as a reader can see" if report.left_out else ""
    print_text(f"{shorten_path(str(memory.path))} is sound{limits}")
    return 0


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
        print_text(f"{counts.vectors} vectors by {name}")


def export_memory(
    file: Annotated[Path, Argument("FILE", "The file to write.")],
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
        print_text(f"{count} documents written to {shorten_path(str(file.absolute()))}")


def import_memory(
    file: Annotated[Path, Argument("FILE", "A file that export-memory wrote.")],
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
        print_text(f"{count} documents in {shorten_path(str(memory.path))}")
