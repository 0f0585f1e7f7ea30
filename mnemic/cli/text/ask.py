"""``mnemic text ask``: answer from the memory file of a long text, with evidence."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.cli import options as opt
from mnemic.cli.networks.load import load_network
from mnemic.cli.render.console import Styled, print_fields, print_json, print_json_line, print_text, print_warnings
from mnemic.cli.render.plot_story import check_plot_path
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text.quote import QuoteFinder
from mnemic.cli.text_io import read_questions

if TYPE_CHECKING:
    from mnemic.checkpoint.folder import Checkpoint
    from mnemic.predict.memory_state import State
    from mnemic.predict.results import MemoryAnswer

MAX_EVIDENCE = 5  # spans, without --all
UNQUOTED_NOTE = "the text is not available, so the answer is only a list of positions in it"
UNANSWERED_NOTE = "the reader sees no answer in what was read most: look at the evidence"
TEXT_HELP = "A text that was read, if its file has moved; may be repeated."


class LoadedMemory(NamedTuple):
    """A memory that has read texts, its network, and how to quote the texts."""

    checkpoint: "Checkpoint"
    state: "State"
    quotes: QuoteFinder
    notes: list[str]


def ask(
    path: opt.MemoryFile,
    question: opt.Question = None,
    question_file: opt.Questions = None,
    files: Annotated[list[str] | None, opt.Option("--text FILE", TEXT_HELP)] = None,
    model: Annotated[Path | None, opt.Option("--model DIR", opt.MODEL_HELP, "the one that wrote the memory")] = None,
    show_all: opt.All = False,
    plot: opt.Plot = None,
) -> None:
    """Ask about texts that were read into a memory file, and show the evidence.

    Example: mnemic text ask notes.mem "Who saved the paintings?"
    """
    questions = read_questions(question, question_file)
    check_plot_path(plot)
    memory = load_memory(model, path, files or [])
    if question_file is None:
        print_memory_answer(memory, questions[0], plot, show_all=show_all)
        return
    if plot is not None:
        raise ValueError("--plot draws the evidence of one question: give it instead of --questions")
    with ProgressBars("questions") as bars:
        for number, text in enumerate(questions, start=1):
            answer, notes = answer_from_memory(memory, text)
            print_json_line(build_report(text, answer, notes, memory.quotes) | {"notes": notes})
            bars.show("asking", number, len(questions))
    print_warnings(*memory.notes, *note_full_memory(memory.state), *memory.quotes.format_notes())


def load_memory(model: Path | None, path: Path, files: list[str]) -> LoadedMemory:
    """Load a memory file and its network; raise if the memory is empty."""
    from mnemic.predict.long_text import load_state

    checkpoint, notes = load_network(model or locate_network(path))
    state = load_state(checkpoint, path)
    if not state.filled:
        advice = f"read a text into {path}: mnemic text read {path} FILE"
        raise ValueError(f"nothing is remembered of the {state.seen} tokens that were read; {advice}")
    return LoadedMemory(checkpoint, state, QuoteFinder(state, files=files), notes)


def locate_network(path: Path) -> Path:
    """Locate the network that wrote a memory file."""
    from mnemic.checkpoint.folder import find_checkpoint
    from mnemic.predict.memory_state import load_state_file

    origin = load_state_file(path).origin
    if not origin:
        raise ValueError(f"{path} does not say where its network is: give --model DIR")
    try:
        find_checkpoint(Path(origin))
    except CheckpointError:
        raise ValueError(f"the network of {path} was {origin}, and is not there any more: give --model DIR") from None
    return Path(origin)


def answer_from_memory(memory: LoadedMemory, question: str) -> tuple["MemoryAnswer", list[str]]:
    """Answer a question from a memory, with notes; the reader may extract the text."""
    from mnemic.predict import long_text

    answer = long_text.answer_from_memory(memory.checkpoint, memory.state, question)
    return (answer, []) if long_text.can_generate(memory.checkpoint) else extract_text(answer, question, memory.quotes)


def extract_text(answer: "MemoryAnswer", question: str, quotes: QuoteFinder) -> tuple["MemoryAnswer", list[str]]:
    """Extract the text of an answer from the sentences that were read most.

    The text is empty if it finds no answer in them, or if no file is available to quote.
    """
    from mnemic.predict.extract_answer import extract_answer

    passages = [(source.start, quotes.quote_span(source.start, source.end).text or "") for source in answer.evidence]
    if not passages or not passages[0][1]:
        return answer, [UNQUOTED_NOTE]
    text, probability = extract_answer(question, passages)
    return replace(answer, text=text, probability=probability), [] if text else [UNANSWERED_NOTE]


def print_memory_answer(memory: LoadedMemory, question: str, plot: Path | None, *, show_all: bool) -> None:
    """Answer a question from a memory and print, or plot, the evidence."""
    from mnemic.cli.render.plot_state import plot_state
    from mnemic.predict.long_text import can_generate

    state, quotes = memory.state, memory.quotes
    answer, answer_notes = answer_from_memory(memory, question)
    report = build_report(question, answer, answer_notes, quotes) | {"filled": state.filled, "size": state.slots}
    meaning = "of these words" if can_generate(memory.checkpoint) else "that these sentences hold an answer"
    print_answer(question, answer, meaning, quotes, len(answer.evidence) if show_all else MAX_EVIDENCE)
    print_text(f"read: {answer.seen} of {answer.total} tokens; {state.filled} of {state.slots} slots are filled")
    notes = [*memory.notes, *answer_notes, *note_full_memory(state), *quotes.format_notes()]
    notes += [] if plot is None else plot_state(state, answer, question, plot)
    print_conclusion(report, notes, plot)


def print_conclusion(report: dict[str, Any], notes: list[str], plot: Path | None) -> None:
    """Print the notes of an answer, its report, and where its evidence was drawn."""
    print_warnings(*notes)
    print_json(report | {"notes": notes, "plot": plot})
    if plot is not None:
        print_text(f"drawn: {plot}")


def print_answer(question: str, answer: "MemoryAnswer", meaning: str, quotes: QuoteFinder, limit: int) -> None:
    """Print the answer, the meaning of its probability, and its evidence, most read first."""
    fields: dict[str, Any] = {"question": question, "answer": "no answer in words: see below"}
    if answer.text:
        fields |= {"answer": Styled(answer.text, "bold"), "probability": f"{answer.probability:.2f} {meaning}"}
    print_fields(fields)
    quotes.print_table([(source.weight, [source]) for source in answer.evidence[:limit]], "read")
    if (num_hidden := len(answer.evidence) - limit) > 0:
        print_text(f"{num_hidden} more were read less; --all shows them", style="dim")


def note_full_memory(state: "State") -> list[str]:
    """Return a note if the memory has no free slot."""
    from mnemic.memory import MEMORIES

    when_full = MEMORIES[state.kind].when_full
    return [f"all {state.slots} slots are filled: {when_full}"] if state.filled == state.slots else []


def build_report(question: str, answer: "MemoryAnswer", notes: list[str], quotes: QuoteFinder) -> dict[str, Any]:
    """Convert an answer to a JSON object, with quotes if the text is available."""
    slots = []
    for slot in answer.slots:
        slots.append(slot._asdict() | {"sources": [quotes.source_to_dict(span) for span in slot.sources]})
    evidence = [quotes.source_to_dict(span) for span in answer.evidence]
    probability = None if UNQUOTED_NOTE in notes else answer.probability
    report = {"question": question, "answer": answer.text, "probability": probability}
    return report | {"evidence": evidence, "slots": slots, "seen": answer.seen, "total": answer.total}
