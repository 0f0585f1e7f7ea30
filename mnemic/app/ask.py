"""``mnemic ask``: an answer, and the sentences it was read from."""

import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mnemic.app.evidence import tell
from mnemic.app.options import AsJson, Model
from mnemic.app.screen import out, print_json, warn

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

    Without a file: mnemic ask --model runs/demo --sentence "Mary went home." "Where is Mary?"
    """
    from mnemic.ask import ask_story
    from mnemic.learn.checkpoint import load

    if story is None and not sentence:
        raise ValueError("no story: give --story FILE, --story - or --sentence TEXT")
    sentences = [*(told(story) if story is not None else ()), *(sentence or [])]
    sentences = [text.strip() for text in sentences if text.strip()]
    if plot is not None:
        from mnemic.app.plot import matplotlib_here

        matplotlib_here()
    checkpoint = load(model)
    answer = ask_story(checkpoint, sentences, question)
    notes = [*answer.notes]
    if not checkpoint.progress.done:
        notes.append("this network is not trained to the end")
    if plot is not None:
        from mnemic.app.plot import draw

        notes += draw(answer, question, plot)
    for note in notes:
        warn(note)
    if as_json:
        told_all = {"question": question, "answer": answer.text} | asdict(answer)
        del told_all["text"]
        told_all["ranked"] = [{"answer": text, "probability": p} for text, p in answer.ranked]
        print_json(told_all | {"notes": notes, "plot": str(plot) if plot else None})
    else:
        tell(answer, question, None if everything else SHOWN)
        if plot is not None:
            out().print(f"drawn: {plot}", markup=False, soft_wrap=True)


def told(story: str) -> tuple[str, ...]:
    """The sentences of a file, or of standard input."""
    from mnemic.data.stories.format import read_story

    if story != "-":
        return read_story(Path(story))
    with TemporaryDirectory() as folder:  # the reader wants a path, and names it in its errors
        path = Path(folder) / "standard input"
        path.write_bytes(sys.stdin.buffer.read())
        return read_story(path)
