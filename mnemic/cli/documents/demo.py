"""``mnemic demo``: mnemic remembers its own documentation, and answers with evidence."""

from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import mnemic
from mnemic.cli.documents.ask import report
from mnemic.cli.documents.ask import tell as tell_answer
from mnemic.cli.documents.common import memory_at, short
from mnemic.cli.documents.remember import follow, summary
from mnemic.cli.documents.remember import tell as tell_remembered
from mnemic.cli.networks.demo_stories import stories
from mnemic.cli.options import AsJson, Fresh
from mnemic.cli.render.console import out, print_json

if TYPE_CHECKING:
    from mnemic.store import Memory

SENTENCES = 2  # of evidence, for each question
STORED = "memory.db"


class Asked(NamedTuple):
    """A question about mnemic, and words of the right answer; none: nothing answers it."""

    question: str
    answer: str | None


ASKED = (
    Asked("What is the license?", "Apache 2.0"),
    Asked("Which package is needed for PDF files?", "pypdf"),
    Asked("Which version of Python does mnemic need?", "3.11 or newer"),
    Asked("Who won the football world cup in 1998?", None),
)


def demo(
    told: Annotated[
        bool,
        typer.Option("--stories", help="Instead: train a memory network on stories, and ask it."),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where the memory, or the run, goes.",
            show_default="runs/demo, or runs/demo-stories",
        ),
    ] = None,
    fresh: Fresh = False,
    as_json: AsJson = False,
) -> None:
    """Remember mnemic's own documentation, ask it, see the evidence; nothing leaves this machine.

    With --stories a small memory network is trained in a minute, and shows what it reads.

    Example: mnemic demo

    Example: mnemic demo --stories
    """
    if told:
        right = stories(folder or Path("runs/demo-stories"), fresh=fresh, as_json=as_json)
    else:
        right = documents(folder or Path("runs/demo"), fresh=fresh, as_json=as_json)
    if not right:
        raise typer.Exit(1)


def documents(folder: Path, *, fresh: bool, as_json: bool) -> bool:
    """Remember, ask, show; whether all answers are right."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / STORED
    if fresh:
        for path in folder.glob(f"{STORED}*"):
            path.unlink()
    with memory_at(str(place.absolute())) as memory:
        paths = own_documents(folder)
        if not as_json:
            out().print(f"mnemic remembers its documentation ({len(paths)} files):")
        remembered = summary(follow(memory, paths, [], []), memory)
        if not as_json:
            tell_remembered(remembered, as_json=False)
        answers = [ask(memory, one, as_json) for one in ASKED]
    if as_json:
        print_json({"remembered": remembered, "answers": answers})
    else:
        screen = out()
        screen.print("\nNow yours: mnemic remember ~/Documents, then mnemic ask 'When …?'")
        screen.print(f"(This memory: mnemic ask --memory {short(str(place.absolute()))} '…')")
    return all(answer["right"] for answer in answers)


def own_documents(folder: Path) -> list[Path]:
    """README and documentation of the clone; of an installed package its README, written here."""
    root = Path(mnemic.__file__).parents[1]
    if (root / "docs" / "memory.md").is_file():
        return [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    known = metadata("mnemic")
    if "Description" not in known:
        raise ValueError(
            f"no documentation beside {root}, nor a README in the installed package; run it in a "
            "clone of mnemic, or install a wheel: make wheel"
        )
    readme = folder / "README.md"
    readme.write_text(known["Description"], encoding="utf-8")
    return [readme]


def ask(memory: "Memory", one: Asked, as_json: bool) -> dict[str, Any]:
    """Ask a question and show its evidence."""
    answer = memory.ask(one.question)
    right = one.answer in answer.text if one.answer is not None else not answer.found
    if not as_json:
        out().print()
        tell_answer(answer, SENTENCES)
        if not right:
            out().print(f"[red]wrong:[/] it should be {one.answer or 'none'}")
    return report(answer) | {"right": right}
