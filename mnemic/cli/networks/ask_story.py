"""``mnemic ask``: answer a question and show the sentences that were read.

Without --model the answer comes from the memory of documents; with it, from a story or a knowledge
base.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from mnemic.cli.documents.ask import ask_memory, ask_question_file
from mnemic.cli.documents.common import DEFAULT_READER, MemoryOption, ReaderOption
from mnemic.cli.options import MODEL_HELP, JsonOption, refuse_options
from mnemic.cli.render.console import get_stdout, print_json, print_warning
from mnemic.cli.render.evidence_table import print_story_answer
from mnemic.cli.render.plot_story import check_plot_path, plot_story
from mnemic.cli.text.ask import answers_from_memory, ask_state, ask_state_questions

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict import StoryAnswer

MAX_SENTENCES = 8  # printed without --all
MEMORY_PANEL = {"rich_help_panel": "Memory of documents"}
NETWORK_PANEL = {"rich_help_panel": "Trained network"}
MEMORY_OPTIONS = ("address", "hops", "passages", "reader", "min_confidence")  # parameters of ``ask``
SINGLE_QUESTION_OPTIONS = ("question", "story", "sentences", "plot", "show_all")  # likewise
NetworkOption: TypeAlias = Annotated[
    Path | None, typer.Option("--model", metavar="DIR", help=MODEL_HELP, **NETWORK_PANEL)
]


def ask(
    context: typer.Context,
    question: Annotated[str | None, typer.Argument(help="The question.")] = None,
    address: MemoryOption = None,
    hops: Annotated[
        int,
        typer.Option(
            "--hops", help="Number of reads; each further one also uses the passages found before.", **MEMORY_PANEL
        ),
    ] = 1,
    passages: Annotated[
        int, typer.Option("--passages", help="Number of passages to read per hop.", **MEMORY_PANEL)
    ] = 5,
    reader: ReaderOption = DEFAULT_READER,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            "--confidence",
            help="Minimum probability that the reader's answer is right; 0: always answer.",
            show_default="fitted to the reader",
            **MEMORY_PANEL,
        ),
    ] = None,
    question_file: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="A file with one question per line; prints JSON lines. Also with --state.",
            **MEMORY_PANEL,
        ),
    ] = None,
    model: NetworkOption = None,
    story: Annotated[
        str | None,
        typer.Option(
            "--story", metavar="FILE", help="The story, one sentence per line; - is standard input.", **NETWORK_PANEL
        ),
    ] = None,
    sentences: Annotated[
        list[str] | None, typer.Option("--sentence", help="A sentence of the story; may be repeated.", **NETWORK_PANEL)
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help="Ask a memory file that mnemic read --state wrote.", **NETWORK_PANEL
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Plot the evidence into a .png, .svg or .pdf file.", **NETWORK_PANEL
        ),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show all sentences, not only those read most.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask your documents, or with --model a network, and show the evidence.

    Example: mnemic ask "When does the contract end?"

    About a story: mnemic ask --model runs/memn2n --story story.txt "Where is the milk?"

    With a network that ships with the package: mnemic ask --model entnet-babi --story FILE QUESTION

    From a knowledge base, without a story: mnemic ask --model runs/kv "who directed [The Bat]"

    About a text of any length: mnemic read --model DIR --state MEMORY FILE, then
    mnemic ask --state MEMORY QUESTION
    """
    if model is not None or state is not None:
        refuse_options(context, MEMORY_OPTIONS, "these options are for a memory of documents, not for a network")
        if question_file is not None:
            refuse_options(
                context,
                SINGLE_QUESTION_OPTIONS,
                "a file of questions is asked of a memory, without other questions or stories",
            )
            if state is None:
                raise ValueError("a file of questions is asked of a memory: give --state FILE")
            ask_state_questions(model, question_file, state)
            return
        if question is None:
            raise ValueError("no question: give it in quotes, such as 'Where is the milk?'")
        if model is None or state is not None or answers_from_memory(model):
            ask_state(
                model, question, (story, sentences or []), state, plot,
                show_all=show_all, as_json=as_json,
            )  # fmt: skip
            return
        ask_network(question, model, story, sentences or [], plot, show_all, as_json)
        return
    if story is not None or sentences or plot is not None:
        raise ValueError("a story is read by a trained network: give --model DIR")
    ask_kwargs: dict[str, Any] = {"hops": hops, "passages": passages}
    if min_confidence is not None:
        ask_kwargs["confidence"] = min_confidence
    if question_file is not None and question is not None:
        raise ValueError("give --questions or a question, not both: write it into the file, or ask it alone")
    if question_file is not None:
        ask_question_file(question_file, (address, reader), ask_kwargs)
    elif question is None:
        raise ValueError("no question: give it in quotes, or a file of them: --questions FILE")
    else:
        ask_memory(question, (address, reader), ask_kwargs, show_all=show_all, as_json=as_json)


