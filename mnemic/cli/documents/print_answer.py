"""Print an answer of a memory and its evidence, for a person."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemic.cli.documents.common import format_citation
from mnemic.cli.render.console import Styled, print_fields, print_text
from mnemic.cli.render.evidence_table import EvidenceRow, print_evidence
from mnemic.cli.render.format import join_lines
from mnemic.store.answers import DAY_SOURCES

if TYPE_CHECKING:
    from mnemic.store import Answer, Evidence, RankedAnswer
    from mnemic.store.answers import ResolvedDate

MAX_ALTERNATIVES = 3  # other answers to print
MIN_ALTERNATIVE = 0.05  # less likely alternatives are not printed
MAX_SENTENCE_CHARS = 280  # of a sentence of evidence; the rest is …


def print_answer(answer: "Answer", limit: int) -> None:
    """Print an answer and at most ``limit`` sentences of evidence."""
    fields: dict[str, str | Styled] = {"question": answer.question}
    if answer.has_answer:
        best = answer.evidence[0]
        fields["answer"] = Styled(join_lines(answer.text), "bold")
        if answer.date is not None:
            fields["date"] = f"{answer.date.text}  ({format_basis(answer.date)})"
        for number, item in enumerate(answer.items, start=1):
            citation = format_citation(item.evidence.name, item.evidence.page, item.line)
            fields[f"item {number}"] = f"{join_lines(item.text)}  ({citation})"
        if answer.kind == "span":
            fields["confidence"] = f"{answer.score:.2f}{format_alternatives('next', answer.ranked[1:])}"
        fields["from"] = f"{format_citation(best.name, best.page, answer.line)} (document {best.document})"
    else:
        nearest = format_alternatives("nearest", answer.ranked)
        fields["answer"] = f"none: nothing in the memory supports one{nearest}"
    print_fields(fields)
    rows = [build_row(answer, evidence, is_first=not rank) for rank, evidence in enumerate(answer.evidence[:limit])]
    print_evidence(rows, title_weights(answer, rows))
    print_text(f"read {answer.read} of {answer.looked} passages sentence by sentence", style="dim")


def format_basis(date: "ResolvedDate") -> str:
    """Format the relative time of an answer, and the day that it is counted from."""
    words = f"“{join_lines(date.words)}”, counted from"
    if date.anchor is None:
        return f"{words} {DAY_SOURCES[date.source]}"
    evidence = date.anchor.evidence
    return f"{words} “{date.anchor.text}”, {format_citation(evidence.name, evidence.page, date.anchor.line)}"


def build_row(answer: "Answer", evidence: "Evidence", *, is_first: bool) -> EvidenceRow:
    """Build the row of a sentence; the answer stands out in the first one."""
    text, marks = evidence.sentence, list[tuple[int, int]]()
    if is_first and answer.kind == "span" and answer.has_answer:
        marks = [(answer.start - evidence.start, min(answer.end, evidence.end) - evidence.start)]
    text, marks = shorten_around(text, marks, MAX_SENTENCE_CHARS)
    citation = format_citation(evidence.name, evidence.page, evidence.line)
    return EvidenceRow(text, evidence.weights, label=str(evidence.document), citation=citation, marks=marks)


def shorten_around(text: str, marks: Sequence[tuple[int, int]], max_chars: int) -> tuple[str, list[tuple[int, int]]]:
    """Shorten a text around its first mark, and move the marks."""
    if len(text) <= max_chars:
        return text, list(marks)
    first = marks[0][0] if marks else 0
    start = 0 if first < max_chars // 2 else max(0, min(first - max_chars // 3, len(text) - max_chars))
    end = min(start + max_chars, len(text))
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    shift = len(head) - start
    inside = [(max(first, start) + shift, min(last, end) + shift) for first, last in marks if start <= first < end]
    return f"{head}{text[start:end]}{tail}", inside


def title_weights(answer: "Answer", rows: Sequence[EvidenceRow]) -> list[str]:
    """Title the columns of weights; none where all rows have the same weight."""
    if answer.hops == 1:
        return ["weight"] if len({f"{row.weights[0]:.2f}" for row in rows}) > 1 else []
    return [f"hop {hop + 1}" for hop in range(answer.hops)]


def format_alternatives(label: str, alternatives: "Sequence[RankedAnswer]") -> str:
    """Format the likely alternatives to the best answer, or nothing if there are none."""
    likely = [answer for answer in alternatives[:MAX_ALTERNATIVES] if answer.score >= MIN_ALTERNATIVE]
    texts = [f"{join_lines(answer.text)} {answer.score:.2f}" for answer in likely]
    return f"  ({label}: {', '.join(texts)})" if texts else ""
