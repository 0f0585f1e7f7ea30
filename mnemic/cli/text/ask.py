"""``mnemic ask --state``: answer from the memory file of a long text, with evidence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.cli.documents.ask import read_questions
from mnemic.cli.documents.common import shorten_path
from mnemic.cli.render.console import MAX_PASSAGE_CHARS, get_stdout, print_json, print_warning, sanitize, truncate
from mnemic.cli.render.plot_story import check_plot_path
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text.extract import AnswerText, choose_answer_text
from mnemic.cli.text.quote import Quote, QuoteFinder
from mnemic.cli.text_io import STDIN, STDIN_NAME, read_text

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict.memory_state import State
    from mnemic.predict.results import MemoryAnswer

MAX_EVIDENCE = 5  # spans, without --all
FULL_NOTES = {  # what happens when all slots are filled, per kind of memory
    "selective": "what was worth least is no longer kept",
    "blended": "what comes now is blended into what they hold",
}


def answers_from_memory(model: Path) -> bool:
    """Check whether a network answers from a memory; False if it cannot be read."""
    from mnemic.checkpoint.atomic_files import CheckpointError
    from mnemic.checkpoint.folder import RECIPE, find_checkpoint, read_metadata
    from mnemic.respond import FROM_MEMORY

    try:
        recipe = read_metadata(find_checkpoint(model) / RECIPE)["recipe"]
    except CheckpointError:  # loading it later reports the problem
        return False
    return recipe["model"].get("respond", {}).get("kind") in FROM_MEMORY


def ask_state(
    model: Path | None,
    question: str,
    story: tuple[str | None, list[str]],
    path: Path | None,
    plot: Path | None,
    *,
    show_all: bool,
    as_json: bool,
) -> None:
    """Answer from the memory file at ``path``, or from a story, and print the evidence.

    ``story`` is a file name and further sentences; they are read for this question alone.
    """
    from mnemic.predict import long_text
    from mnemic.predict.long_text import can_generate

    if plot is not None:
        check_plot_path(plot)
    text = "\n".join([*([] if story[0] is None else [read_text(story[0])]), *story[1]])
    checkpoint, state = load_network_and_state(model, text, path)
    answer, quote_finder = (long_text.answer_from_memory(checkpoint, state, question), QuoteFinder(state, text))
    answer_text = choose_answer_text(answer, question, quote_finder, is_generative=can_generate(checkpoint))
    notes = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    json_report: dict[str, Any] = {}
    if as_json:
        json_report = build_report(answer, answer_text, question, quote_finder)
        json_report |= {"filled": state.filled, "size": state.slots}
    else:
        get_stdout().print(f"{sanitize(question)}\n{format_answer(answer_text)}", markup=False)
        print_evidence(answer, state, quote_finder, len(answer.evidence) if show_all else MAX_EVIDENCE)
    notes += [*answer_text.notes, *note_full_memory(state), *quote_finder.format_notes()]
    for note in notes:
        print_warning(note)
    if answer_text.probability is not None:
        answer = replace(answer, text=answer_text.text, probability=answer_text.probability)
    notes += [] if plot is None else plot_with_warnings(state, answer, question, plot)
    if as_json:
        print_json(json_report | {"notes": notes, "plot": None if plot is None else str(plot)})
    elif plot is not None:
        get_stdout().print(f"drawn: {plot}", markup=False, soft_wrap=True)


def ask_state_questions(model: Path | None, question_file: Path, path: Path) -> None:
    """Answer a file with one question per line; print one JSON line per answer."""
    from mnemic.predict import long_text
    from mnemic.predict.long_text import can_generate

    questions = list(read_questions(question_file))
    if not questions:
        raise ValueError(f"{question_file} holds no question; write one per line")
    checkpoint, state = load_network_and_state(model, "", path)
    quote_finder, is_generative = QuoteFinder(state), can_generate(checkpoint)
    with ProgressBars("questions") as bars:
        for number, question in enumerate(questions):
            answer = long_text.answer_from_memory(checkpoint, state, question)
            answer_text = choose_answer_text(answer, question, quote_finder, is_generative=is_generative)
            row = build_report(answer, answer_text, question, quote_finder) | {"notes": list(answer_text.notes)}
            print(json.dumps(row, ensure_ascii=False), flush=True)
            bars.show("asking", number + 1, len(questions))
    for note in [*note_full_memory(state), *quote_finder.format_notes()]:
        print_warning(note)


def load_network_and_state(model: Path | None, text: str, path: Path | None) -> tuple["Checkpoint", "State"]:
    """Load a network and its memory file, or read ``text`` into a new memory.

    Raises if the memory is empty.
    """
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.predict import long_text
    from mnemic.predict.memory_state import load_state_file

    if path is not None and text:
        raise ValueError(f"give either --state or a story: read it first, mnemic read --state {path} FILE")
    if path is None and not text:
        raise ValueError("nothing is remembered: give --state FILE, --story FILE or --sentence")
    if model is None:
        assert path is not None
        model = locate_network(load_state_file(path), path)
    checkpoint = load_checkpoint(model)
    state = long_text.read_text(checkpoint, text) if path is None else long_text.load_state(checkpoint, path)
    if not state.filled:
        command = f"mnemic read --model {model} --state {path} FILE"
        advice = "tell another story" if path is None else f"read a text into {path}: {command}"
        raise ValueError(f"nothing is remembered of the {state.seen} tokens that were read; {advice}")
    return checkpoint, state


def note_full_memory(state: "State") -> list[str]:
    """Return a note if the memory has no free slot."""
    if state.filled < state.slots:
        return []
    return [f"all {state.slots} slots are filled: {FULL_NOTES[state.kind]}"]


def plot_with_warnings(state: "State", answer: "MemoryAnswer", question: str, plot: Path) -> list[str]:
    """Plot the memory; print and return the warnings."""
    from mnemic.cli.render.plot_state import plot_state

    notes = plot_state(state, answer, question, plot)
    for note in notes:
        print_warning(note)
    return notes


def locate_network(state: "State", path: Path) -> Path:
    """Locate the network that wrote a memory file."""
    from mnemic.checkpoint.atomic_files import CheckpointError
    from mnemic.checkpoint.folder import find_checkpoint

    if not state.origin:
        raise ValueError(f"{path} does not say where its network is: give --model DIR")
    try:
        find_checkpoint(Path(state.origin))
    except CheckpointError:
        raise ValueError(
            f"the network of {path} was {state.origin}, and is not there any more: give --model DIR"
        ) from None
    return Path(state.origin)


def build_report(
    answer: "MemoryAnswer", answer_text: AnswerText, question: str, quote_finder: QuoteFinder
) -> dict[str, Any]:
    """Convert an answer to a JSON object, with quotes if the text is available."""
    return {
        "question": question,
        "answer": answer_text.text,
        "probability": answer_text.probability,
        "evidence": [quote_finder.source_to_dict(source) for source in answer.evidence],
        "slots": [
            slot._asdict() | {"sources": [quote_finder.source_to_dict(source) for source in slot.sources]}
            for slot in answer.slots
        ],
        "seen": answer.seen,
        "total": answer.total,
    }


def format_answer(answer_text: AnswerText) -> str:
    """Format the answer with its probability, or a hint if there is no text."""
    if not answer_text.text or answer_text.probability is None:
        return "no answer in words: see below"
    return f"{shorten_quote(answer_text.text)}  ({100 * answer_text.probability:.0f} %)"


def print_evidence(answer: "MemoryAnswer", state: "State", quote_finder: QuoteFinder, limit: int) -> None:
    """Print the evidence, most read first, and the size of the memory."""
    console = get_stdout()
    for source in answer.evidence[:limit]:
        quote = quote_finder.quote_span(source.start, source.end)
        quotation = f"  {shorten_quote(quote.text)}" if quote.text else ""
        console.print(
            f"  {100 * source.weight:5.1f} %  {format_location(quote)}{quotation}", markup=False, soft_wrap=True
        )
    if (num_hidden := len(answer.evidence) - limit) > 0:
        console.print(f"{num_hidden} more were read less; --all shows them", style="dim")
    console.print(
        f"read: {answer.seen} of {answer.total} tokens; {state.filled} of {state.slots} slots are filled", markup=False
    )


def shorten_quote(text: str) -> str:
    """Shorten a long quotation to its beginning and its end."""
    return sanitize(truncate(text, tail_chars=MAX_PASSAGE_CHARS // 2))


def format_location(quote: Quote) -> str:
    """Format the text and the character offsets of a quote."""
    name = STDIN_NAME if quote.name == STDIN else sanitize(shorten_path(quote.name))
    if not name and quote.number:
        name = f"text {quote.number}"
    return f"{name}{', ' if name else ''}characters {quote.start} to {quote.end}"
