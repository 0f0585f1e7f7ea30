"""``mnemic search``, and the part of ``mnemic ask`` that asks a memory of documents."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mnemic.cli.documents.common import MemoryOption, format_citation, open_memory
from mnemic.cli.options import JsonOption
from mnemic.cli.render.console import get_stdout, print_json, print_warning, sanitize, truncate
from mnemic.cli.render.evidence_table import format_weight
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text_io import decode_utf8
from mnemic.store.answers import NUM_SHOWN, answer_to_dict

if TYPE_CHECKING:
    from mnemic.store import Answer, RankedAnswer

MAX_ALTERNATIVES = 3  # other answers to print
MIN_CONFIDENCE = 0.05  # less likely alternatives are not printed

MemorySpec: TypeAlias = tuple[str | None, str]  # the memory's address, the reader's name


def ask_memory(
    question: str, memory_spec: MemorySpec, ask_kwargs: dict[str, Any], *, show_all: bool, as_json: bool
) -> None:
    """Ask one question and print the answer with its evidence."""
    address, reader = memory_spec
    with open_memory(address, reader=reader) as memory:
        answer = memory.ask(question, **ask_kwargs)
    for note in answer.notes:
        print_warning(note)
    if as_json:
        print_json(answer_to_dict(answer))
    else:
        print_answer(answer, len(answer.evidence) if show_all else NUM_SHOWN)


def ask_question_file(path: Path, memory_spec: MemorySpec, ask_kwargs: dict[str, Any]) -> None:
    """Answer a file with one question per line; print one JSON line per answer."""
    questions = list(read_questions(path))
    address, reader = memory_spec
    with open_memory(address, reader=reader) as memory, ProgressBars("questions") as bars:
        for number, question in enumerate(questions):
            print(json.dumps(answer_to_dict(memory.ask(question, **ask_kwargs)), ensure_ascii=False), flush=True)
            bars.show("asking", number + 1, len(questions))


def read_questions(path: Path) -> Iterator[str]:
    """Read the non-empty lines of a file, without a byte order mark."""
    for line in decode_utf8(path.read_bytes(), str(path)).removeprefix("\ufeff").splitlines():
        if line.strip():
            yield line


def print_answer(answer: "Answer", limit: int) -> None:
    """Print an answer and at most ``limit`` sentences of evidence."""
    screen = get_stdout()
    screen.print(f"[dim]question[/]    {escape(sanitize(answer.question))}")
    if not answer.has_answer:
        nearest = format_alternatives("nearest", answer.ranked)
        screen.print(f"[dim]answer[/]      [bold]none[/]: nothing in the memory supports one{nearest}")
    else:
        best = answer.evidence[0]
        citation = escape(sanitize(format_citation(best.name, best.page, best.line)))
        screen.print(f"[dim]answer[/]      [bold]{escape(join_lines(answer.text))}[/]")
        if answer.kind == "span":
            alternatives = format_alternatives("next", answer.ranked[1:])
            screen.print(f"[dim]confidence[/]  {answer.score:.2f}{alternatives}")
        screen.print(f"[dim]from[/]        {citation} [dim](document {best.document})[/]")
    if answer.evidence:
        screen.print(build_sentence_table(answer, limit))
    screen.print(f"read {answer.read} of {answer.looked} passages sentence by sentence", style="dim")


def format_alternatives(label: str, alternatives: "Sequence[RankedAnswer]") -> str:
    """Format the likely alternatives to the best answer, or nothing if there are none."""
    texts = [
        f"{escape(join_lines(answer.text))} {answer.score:.2f}"
        for answer in alternatives[:MAX_ALTERNATIVES]
        if answer.score >= MIN_CONFIDENCE
    ]
    return f"  [dim]({label}: {', '.join(texts)})[/]" if texts else ""


def join_lines(text: str) -> str:
    """Join the lines of a quotation into one, without control characters."""
    return sanitize(" ".join(text.split()))


def build_sentence_table(answer: "Answer", limit: int) -> Table:
    """Build a table of evidence sentences with their passage's weight per hop."""
    table = Table("id", "place", "sentence", header_style="bold")
    table.columns[0].justify = "right"
    for hop in range(answer.hops):
        table.add_column(f"hop {hop + 1}", justify="right", min_width=5)
    for evidence in answer.evidence[:limit]:
        citation = Text(sanitize(format_citation(evidence.name, evidence.page, evidence.line)), style="dim")
        sentence = Text(sanitize(evidence.sentence))
        table.add_row(str(evidence.document), citation, sentence, *map(format_weight, evidence.weights))
    return table


def search(
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    limit: Annotated[int, typer.Option("--most", help="Maximum number of passages.")] = NUM_SHOWN,
    address: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find passages in the memory, by their words and by their meaning.

    Example: mnemic search "terms of notice" --most 3
    """
    if limit < 1:
        raise ValueError(f"--most is at least 1, not {limit}")
    with open_memory(address) as memory:
        hits = memory.search(query, limit)
    if as_json:
        rows = [hit._asdict() | {"sentences": [sentence._asdict() for sentence in hit.sentences]} for hit in hits]
        print_json({"query": query, "found": rows})
        return
    screen = get_stdout()
    for hit in hits:
        citation = format_citation(hit.name, hit.page, hit.sentences[0].line)
        screen.print(f"[bold]{hit.document}[/]  {escape(sanitize(citation))}  [dim]{hit.weight:.2f}[/]")
        text = " ".join(sanitize(hit.text).split())
        screen.print(f"  {truncate(text)}", markup=False, style="dim")
    if not hits:
        screen.print("nothing found")
