"""``mnemic check``, ``reindex``, ``export-memory``, ``import-memory``: maintain a memory."""

from pathlib import Path
from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory, shorten_path
from mnemic.cli.render.console import AS_JSON, print_json, print_text, print_warnings
from mnemic.cli.render.progress import ProgressBars


def check(address: opt.Memory = None) -> int:
    """Check the integrity of a memory: its file, references and indexes.

    If the memory cannot be written now, the checks that need to write are skipped and listed.

    Example: mnemic check
    """
    with open_memory(address) as memory:
        report = memory.check()
    print_json({"memory": str(memory.path)} | report._asdict())
    if AS_JSON.get():
        return 2 if report.faults else 0
    if report.left_out:
        print_warnings(f"left out: {'; '.join(report.left_out)}. Why: {report.why}")
    if report.faults:
        raise ValueError(f"{memory.path}: {len(report.faults)} faults: {'; '.join(report.faults)}")
    limits = ", as far as a reader can see" if report.left_out else ""
    print_text(f"{shorten_path(str(memory.path))} is sound{limits}")
    return 0


def reindex(embedder: opt.Embedder = None, address: opt.Memory = None) -> None:
    """Compute missing vectors and keys, or all of them with another embedder.

    An interrupted run resumes when the command is repeated.

    Example: mnemic reindex --embedder minilm
    """
    with open_memory(address) as memory:
        with ProgressBars("passages") as bars:
            for done, total in memory.reindex(embedder):
                bars.show("reindexing", done, total)
        model, num_vectors = memory.store.get_model(), memory.stats().vectors
    report = {"memory": str(memory.path), "embedder": model._asdict() if model else None, "vectors": num_vectors}
    print_json(report)
    print_text(f"{num_vectors} vectors by {model.name if model else 'none'}")


def export_memory(
    file: Annotated[Path, opt.Argument("FILE", "The file to write.")], address: opt.Memory = None
) -> None:
    """Export a memory and its history as JSON lines, for backup or transfer.

    Example: mnemic export-memory backup.jsonl
    """
    count = 0
    with open_memory(address) as memory, ProgressBars("documents") as bars:
        for step in memory.export(file):
            count = step.done
            bars.show("writing", step.done, step.total)
    print_json({"file": str(file), "documents": count})
    print_text(f"{count} documents written to {shorten_path(str(file.absolute()))}")


def import_memory(
    file: Annotated[Path, opt.Argument("FILE", "A file that export-memory wrote.")],
    address: opt.Memory = None,
    embedder: opt.Embedder = None,
) -> None:
    """Import an exported memory; documents that are already present are skipped.

    Example: mnemic import-memory backup.jsonl --memory new.db
    """
    with open_memory(address, embedder) as memory, ProgressBars("documents") as bars:
        num_new = num_known = 0
        for step in memory.take(file):
            bars.show("reading", step.done, step.total)
            num_new, num_known = num_new + step.is_new, num_known + (not step.is_new)
        count = memory.stats().documents
    print_json({"memory": str(memory.path), "documents": count, "new": num_new, "known": num_known})
    known = f" ({num_known} were there already)" if num_known else ""
    print_text(f"{num_new} new documents{known}; {count} documents in {shorten_path(str(memory.path))}")
