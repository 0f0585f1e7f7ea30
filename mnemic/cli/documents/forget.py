"""``mnemic forget``: take documents out of the lasting memory, so that nothing is left."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mnemic.cli.documents.common import Where, memory_at, short
from mnemic.cli.options import AsJson, refuse
from mnemic.cli.render.console import out, print_json, say, visible, warn
from mnemic.cli.text.forget import forget_state


def forget(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID|PATH]...", help="Documents' numbers, files or folders."),
    ] = None,
    about: Annotated[
        str | None,
        typer.Option("--about", metavar="WORDS", help="All documents that have these words."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before forgetting.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Look for traces in the raw bytes of the files.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Forget in the memory that mnemic read --state wrote: texts by their paths, or "
            "characters, START-END.",
        ),
    ] = None,
    memory: Where = None,
    as_json: AsJson = False,
) -> None:
    """Forget documents with all their versions: text, vectors, keys, indexes, history, journal.

    Files themselves are not touched; one that is remembered again comes back.

    Example: mnemic forget 12 --verify

    Example: mnemic forget --about "tax return 2019"

    What a network keeps of a text that was read: mnemic forget --state notes.mem novel.txt
    """
    if state is not None:
        refuse(
            context, ("about", "yes", "verify", "memory"), "--state forgets in a file of its own"
        )
        forget_state(state, targets or [], as_json=as_json)
        return
    with memory_at(memory) as lasting:
        chosen = {number for target in targets or [] for number in lasting.meant(target)}
        chosen |= {one.id for one in lasting.about(about)} if about else set()
        if not chosen:
            raise ValueError(
                f"no document has all of these words: {about}"
                if about
                else "nothing to forget: give numbers, paths or --about WORDS"
            )
        if about and not yes:
            for number in sorted(chosen):
                say(f"{number}  {visible(short(lasting.document(number).name))}")
            ask_first(len(chosen))
        done = lasting.forget(*sorted(chosen), verify=verify)
    if not done.scrubbed:
        warn(
            "another process reads this memory, so that its journal still holds traces; they go "
            "with the next `mnemic check` after it has ended"
        )
    if done.beyond:
        warn(done.beyond)
    if as_json:
        told = [{"id": one.id, "name": one.name} for one in done.documents]
        print_json({"forgotten": told, "scrubbed": done.scrubbed, "remains": done.remains})
    else:
        for one in done.documents:
            out().print(f"forgotten: {one.id}  {visible(short(one.name))}", markup=False)
        if done.remains is not None and not done.remains:
            out().print("verified: no trace is left in the files of the memory")
    if done.remains:
        raise ValueError(f"{len(done.remains)} traces are left, such as {done.remains[0]!r}")


def ask_first(count: int) -> None:
    """What was found by words is forgotten only after a look at it."""
    say(f"Forget {count} documents? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was forgotten; --yes forgets without asking")
