"""``mnemic ask``: an answer, and the sentences it was read from.

Without a network it is the lasting memory that is asked; with one, a story or a knowledge base.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from mnemic.cli.documents.ask import ask_many, ask_memory
from mnemic.cli.documents.common import READER, Reader, Where
from mnemic.cli.options import MODEL, AsJson, refuse
from mnemic.cli.render.console import out, print_json, warn
from mnemic.cli.render.evidence_table import tell
from mnemic.cli.render.plot_story import check, draw
from mnemic.cli.text.ask import ask_state, ask_states, carries

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict import Answer

SHOWN = 8  # sentences, unless all are asked for
MEMORY = {"rich_help_panel": "Of the lasting memory"}
NETWORK = {"rich_help_panel": "Of a trained network"}
OF_MEMORY = ("memory", "hops", "passages", "reader", "confidence")  # parameters
ONE = ("question", "story", "sentence", "plot", "everything")  # that go with one question
Network: TypeAlias = Annotated[
    Path | None, typer.Option("--model", metavar="DIR", help=MODEL, **NETWORK)
]


def ask(
    context: typer.Context,
    question: Annotated[str | None, typer.Argument(help="What to ask.")] = None,
    memory: Where = None,
    hops: Annotated[
        int,
        typer.Option(
            "--hops", help="How often to read; a second time, with what was found.", **MEMORY
        ),
    ] = 1,
    passages: Annotated[
        int, typer.Option("--passages", help="How many to read closely, each hop.", **MEMORY)
    ] = 5,
    reader: Reader = READER,
    confidence: Annotated[
        float | None,
        typer.Option(
            "--confidence",
            help="Give a reader's answer from this probability on that it is right; 0: always.",
            show_default="what suits the reader",
            **MEMORY,
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Many questions, one a line; JSON lines. Of --state, too.",
            **MEMORY,
        ),
    ] = None,
    model: Network = None,
    story: Annotated[
        str | None,
        typer.Option(
            "--story",
            metavar="FILE",
            help="The story, a sentence a line; - is standard input.",
            **NETWORK,
        ),
    ] = None,
    sentence: Annotated[
        list[str] | None,
        typer.Option(
            "--sentence", help="Tell the story here, sentence by sentence; repeated.", **NETWORK
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Ask the memory that mnemic read --state made of a text.",
            **NETWORK,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw what was read: out.png, .svg or .pdf.", **NETWORK
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all sentences, not only the most read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask what is remembered, or with --model a network about a story; see what was read.

    Example: mnemic ask "When does the contract end?"

    About a story: mnemic ask --model runs/memn2n --story story.txt "Where is the milk?"

    By a network that came with the package: mnemic ask --model entnet-babi --story FILE QUESTION

    From a knowledge base, without a story: mnemic ask --model runs/kv "who directed [The Bat]"

    From a text of any length: mnemic read --model DIR --state MEMORY FILE, then
    mnemic ask --state MEMORY QUESTION
    """
    if model is not None or state is not None:
        refuse(context, OF_MEMORY, "a network is asked one question, of what it has read itself")
        if questions is not None:
            refuse(context, ONE, "a file of questions is asked of a memory, and is all that is")
            if state is None:
                raise ValueError("a file of questions is asked of a memory: give --state FILE")
            ask_states(model, questions, state)
            return
        if question is None:
            raise ValueError("no question: give it in quotes, such as 'Where is the milk?'")
        if model is None or state is not None or carries(model):
            ask_state(
                model, question, (story, sentence or []), state, plot,
                everything=everything, as_json=as_json,
            )  # fmt: skip
            return
        ask_network(question, model, story, sentence or [], plot, everything, as_json)
        return
    if story is not None or sentence or plot is not None:
        raise ValueError("a story is read by a trained network: give --model DIR")
    how: dict[str, Any] = {"hops": hops, "passages": passages}
    if confidence is not None:
        how["confidence"] = confidence
    if questions is not None and question is not None:
        raise ValueError(
            "--questions and a question are one too many: write it into the file, or ask it alone"
        )
    if questions is not None:
        ask_many(questions, (memory, reader), how)
    elif question is None:
        raise ValueError("no question: give it in quotes, or a file of them: --questions FILE")
    else:
        ask_memory(question, (memory, reader), how, everything=everything, as_json=as_json)


def ask_network(
    question: str,
    model: Path,
    story: str | None,
    sentence: list[str],
    plot: Path | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Ask a trained network about a story, or about the base it knows."""
    from mnemic.checkpoint.folder import load
    from mnemic.predict import knows_base
    from mnemic.train.distributed import spare_threads

    if plot is not None:
        check(plot)
    sentences = [*(told(story) if story is not None else ()), *sentence]
    checkpoint = load(model)
    spare_threads(checkpoint.network)
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
    from mnemic.predict import ask_base, ask_story, knows_base

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
    from mnemic.data.babi.format import lines_of, read_story, story_of

    if story != "-":
        return read_story(Path(story))
    name = "standard input"
    return story_of(lines_of(sys.stdin.buffer.read(), name), name)
