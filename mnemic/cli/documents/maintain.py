"""``mnemic check``, ``reindex``, ``export-memory``, ``import-memory``: look after a memory."""

from pathlib import Path
from typing import Annotated

import typer

from mnemic.cli.documents.common import Embedder, Where, memory_at, short
from mnemic.cli.options import AsJson
from mnemic.cli.render.console import out, print_json, warn
from mnemic.cli.render.progress import Bars


def check(memory: Where = None, as_json: AsJson = False) -> None:
    """Test a memory: the file, the links between its parts, the indexes.

    One that cannot be written now is tested, too; what only a writer can test is told.

    Example: mnemic check
    """
    with memory_at(memory) as lasting:
        found = lasting.check()
    if found.left_out and not as_json:
        warn(f"left out: {'; '.join(found.left_out)}. Why: {found.why}")
    if as_json:
        print_json({"memory": str(lasting.path)} | found._asdict())
    elif not found.faults:
        rest = ", as far as a reader can see" if found.left_out else ""
        out().print(f"{short(str(lasting.path))} is sound{rest}", markup=False, soft_wrap=True)
    if found.faults and not as_json:
        told = "; ".join(found.faults)
        raise ValueError(f"{lasting.path}: {len(found.faults)} faults: {told}")
    if found.faults:
        raise typer.Exit(2)


def reindex(embedder: Embedder = None, memory: Where = None, as_json: AsJson = False) -> None:
    """Make missing vectors and keys, or all by another embedder; stopped, it goes on next time.

    Example: mnemic reindex --embedder minilm
    """
    with memory_at(memory) as lasting:
        with Bars("passages") as bars:
            for done, total in lasting.reindex(embedder):
                bars.show("reindexing", done, total)
        model = lasting.store.model()
        counts = lasting.stats()
    if as_json:
        own = {"memory": str(lasting.path), "embedder": model._asdict() if model else None}
        print_json(own | {"vectors": counts.vectors})
    else:
        name = model.name if model else "none"
        out().print(f"{counts.vectors} vectors by {name}", markup=False)


def export_memory(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write.")],
    memory: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write a whole memory, its history too, as JSON lines: a backup, or a way to elsewhere.

    Example: mnemic export-memory backup.jsonl
    """
    count = 0
    with memory_at(memory) as lasting, Bars("documents") as bars:
        for step in lasting.export(file):
            count = step.done
            bars.show("writing", step.done, step.total)
    if as_json:
        print_json({"file": str(file), "documents": count})
    else:
        out().print(f"{count} documents written to {short(str(file.absolute()))}", markup=False)


def import_memory(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export-memory wrote.")],
    memory: Where = None,
    embedder: Embedder = None,
    as_json: AsJson = False,
) -> None:
    """Add what another memory exported; what is there already is passed over.

    Example: mnemic import-memory backup.jsonl --memory new.db
    """
    with memory_at(memory, embedder) as lasting, Bars("documents") as bars:
        for step in lasting.take(file):
            bars.show("reading", step.done, step.total)
        new = lasting.stats().documents
    if as_json:
        print_json({"memory": str(lasting.path), "documents": new})
    else:
        out().print(f"{new} documents in {short(str(lasting.path))}", markup=False)
