"""``mnemic search``, and what ``mnemic ask`` says from the lasting memory."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mnemic.cli.documents.common import Where, memory_at, place
from mnemic.cli.options import AsJson
from mnemic.cli.render.console import cut, out, print_json, visible, warn
from mnemic.cli.render.evidence_table import cell
from mnemic.cli.render.progress import Bars
from mnemic.cli.text_io import decoded
from mnemic.store.answers import SHOWN, report

if TYPE_CHECKING:
    from mnemic.store import Answer, Ranked

NEXT = 3  # other answers on the screen
LIKELY = 0.05  # from this confidence on, they are worth telling

Asked: TypeAlias = tuple[str | None, str]  # which memory, and by which reader


def ask_memory(
    question: str, asked: Asked, how: dict[str, Any], *, everything: bool, as_json: bool
) -> None:
    """Answer one question on the screen."""
    where, reader = asked
    with memory_at(where, reader=reader) as lasting:
        answer = lasting.ask(question, **how)
    for note in answer.notes:
        warn(note)
    if as_json:
        print_json(report(answer))
    else:
        tell(answer, len(answer.evidence) if everything else SHOWN)


def ask_many(file: Path, asked: Asked, how: dict[str, Any]) -> None:
    """Answer a file of questions, one a line, a line of JSON each."""
    questions = list(lines(file))
    where, reader = asked
    with memory_at(where, reader=reader) as lasting, Bars("questions") as bars:
        for number, question in enumerate(questions):
            print(json.dumps(report(lasting.ask(question, **how)), ensure_ascii=False), flush=True)
            bars.show("asking", number + 1, len(questions))


def lines(file: Path) -> Iterator[str]:
    """The questions of a file; a byte order mark is no part of the first."""
    for line in decoded(file.read_bytes(), str(file)).removeprefix("\ufeff").splitlines():
        if line.strip():
            yield line


def tell(answer: "Answer", most: int) -> None:
    screen = out()
    screen.print(f"[dim]question[/]    {escape(visible(answer.question))}")
    if not answer.found:
        nearest = following("nearest", answer.ranked)
        screen.print(
            f"[dim]answer[/]      [bold]none[/]: nothing in the memory supports one{nearest}"
        )
    else:
        best = answer.evidence[0]
        where = escape(visible(place(best.name, best.page, best.line)))
        screen.print(f"[dim]answer[/]      [bold]{escape(in_line(answer.text))}[/]")
        if answer.kind == "span":
            others = following("next", answer.ranked[1:])
            screen.print(f"[dim]confidence[/]  {answer.score:.2f}{others}")
        screen.print(f"[dim]from[/]        {where} [dim](document {best.document})[/]")
    if answer.evidence:
        screen.print(evidence_table(answer, most))
    screen.print(
        f"read {answer.read} of {answer.looked} passages sentence by sentence", style="dim"
    )


def following(word: str, others: "Sequence[Ranked]") -> str:
    """Other answers, as far as they are worth telling."""
    told = [
        f"{escape(in_line(one.text))} {one.score:.2f}"
        for one in others[:NEXT]
        if one.score >= LIKELY
    ]
    return f"  [dim]({word}: {', '.join(told)})[/]" if told else ""


def in_line(text: str) -> str:
    """A quotation on one line, whatever the original has."""
    return visible(" ".join(text.split()))


def evidence_table(answer: "Answer", most: int) -> Table:
    """The best sentences, and how much each hop read of the passages they are from."""
    table = Table("id", "place", "sentence", header_style="bold")
    table.columns[0].justify = "right"
    for hop in range(answer.hops):
        table.add_column(f"hop {hop + 1}", justify="right", min_width=5)
    for one in answer.evidence[:most]:
        where = Text(visible(place(one.name, one.page, one.line)), style="dim")
        sentence = Text(visible(one.sentence))
        table.add_row(str(one.document), where, sentence, *map(cell, one.weights))
    return table


def search(
    query: Annotated[str, typer.Argument(help="Words, or a question.")],
    most: Annotated[int, typer.Option("--most", help="How many passages to show.")] = SHOWN,
    memory: Where = None,
    as_json: AsJson = False,
) -> None:
    """Find passages in the lasting memory, by their words and by their meaning.

    Example: mnemic search "terms of notice" --most 3
    """
    if most < 1:
        raise ValueError(f"--most is at least 1, not {most}")
    with memory_at(memory) as lasting:
        hits = lasting.search(query, most)
    if as_json:
        found = [
            hit._asdict() | {"sentences": [one._asdict() for one in hit.sentences]} for hit in hits
        ]
        print_json({"query": query, "found": found})
        return
    screen = out()
    for hit in hits:
        where = place(hit.name, hit.page, hit.sentences[0].line)
        screen.print(f"[bold]{hit.document}[/]  {escape(visible(where))}  [dim]{hit.weight:.2f}[/]")
        text = " ".join(visible(hit.text).split())
        screen.print(f"  {cut(text)}", markup=False, style="dim")
    if not hits:
        screen.print("nothing found")
