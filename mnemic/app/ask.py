"""``mnemic ask``: an answer, and the sentences it was read from."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemic.app.evidence import tell
from mnemic.app.options import AsJson, Model
from mnemic.app.plot import check, draw
from mnemic.app.screen import out, print_json, warn

if TYPE_CHECKING:
    from mnemic.ask import Answer
    from mnemic.learn.checkpoint import Checkpoint

SHOWN = 8  # sentences, unless all are asked for


def ask(
    question: Annotated[str, typer.Argument(help="What to ask, in the words of the stories.")],
    model: Model,
    story: Annotated[
        str | None,
        typer.Option(
            "--story", metavar="FILE", help="The story, a sentence a line; - is standard input."
        ),
    ] = None,
    sentence: Annotated[
        list[str] | None,
        typer.Option("--sentence", help="Tell the story here, sentence by sentence; repeated."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw what was read: out.png, .svg or .pdf."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help=f"Show all sentences, not the {SHOWN} most read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a trained network about a story; see the answer and what was read at each hop.

    Example: mnemic ask --model runs/memn2n --story story.txt "Where is the milk?"

    By a network that came with the package: mnemic ask --model entnet-babi --story FILE QUESTION

    From a knowledge base, without a story: mnemic ask --model runs/kv "who directed [The Bat]"
    """
    from mnemic.ask import knows_base
    from mnemic.learn.checkpoint import load

    if plot is not None:
        check(plot)
    sentences = [*(told(story) if story is not None else ()), *(sentence or [])]
    checkpoint = load(model)
    if story is None and not sentence and not knows_base(checkpoint):
        raise ValueError("no story: give --story FILE, --story - or --sentence TEXT")
    answer = answered(checkpoint, [text for text in sentences if text.strip()], question)
    notes = [*answer.notes]
    if not checkpoint.progress.done:
        notes.append("this network is not trained to the end")
    for note in notes:
        warn(note)
    if not as_json:
        tell(answer, question, None if everything else SHOWN)
    said = [] if plot is None else draw(answer, question, plot)
    for note in said:
        warn(note)
    if as_json:
        drawn = None if plot is None else str(plot)
        print_json(report(answer, question) | {"notes": [*notes, *said], "plot": drawn})
    elif plot is not None:
        out().print(f"drawn: {plot}", markup=False, soft_wrap=True)


def answered(checkpoint: "Checkpoint", sentences: list[str], question: str) -> "Answer":
    """From the story, or from the base of a network that was trained on one."""
    from mnemic.ask import ask_base, ask_story, knows_base

    if not knows_base(checkpoint):
        return ask_story(checkpoint, sentences, question)
    if sentences:
        raise ValueError("this network knows a base, not stories; ask it without a story")
    return ask_base(checkpoint, question)


def report(answer: "Answer", question: str) -> dict[str, Any]:
    return {
        "question": question,
        "answer": answer.text,
        "probability": answer.probability,
        "ranked": [{"answer": text, "probability": chance} for text, chance in answer.ranked],
        "evidence": [asdict(one) for one in answer.evidence],
        "memory": answer.memory,
        "taken": list(answer.taken),
        "slots": None if answer.slots is None else asdict(answer.slots),
        "kept": answer.kept,
        "told": answer.told,
    }


def told(story: str) -> tuple[str, ...]:
    """The sentences of a file, or of standard input."""
    from mnemic.data.stories.format import lines_of, read_story, story_of

    if story != "-":
        return read_story(Path(story))
    name = "standard input"
    return story_of(lines_of(sys.stdin.buffer.read(), name), name)
