"""``mnemic memories``, ``mnemic history``, ``mnemic stats``: list the contents of a memory."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from mnemic.cli.documents.common import DocumentArgument, MemoryOption, open_memory, shorten_path
from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import format_bytes, get_stdout, print_json, sanitize


def memories(
    include_retired: Annotated[
        bool, typer.Option("--all", help="Include superseded documents and those whose file is gone.")
    ] = False,
    address: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the documents in a memory, with the numbers that `forget` and `update` take.

    Example: mnemic memories --all
    """
    with open_memory(address) as memory:
        documents = memory.memories(retired=include_retired)
    if as_json:
        print_json({"memory": str(memory.path), "documents": [document._asdict() for document in documents]})
        return
    table = Table("id", "document", "kind", "passages", "remembered", header_style="bold")
    table.columns[0].justify = table.columns[3].justify = "right"
    for document in documents:
        style = "dim" if document.retired else ""
        name = Text(sanitize(shorten_path(document.name)) + (" (no longer read)" if document.retired else ""), style)
        table.add_row(str(document.id), name, document.kind, str(document.passages), document.remembered[:10])
    get_stdout().print(table)
    get_stdout().print(f"memory: {shorten_path(str(memory.path))}", style="dim", markup=False)


def history(
    target: DocumentArgument,
    show_text: Annotated[bool, typer.Option("--text", help="Also print the text of each version.")] = False,
    address: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every version of a document and its history of events.

    A memory keeps all versions, with their text, until they are forgotten.

    Example: mnemic history report.pdf

    Example: mnemic history 12 --text
    """
    with open_memory(address) as memory:
        versions, events = memory.history(target)
        texts = {version.id: memory.text(version.id) for version in versions} if show_text else {}
    if as_json:
        text_fields = [{"text": texts[version.id]} if show_text else {} for version in versions]
        report = {"versions": [version._asdict() | text_field for version, text_field in zip(versions, text_fields)]}
        print_json(report | {"events": [event._asdict() for event in events]})
        return
    table = Table("when", "document", "what", "", header_style="bold")
    table.columns[1].justify = "right"
    titles = {version.id: version.title for version in versions}
    for event in events:
        description = shorten_path(event.path) if event.path else titles[event.document]
        table.add_row(event.at, str(event.document), event.what, Text(sanitize(description)))
    get_stdout().print(table)
    for version in versions if show_text else []:
        until = f", read until {version.retired}" if version.retired else ""
        get_stdout().print(f"\n[bold]{version.id}[/]  remembered {version.remembered}{until}")
        for line in texts[version.id].splitlines():
            get_stdout().print(sanitize(line), markup=False, soft_wrap=True)


def stats(address: MemoryOption = None, as_json: JsonOption = False) -> None:
    """Show the size of a memory, and list the other memories.

    Example: mnemic stats --memory work
    """
    from mnemic.store.locate import list_named_memories

    with open_memory(address) as memory:
        counts = memory.stats()
        model = memory.store.get_model()
    other_memories = {name: str(path) for name, path in list_named_memories().items() if path != memory.path}
    if as_json:
        report = {"memory": str(memory.path), "embedder": model._asdict() if model else None}
        print_json(report | counts._asdict() | {"others": other_memories})
        return
    screen = get_stdout()
    screen.print(f"memory     {shorten_path(str(memory.path))} ({format_bytes(counts.bytes)})", markup=False)
    screen.print(f"embedder   {model.name if model else 'none: it is read by words alone'}")
    screen.print(f"documents  {counts.documents}, and {counts.retired} that are no longer read")
    screen.print(f"passages   {counts.passages}, {counts.sentences} sentences")
    if other_memories:
        screen.print(f"others     {', '.join(other_memories)}", style="dim", markup=False)
