"""``mnemic memories``, ``mnemic history`` and ``mnemic stats``: what the lasting memory holds."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from mnemic.cli.documents.common import Target, Where, memory_at, short
from mnemic.cli.options import AsJson
from mnemic.cli.render.console import out, print_json, size, visible


def memories(
    everything: Annotated[
        bool, typer.Option("--all", help="Also what was superseded, or whose file is gone.")
    ] = False,
    memory: Where = None,
    as_json: AsJson = False,
) -> None:
    """List what is remembered: the numbers are those that `forget` and `update` take.

    Example: mnemic memories --all
    """
    with memory_at(memory) as lasting:
        found = lasting.memories(retired=everything)
    if as_json:
        print_json({"memory": str(lasting.path), "documents": [one._asdict() for one in found]})
        return
    table = Table("id", "document", "kind", "passages", "remembered", header_style="bold")
    table.columns[0].justify = table.columns[3].justify = "right"
    for one in found:
        style = "dim" if one.retired else ""
        name = Text(visible(short(one.name)) + (" (no longer read)" if one.retired else ""), style)
        table.add_row(str(one.id), name, one.kind, str(one.passages), one.remembered[:10])
    out().print(table)
    out().print(f"memory: {short(str(lasting.path))}", style="dim", markup=False)


def history(
    target: Target,
    text: Annotated[bool, typer.Option("--text", help="Also what each version says.")] = False,
    memory: Where = None,
    as_json: AsJson = False,
) -> None:
    """Show every version of a document, and what happened to it.

    Versions are kept, with their text, until they are forgotten.

    Example: mnemic history report.pdf

    Example: mnemic history 12 --text
    """
    with memory_at(memory) as lasting:
        versions, events = lasting.history(target)
        texts = {one.id: lasting.text(one.id) for one in versions} if text else {}
    if as_json:
        said = [{"text": texts[one.id]} if text else {} for one in versions]
        told = {"versions": [one._asdict() | own for one, own in zip(versions, said)]}
        print_json(told | {"events": [one._asdict() for one in events]})
        return
    table = Table("when", "document", "what", "", header_style="bold")
    table.columns[1].justify = "right"
    titles = {one.id: one.title for one in versions}
    for event in events:
        what = short(event.path) if event.path else titles[event.document]
        table.add_row(event.at, str(event.document), event.what, Text(visible(what)))
    out().print(table)
    for one in versions if text else []:
        until = f", read until {one.retired}" if one.retired else ""
        out().print(f"\n[bold]{one.id}[/]  remembered {one.remembered}{until}")
        for line in texts[one.id].splitlines():
            out().print(visible(line), markup=False, soft_wrap=True)


def stats(memory: Where = None, as_json: AsJson = False) -> None:
    """Show how much a memory holds, and which other memories there are.

    Example: mnemic stats --memory work
    """
    from mnemic.store.locate import named

    with memory_at(memory) as lasting:
        counts = lasting.stats()
        model = lasting.store.model()
    others = {name: str(path) for name, path in named().items() if path != lasting.path}
    if as_json:
        own = {"memory": str(lasting.path), "embedder": model._asdict() if model else None}
        print_json(own | counts._asdict() | {"others": others})
        return
    screen = out()
    screen.print(f"memory     {short(str(lasting.path))} ({size(counts.bytes)})", markup=False)
    screen.print(f"embedder   {model.name if model else 'none: it is read by words alone'}")
    screen.print(f"documents  {counts.documents}, and {counts.retired} that are no longer read")
    screen.print(f"passages   {counts.passages}, {counts.sentences} sentences")
    if others:
        screen.print(f"others     {', '.join(others)}", style="dim", markup=False)
