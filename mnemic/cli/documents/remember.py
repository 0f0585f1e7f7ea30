"""``mnemic remember`` and ``mnemic update``: write documents into the lasting memory."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemic.cli.documents.common import Embedder, Target, Where, memory_at, short
from mnemic.cli.options import AsJson
from mnemic.cli.render.console import out, print_json, visible, warn
from mnemic.cli.render.progress import Bars

if TYPE_CHECKING:
    from mnemic.store import Memory, Step

NOTHING = 1  # the exit code where files were given and none of them could be read
TOLD = ("new", "changed", "moved", "copied", "unchanged", "gone", "broken")
Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="A text, instead of a file.")
]


def remember(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILES OR FOLDERS]",
            help="txt, md, html, pdf, docx, epub, eml, csv, tsv, jsonl; folders with all in them.",
        ),
    ] = None,
    note: Note = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", metavar="PATTERN", help="Of folders only these, such as *.md."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PATTERN", help="Of folders not these, such as old/*."),
    ] = None,
    memory: Where = None,
    here: Annotated[
        bool,
        typer.Option("--here", help="Make a memory for this folder, found from everywhere in it."),
    ] = False,
    embedder: Embedder = None,
    as_json: AsJson = False,
) -> None:
    """Remember files and folders for good; done again, only what changed is read.

    What is remembered stays on this machine, in one file that only you can read.

    The exit code is 1 if not one of the files could be read.

    Example: mnemic remember ~/Documents report.pdf

    Then: mnemic ask "When does the contract end?"
    """
    from mnemic.store.locate import PROJECT

    if not paths and note is None:
        raise ValueError("nothing to remember: give files, folders or --note TEXT")
    if here and memory is not None:
        raise ValueError("--here and --memory name two memories; give one of them")
    with memory_at(str(Path.cwd() / PROJECT) if here else memory, embedder) as lasting:
        steps = follow(lasting, paths, include or [], exclude or []) if paths else []
        told = summary(steps, lasting)
        if note is not None:
            told["note"] = lasting.note(note)
        tell(told, as_json)
    if note is None and told["broken"] and not set(told["files"]) - {"broken", "gone"}:
        raise typer.Exit(NOTHING)


def follow(
    memory: "Memory", paths: Iterable[Path], include: list[str], exclude: list[str]
) -> "list[Step]":
    """Remember, with a bar; what is broken is said at once."""
    found = []
    with Bars("bytes") as bars:
        for step in memory.remembering(list(paths), include=include, exclude=exclude):
            bars.show("remembering", step.done, max(step.total, 1), visible(short(step.path))[-40:])
            if step.outcome == "reading":
                continue
            found.append(step)
            for note in step.notes:
                warn(visible(f"{short(step.path)}: {note}"))
    return found


def summary(steps: "list[Step]", memory: "Memory") -> dict[str, Any]:
    counts = Counter[str](step.outcome for step in steps)
    return {
        "memory": str(memory.path),
        "files": {outcome: counts[outcome] for outcome in TOLD if counts[outcome]},
        "passages": sum(step.passages for step in steps),
        "broken": [
            {"path": step.path, "reason": "; ".join(step.notes)}
            for step in steps
            if step.outcome == "broken"
        ],
        "notes": {
            step.path: step.notes for step in steps if step.notes and step.outcome != "broken"
        },
    }


def tell(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    screen = out()
    if not told["files"] and "note" not in told:
        screen.print("no files of a known kind there; --include PATTERN reads others, as text")
    if told["files"]:
        words = ", ".join(f"{count} {outcome}" for outcome, count in told["files"].items())
        screen.print(f"files: {words}; {told['passages']} new passages", markup=False)
    if "note" in told:
        screen.print(f"remembered as document {told['note']}", markup=False)
    screen.print(f"memory: {short(told['memory'])}", style="dim", markup=False)


def update(
    target: Target,
    note: Note = None,
    memory: Where = None,
    as_json: AsJson = False,
) -> None:
    """Supersede a document by a new text, or by what its file says now; the history stays.

    Example: mnemic update 12 --note "The meeting is on Friday."

    Example: mnemic update report.pdf
    """
    with memory_at(memory) as lasting:
        old = lasting.document(target)
        before, after = old.id, lasting.update(target, note)
        for place in old.places if note is not None else ():
            warn(f"{visible(place)} is as it was: remembered again, it is read beside the new text")
        if as_json:
            print_json({"memory": str(lasting.path), "before": before, "after": after})
        elif before == after:
            out().print(f"document {before} is as it was", markup=False)
        else:
            out().print(f"document {after} supersedes {before}", markup=False)
