"""``mnemic story ask``: ask a trained network about a story or its knowledge base."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.networks.load import load_network
from mnemic.cli.render.captions import build_story_rows, format_column_titles
from mnemic.cli.render.console import Styled, print_fields, print_text
from mnemic.cli.render.evidence_table import print_evidence
from mnemic.cli.render.plot_story import check_plot_path, plot_story
from mnemic.cli.text.ask import LoadedMemory, print_conclusion, print_memory_answer
from mnemic.cli.text.quote import QuoteFinder
from mnemic.cli.text_io import STDIN, STDIN_NAME, read_questions, read_text

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict import StoryAnswer

MAX_SENTENCES = 8  # printed without --all
REPORT_FIELDS = ("evidence", "memory", "taken", "slots", "kept", "told")  # of a StoryAnswer, in JSON


def ask(
    model: opt.Model,
    question: opt.Question = None,
    story: Annotated[str | None, opt.Option("--story FILE", "The story, a sentence per line; - is stdin.")] = None,
    sentences: Annotated[list[str] | None, opt.Option("--sentence", "A sentence of it; may be repeated.")] = None,
    show_all: opt.All = False,
    plot: opt.Plot = None,
) -> None:
    """Ask a network about a story, and show the sentences that it read.

    Example: mnemic story ask --model entnet-babi --story story.txt "Where is the milk?"

    A network with a knowledge base needs no story:
    mnemic story ask --model runs/kv "who directed [The Bat]"
    """
    from mnemic.predict import has_knowledge_base

    if story == question == STDIN:
        raise ValueError("standard input (-) can be read once: give the question in quotes")
    (question,) = read_questions(question, None)
    check_plot_path(plot)
    checkpoint, notes = load_network(model)
    if story is None and not sentences and not has_knowledge_base(checkpoint):
        raise ValueError("no story: give --story FILE, --story - or --sentence TEXT")
    if checkpoint.network.respond.source == "carried memory":
        text = "\n".join([*([] if story is None else [read_text(story)]), *(sentences or [])])
        memory = read_into_memory(checkpoint, text, notes)
        print_memory_answer(memory, question, plot, show_all=show_all)
        return
    all_sentences = [*(read_sentences(story) if story is not None else ()), *(sentences or [])]
    answer = answer_question(checkpoint, [text for text in all_sentences if text.strip()], question)
    print_story_answer(answer, question, None if show_all else MAX_SENTENCES)
    notes = [*answer.notes, *notes, *([] if plot is None else plot_story(answer, question, plot))]
    print_conclusion(build_report(answer, question), notes, plot)


def read_into_memory(checkpoint: "Checkpoint", text: str, notes: list[str]) -> LoadedMemory:
    """Read a story into a new memory, for one question."""
    from mnemic.predict import long_text

    state = long_text.read_text(checkpoint, text)
    if not state.filled:
        raise ValueError(f"nothing is remembered of the {state.seen} tokens that were read; tell another story")
    return LoadedMemory(checkpoint, state, QuoteFinder(state, text), notes)


def answer_question(checkpoint: "Checkpoint", sentences: list[str], question: str) -> "StoryAnswer":
    """Answer from the story, or from the network's knowledge base if it has one."""
    from mnemic.predict import ask_knowledge_base, ask_story, has_knowledge_base
    from mnemic.train.distributed import limit_threads

    limit_threads(checkpoint.network)
    if not has_knowledge_base(checkpoint):
        return ask_story(checkpoint, sentences, question)
    if sentences:
        raise ValueError("this network has a knowledge base and reads no stories; ask it without a story")
    return ask_knowledge_base(checkpoint, question)


def build_report(answer: "StoryAnswer", question: str) -> dict[str, Any]:
    """Convert an answer and its evidence to a JSON object."""
    fields = asdict(answer)
    ranked = [{"answer": text, "probability": probability} for text, probability in answer.ranked]
    report = {"question": question, "answer": answer.text, "probability": answer.probability, "ranked": ranked}
    return report | {name: fields[name] for name in REPORT_FIELDS}


def read_sentences(path: str) -> tuple[str, ...]:
    """Read the sentences of a story from a file, or from standard input for ``-``."""
    from mnemic.data.babi.format import decode_lines, parse_sentences, read_story

    if path != STDIN:
        return read_story(Path(path))
    return parse_sentences(decode_lines(sys.stdin.buffer.read(), STDIN_NAME), STDIN_NAME)


def print_story_answer(answer: "StoryAnswer", question: str, limit: int | None) -> None:
    """Print an answer with at most ``limit`` sentences of evidence; None prints all."""
    best, *alternatives = answer.ranked
    next_best = ", ".join(f"{word} {probability:.2f}" for word, probability in alternatives)
    fields: dict[str, Any] = {"question": question, "answer": Styled(best[0], "bold")}
    print_fields(fields | {"probability": f"{best[1]:.2f}  (next: {next_best})"})
    if not answer.evidence:
        return
    rows = build_story_rows(answer, limit)
    print_evidence(rows, format_column_titles(answer), text_title=answer.item)
    if answer.slots is not None:
        name, weight = answer.slots.names[answer.slots.most_read], max(answer.slots.read)
        blocks = "a column of blocks is a slot, as high as it opened"
        print_text(f"{blocks}; most read: slot {name} ({weight:.2f})", style="dim")
    num_hidden = len(answer.evidence) - (limit or len(answer.evidence))
    if num_hidden > 0:
        print_text(f"{num_hidden} more {answer.item}s were read less; --all shows them", style="dim")