def ask_network(
    question: str,
    model: Path,
    story: str | None,
    typed_sentences: list[str],
    plot: Path | None,
    show_all: bool,
    as_json: bool,
) -> None:
    """Ask a trained network about a story or its knowledge base, and print the answer."""
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.predict import has_knowledge_base
    from mnemic.train.distributed import limit_threads

    if plot is not None:
        check_plot_path(plot)
    sentences = [*(read_sentences(story) if story is not None else ()), *typed_sentences]
    checkpoint = load_checkpoint(model)
    limit_threads(checkpoint.network)
    if story is None and not typed_sentences and not has_knowledge_base(checkpoint):
        raise ValueError("no story: give --story FILE, --story - or --sentence TEXT")
    answer = answer_question(checkpoint, [text for text in sentences if text.strip()], question)
    notes = [*answer.notes]
    if not checkpoint.progress.done:
        notes.append("this network is not trained to the end")
    for note in notes:
        print_warning(note)
    if not as_json:
        print_story_answer(answer, question, None if show_all else MAX_SENTENCES)
    plot_notes = [] if plot is None else plot_story(answer, question, plot)
    for note in plot_notes:
        print_warning(note)
    if as_json:
        plot_path = None if plot is None else str(plot)
        print_json(build_report(answer, question) | {"notes": [*notes, *plot_notes], "plot": plot_path})
    elif plot is not None:
        get_stdout().print(f"drawn: {plot}", markup=False, soft_wrap=True)


def answer_question(checkpoint: "Checkpoint", sentences: list[str], question: str) -> "StoryAnswer":
    """Answer from the story, or from the network's knowledge base if it has one."""
    from mnemic.predict import ask_knowledge_base, ask_story, has_knowledge_base

    if not has_knowledge_base(checkpoint):
        return ask_story(checkpoint, sentences, question)
    if sentences:
        raise ValueError("this network has a knowledge base and reads no stories; ask it without a story")
    return ask_knowledge_base(checkpoint, question)


def build_report(answer: "StoryAnswer", question: str) -> dict[str, Any]:
    """Convert an answer and its evidence to a JSON object."""
    return {
        "question": question,
        "answer": answer.text,
        "probability": answer.probability,
        "ranked": [{"answer": text, "probability": probability} for text, probability in answer.ranked],
        "evidence": [asdict(evidence) for evidence in answer.evidence],
        "memory": answer.memory,
        "taken": list(answer.taken),
        "slots": None if answer.slots is None else asdict(answer.slots),
        "kept": answer.kept,
        "told": answer.told,
    }


def read_sentences(path: str) -> tuple[str, ...]:
    """Read the sentences of a story from a file, or from standard input for ``-``."""
    from mnemic.data.babi.format import decode_lines, parse_sentences, read_story

    if path != "-":
        return read_story(Path(path))
    name = "standard input"
    return parse_sentences(decode_lines(sys.stdin.buffer.read(), name), name)
