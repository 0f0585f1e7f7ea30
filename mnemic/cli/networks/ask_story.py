"""``mnemic story ask``: ask a trained network about a story or its knowledge base."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli.declare import Option
from mnemic.cli.networks.load import load_network
from mnemic.cli.options import AllOption, JsonOption, ModelOption, PlotOption, QuestionArgument
from mnemic.cli.render.captions import build_story_rows, format_column_titles
from mnemic.cli.render.console import get_stdout, print_fields, print_json, print_text, print_warnings, style_text
from mnemic.cli.render.evidence_table import EvidenceRow, evidence_table
from mnemic.cli.render.format import sanitize
from mnemic.cli.render.plot_story import check_plot_path, plot_story
from mnemic.cli.text.ask import print_memory_answer
from mnemic.cli.text.quote import QuoteFinder
from mnemic.cli.text_io import STDIN, STDIN_NAME, read_questions, read_text

if TYPE_CHECKING:
    from rich.table import Table

    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict import StoryAnswer

MAX_SENTENCES = 8  # printed without --all


def ask(
    model: ModelOption,
    question: QuestionArgument = None,
    story: Annotated[
        str | None, Option("--story FILE", "The story, one sentence per line; - is standard input.")
    ] = None,
    sentences: Annotated[list[str] | None, Option("--sentence", "A sentence of the story; may be repeated.")] = None,
    show_all: AllOption = False,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a network about a story, and show the sentences that it read.

    Example: mnemic story ask --model entnet-babi --story story.txt "Where is the milk?"

    A network with a knowledge base needs no story:
    mnemic story ask --model runs/kv "who directed [The Bat]"
    """
    from mnemic.predict import has_knowledge_base
    from mnemic.respond import FROM_MEMORY
    from mnemic.train.distributed import limit_threads

    if story == question == STDIN:
        raise ValueError("standard input (-) can be read once: give the question in quotes")
    (question,) = read_questions(question, None)
    if plot is not None:
        check_plot_path(plot)
    checkpoint, notes = load_network(model)
    if story is None and not sentences and not has_knowledge_base(checkpoint):
        raise ValueError("no story: give --story FILE, --story - or --sentence TEXT")
    if checkpoint.recipe["model"]["respond"]["kind"] in FROM_MEMORY:
        text = "\n".join([*([] if story is None else [read_text(story)]), *(sentences or [])])
        ask_about_text(checkpoint, text, question, notes, plot, show_all=show_all, as_json=as_json)
        return
    limit_threads(checkpoint.network)
    all_sentences = [*(read_sentences(story) if story is not None else ()), *(sentences or [])]
    answer = answer_question(checkpoint, [text for text in all_sentences if text.strip()], question)
    notes = [*answer.notes, *notes]
    if not as_json:
        print_story_answer(answer, question, None if show_all else MAX_SENTENCES)
    notes += [] if plot is None else plot_story(answer, question, plot)
    print_warnings(notes)
    if as_json:
        plot_path = None if plot is None else str(plot)
        print_json(build_report(answer, question) | {"notes": notes, "plot": plot_path})
    elif plot is not None:
        print_text(f"drawn: {plot}")


def ask_about_text(
    checkpoint: "Checkpoint",
    text: str,
    question: str,
    notes: list[str],
    plot: Path | None,
    *,
    show_all: bool,
    as_json: bool,
) -> None:
    """Read a story into a new memory for this question alone, and answer from it."""
    from mnemic.predict import long_text

    state = long_text.read_text(checkpoint, text)
    if not state.filled:
        raise ValueError(f"nothing is remembered of the {state.seen} tokens that were read; tell another story")
    quotes = QuoteFinder(state, text)
    print_memory_answer(checkpoint, state, question, quotes, notes, plot, show_all=show_all, as_json=as_json)


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

    if path != STDIN:
        return read_story(Path(path))
    return parse_sentences(decode_lines(sys.stdin.buffer.read(), STDIN_NAME), STDIN_NAME)


def print_story_answer(answer: "StoryAnswer", question: str, limit: int | None) -> None:
    """Print an answer with at most ``limit`` sentences of evidence; None prints all."""
    best, *alternatives = answer.ranked
    alternatives_text = ", ".join(f"{word} {probability:.2f}" for word, probability in alternatives)
    print_fields({
        "question": question,
        "answer": style_text(best[0], "bold"),
        "probability": f"{best[1]:.2f}  (next: {alternatives_text})",
    })  # fmt: skip
    if not answer.evidence:
        return
    get_stdout().print(build_story_table(answer, limit))
    if answer.slots is not None:
        name, weight = answer.slots.names[answer.slots.most_read], max(answer.slots.read)
        text = f"a column of blocks is a slot, as high as it opened; most read: slot {sanitize(name)} ({weight:.2f})"
        print_text(text, style="dim")
    num_hidden = len(answer.evidence) - (limit or len(answer.evidence))
    if num_hidden > 0:
        print_text(f"{num_hidden} more {answer.item}s were read less; --all shows them", style="dim")


def build_story_table(answer: "StoryAnswer", limit: int | None) -> "Table":
    """Build the evidence table of a story, with what was read of each slot."""
    rows = build_story_rows(answer, limit)
    if answer.slots is not None:
        reads = [weight / max(answer.slots.read) for weight in answer.slots.read]
        rows.append(EvidenceRow("(read of each slot)", (), gates=reads, is_total=True))
    return evidence_table(rows, format_column_titles(answer), text_title=answer.item)
