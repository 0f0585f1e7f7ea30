"""``mnemic list``, ``mnemic history``, ``mnemic stats``: show the contents of a memory."""

from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory, shorten_path
from mnemic.cli.render.console import Styled, get_width, print_json, print_table, print_text
from mnemic.cli.render.format import format_bytes, shorten_start

MIN_NAME_CHARS, OTHER_COLUMNS = 16, 46  # of a document's name; of the rest of the table
RETIRED_HELP = "Include superseded documents and those whose file is gone."


def list_documents(
    include_retired: Annotated[bool, opt.Option("--all", RETIRED_HELP)] = False, address: opt.Memory = None
) -> None:
    """List the documents in a memory, with the numbers that `forget` and `update` take.

    Example: mnemic list --all
    """
    with open_memory(address) as memory:
        documents = memory.memories(retired=include_retired)
    print_json({"memory": str(memory.path), "documents": [document._asdict() for document in documents]})
    max_name_chars, rows = max(MIN_NAME_CHARS, get_width() - OTHER_COLUMNS), []
    for document in documents:
        name = shorten_path(document.name) + (" (no longer read)" if document.retired else "")
        name_cell = Styled(shorten_start(name, max_name_chars), "dim" if document.retired else "")
        rows.append([str(document.id), name_cell, document.kind, str(document.passages), document.remembered[:10]])
    print_table([">id", "document", "kind", ">passages", "remembered"], rows)
    print_text(f"memory: {shorten_path(str(memory.path))}", style="dim")


def history(
    target: opt.Document,
    show_text: Annotated[bool, opt.Option("--text", "Also print the text of each version.")] = False,
    address: opt.Memory = None,
) -> None:
    """Show every version of a document and its history of events.

    A memory keeps all versions, with their text, until they are forgotten.

    Example: mnemic history report.pdf

    With all texts: mnemic history 12 --text
    """
    with open_memory(address) as memory:
        versions, events = memory.history(target)
        texts = {version.id: {"text": memory.text(version.id)} if show_text else {} for version in versions}
    report = {"versions": [version._asdict() | texts[version.id] for version in versions]}
    print_json(report | {"events": [event._asdict() for event in events]})
    titles, max_name_chars = {version.id: version.title for version in versions}, get_width() // 2
    rows = []
    for event in events:
        description = shorten_path(event.path) if event.path else titles[event.document]
        rows.append([event.at, str(event.document), event.what, shorten_start(description, max_name_chars)])
    print_table(["when", ">document", "what", ""], rows)
    for version in versions if show_text else []:
        until = f", read until {version.retired}" if version.retired else ""
        print_text(f"\n{version.id}  remembered {version.remembered}{until}", style="bold")
        print_text("\n".join(texts[version.id]["text"].splitlines()))


def stats(address: opt.Memory = None) -> None:
    """Show the size of a memory, and list the other memories.

    Example: mnemic stats --memory work
    """
    from mnemic.store.locate import list_named_memories

    with open_memory(address) as memory:
        other_memories = {name: str(path) for name, path in list_named_memories().items() if path != memory.path}
        if other_memories and not memory.exists():
            names = ", ".join(other_memories)
            raise ValueError(f"there is no memory {memory.path}; there are: {names} (mnemic stats --memory NAME)")
        counts, model = memory.stats(), memory.store.get_model()
    report = {"memory": str(memory.path), "embedder": model._asdict() if model else None}
    print_json(report | counts._asdict() | {"others": other_memories})
    print_text(f"memory     {shorten_path(str(memory.path))} ({format_bytes(counts.bytes)})")
    print_text(f"embedder   {model.name if model else 'none: it is read by words alone'}")
    print_text(f"documents  {counts.documents}, and {counts.retired} that are no longer read")
    print_text(f"passages   {counts.passages}, {counts.sentences} sentences")
    if other_memories:
        print_text(f"others     {', '.join(other_memories)}", style="dim")
