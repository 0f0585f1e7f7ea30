"""``mnemic ask`` and ``mnemic search``: answers and passages from a memory of documents."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import format_citation, open_memory
from mnemic.cli.render.console import Styled, print_fields, print_json, print_json_line, print_text, print_warnings
from mnemic.cli.render.evidence_table import EvidenceRow, print_evidence
from mnemic.cli.render.format import join_lines, truncate
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text_io import read_questions
from mnemic.store.answer.confidence import MIN_CONFIDENCE
from mnemic.store.answers import NUM_SHOWN, answer_to_dict

if TYPE_CHECKING:
    from mnemic.store import Answer, RankedAnswer

MAX_ALTERNATIVES = 3  # other answers to print
MIN_ALTERNATIVE = 0.05  # less likely alternatives are not printed
CONFIDENCE_HELP = "Minimum probability that the reader's answer is right; 0: always answer."
LIMIT_HELP, LIMIT_DEFAULT = "Sentences of evidence to show.", f"{NUM_SHOWN}; all as JSON"


def ask(
    question: opt.Question = None,
    question_file: opt.Questions = None,
    address: opt.Memory = None,
    hops: Annotated[int, opt.Option("--hops", "Number of reads; each further one uses what was found before.")] = 1,
    passages: Annotated[int, opt.Option("--passages", "Number of passages to read per hop.")] = 5,
    reader: opt.Reader = opt.DEFAULT_READER,
    confidence: Annotated[float, opt.Option("--confidence", CONFIDENCE_HELP, "fitted to the reader")] = MIN_CONFIDENCE,
    limit: Annotated[int | None, opt.Option("--limit, -n N", LIMIT_HELP, LIMIT_DEFAULT, minimum=1)] = None,
    show_all: opt.All = False,
) -> None:
    """Ask your documents a question, and show the evidence for the answer.

    Example: mnemic ask "When does the contract end?"

    Many questions: mnemic ask --questions questions.txt
    """
    questions = read_questions(question, question_file)
    with open_memory(address, reader=reader) as memory, ProgressBars("questions") as bars:
        for number, text in enumerate(questions, start=1):
            answer = memory.ask(text, hops=hops, passages=passages, confidence=confidence)
            report = answer_to_dict(answer)
            report["evidence"] = report["evidence"][:limit]
            if question_file is None:
                print_warnings(*answer.notes)
                print_json(report)
                print_answer(answer, limit or (len(answer.evidence) if show_all else NUM_SHOWN))
            else:
                print_json_line(report)
                bars.show("asking", number, len(questions))


def print_answer(answer: "Answer", limit: int) -> None:
    """Print an answer and at most ``limit`` sentences of evidence."""
    fields: dict[str, str | Styled] = {"question": answer.question}
    if answer.has_answer:
        best = answer.evidence[0]
        fields["answer"] = Styled(join_lines(answer.text), "bold")
        if answer.kind == "span":
            fields["confidence"] = f"{answer.score:.2f}{format_alternatives('next', answer.ranked[1:])}"
        fields["from"] = f"{format_citation(best.name, best.page, best.line)} (document {best.document})"
    else:
        nearest = format_alternatives("nearest", answer.ranked)
        fields["answer"] = f"none: nothing in the memory supports one{nearest}"
    print_fields(fields)
    rows = []
    for evidence in answer.evidence[:limit]:
        citation = format_citation(evidence.name, evidence.page, evidence.line)
        rows.append(EvidenceRow(evidence.sentence, evidence.weights, label=str(evidence.document), citation=citation))
    print_evidence(rows, [f"hop {hop + 1}" for hop in range(answer.hops)])
    print_text(f"read {answer.read} of {answer.looked} passages sentence by sentence", style="dim")


def format_alternatives(label: str, alternatives: "Sequence[RankedAnswer]") -> str:
    """Format the likely alternatives to the best answer, or nothing if there are none."""
    likely = [answer for answer in alternatives[:MAX_ALTERNATIVES] if answer.score >= MIN_ALTERNATIVE]
    texts = [f"{join_lines(answer.text)} {answer.score:.2f}" for answer in likely]
    return f"  ({label}: {', '.join(texts)})" if texts else ""


def search(
    query: Annotated[str, opt.Argument("QUERY", "Words or a question; - is standard input.")],
    limit: Annotated[int, opt.Option("--limit, -n N", "Maximum number of passages.", minimum=1)] = NUM_SHOWN,
    address: opt.Memory = None,
) -> None:
    """Find passages in the memory, by their words and by their meaning.

    Example: mnemic search "terms of notice" --limit 3
    """
    (query,) = read_questions(query, None)
    with open_memory(address) as memory:
        hits = memory.search(query, limit)
    rows = [hit._asdict() | {"sentences": [sentence._asdict() for sentence in hit.sentences]} for hit in hits]
    print_json({"query": query, "found": rows})
    for hit in hits:
        citation = format_citation(hit.name, hit.page, hit.sentences[0].line)
        print_text(f"{hit.document}  {citation}  {hit.weight:.2f}", style="bold")
        print_text(f"  {truncate(join_lines(hit.text))}", style="dim")
    if not hits:
        print_text("nothing found")
