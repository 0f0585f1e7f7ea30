"""``mnemic ask``: answer questions from a memory of documents."""

import sys
from functools import partial
from typing import Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory
from mnemic.cli.documents.print_answer import print_answer
from mnemic.cli.documents.prompt import run_prompt
from mnemic.cli.render.console import AS_JSON, print_json, print_json_line, print_warnings
from mnemic.cli.render.progress import ProgressBars
from mnemic.cli.text_io import read_questions
from mnemic.store.answer.confidence import MIN_CONFIDENCE
from mnemic.store.answers import NUM_SHOWN, answer_to_dict

EXIT_NO_ANSWER = 1  # exit code with --fail if a question has no answer
FAIL_HELP = "Exit with code 1 if a question has no answer."
RERANK_HELP = "Number of passages to read and rank anew, of which the best are used; 0: none."
TIMEOUT_HELP = "Read no further passages after this time; those that were not read are ranked without."
CONFIDENCE_HELP = "Minimum probability that the reader's answer is right; 0: always answer."
LIMIT_HELP, LIMIT_DEFAULT = "Sentences of evidence to show.", f"{NUM_SHOWN}; all as JSON"


def ask(
    question: opt.Question = None,
    question_file: opt.Questions = None,
    address: opt.Memory = None,
    hops: Annotated[int, opt.Option("--hops", "Number of reads; each further one uses what was found before.")] = 1,
    passages: Annotated[int, opt.Option("--passages", "Number of passages to read per hop.")] = 5,
    rerank: Annotated[int | None, opt.Option("--rerank N", RERANK_HELP, "as few as answer", minimum=0)] = None,
    rerank_timeout: Annotated[float | None, opt.Option("--rerank-timeout SECONDS", TIMEOUT_HELP)] = None,
    reader: opt.Reader = opt.DEFAULT_READER,
    confidence: Annotated[float, opt.Option("--confidence", CONFIDENCE_HELP, "fitted to the reader")] = MIN_CONFIDENCE,
    limit: Annotated[int | None, opt.Option("--limit, -n N", LIMIT_HELP, LIMIT_DEFAULT, minimum=1)] = None,
    show_all: opt.All = False,
    inside: opt.Inside = None,
    kind: opt.Kind = None,
    since: opt.Since = None,
    until: opt.Until = None,
    fail: Annotated[bool, opt.Option("--fail", FAIL_HELP)] = False,
) -> int:
    """Ask your documents a question, and show the evidence for the answer.

    Without a question, on a terminal, it asks you for one after another.

    Example: mnemic ask "When does the contract end?"

    Of some documents: mnemic ask "What did it cost?" --in ~/invoices --kind pdf --since 2024

    Many questions: mnemic ask --questions questions.txt
    """
    is_prompt = question is None and question_file is None and is_interactive()
    questions = [] if is_prompt else read_questions(question, question_file)
    num_unanswered = 0
    with open_memory(address, reader=reader) as memory:
        ask_memory = partial(
            memory.ask,
            hops=hops,
            passages=passages,
            rerank=rerank,
            rerank_timeout_s=rerank_timeout,
            confidence=confidence,
            inside=inside,
            kind=kind,
            since=since,
            until=until,
        )
        if is_prompt:
            run_prompt(memory, ask_memory, limit)
            return 0
        with ProgressBars("questions") as bars:
            for number, text in enumerate(questions, start=1):
                answer = ask_memory(text)
                num_unanswered += not answer.has_answer
                report = answer_to_dict(answer)
                report["evidence"] = report["evidence"][:limit]
                if question_file is None:
                    print_warnings(*answer.notes)
                    print_json(report)
                    print_answer(answer, limit or (len(answer.evidence) if show_all else NUM_SHOWN))
                else:
                    print_json_line(report)
                    bars.show("asking", number, len(questions))
    return EXIT_NO_ANSWER if fail and num_unanswered else 0


def is_interactive() -> bool:
    """Return whether a person sits at both ends: a terminal, and no --json."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not AS_JSON.get()
