"""``mnemic remember`` and ``mnemic update``: write documents into a memory."""

import sys
from collections import Counter
from collections.abc import Iterable
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory, shorten_path
from mnemic.cli.render.console import print_json, print_text, print_warnings
from mnemic.cli.render.progress import ProgressBars

if TYPE_CHECKING:
    from mnemic.store import Memory, RememberStep
    from mnemic.store.ingest.questions import QuestionWriter

EXIT_NOTHING_READ = 1  # exit code if none of the files could be read
OUTCOMES = ("new", "changed", "moved", "copied", "unchanged", "gone", "broken", "skipped")
PATHS_HELP = "Files of any kind that mnemic knows; folders recursively."
INCLUDE_HELP = "In folders, also these files, such as *.log, as text if their kind is unknown."
QUESTIONS_HELP = "A network of recipe question-generation, to write questions ahead."
ONLY_HELP = "In folders, only these files, such as *.md."
Patterns = list[str] | None


def remember(
    paths: Annotated[list[Path] | None, opt.Argument("FILES OR FOLDERS", PATHS_HELP)] = None,
    note: Annotated[str | None, opt.Option("--note TEXT", "A text instead of a file.")] = None,
    include: Annotated[Patterns, opt.Option("--include PATTERN", INCLUDE_HELP)] = None,
    only: Annotated[Patterns, opt.Option("--only PATTERN", ONLY_HELP)] = None,
    exclude: Annotated[Patterns, opt.Option("--exclude PATTERN", "In folders, not these files, such as old/*.")] = None,
    address: opt.Memory = None,
    in_project: Annotated[bool, opt.Option("--here", "A memory in this folder, used from inside it.")] = False,
    embedder: opt.Embedder = None,
    skipped: Annotated[
        bool, opt.Option("--skipped", "List the files that were not read, each with the reason.")
    ] = False,
    ask_password: Annotated[bool, opt.Option("--password", "Ask for the password of locked files.")] = False,
    password_file: Annotated[Path | None, opt.Option("--password-file FILE", "A file with that password.")] = None,
    questions: Annotated[Path | None, opt.Option("--questions MODEL", QUESTIONS_HELP)] = None,
) -> int:
    """Remember files and folders; a repeated run reads only changed files.

    The memory stays on this machine, in one file that only you can read. With --questions a
    network also writes questions that each passage answers, which are searched beside its words
    and never shown; passages that were remembered before get them, too.

    The exit code is 1 if none of the files could be read.

    Example: mnemic remember ~/Documents report.pdf

    Then: mnemic ask "When does the contract end?"
    """
    from mnemic.store.ingest.questions import resolve_writer
    from mnemic.store.locate import PROJECT_PATH
    from mnemic.store.trust import check_project

    if not paths and note is None and questions is None:
        raise ValueError("nothing to remember: give files, folders or --note TEXT")
    if in_project and address is not None:
        raise ValueError("--here and --memory name two memories; give one of them")
    password = read_password(password_file, ask=ask_password)
    writer = None if questions is None else resolve_writer(questions)
    with open_memory(str(check_project(Path.cwd() / PROJECT_PATH)) if in_project else address, embedder) as memory:
        steps = memory.remembering(
            paths or [], include=include or (), only=only or (), exclude=exclude or (), password=password
        )
        report = summarize_steps(remember_with_progress(steps) if paths else [], memory)
        if note is not None:
            report["note"] = memory.note(note)
        if writer is not None:
            report["questions"] = write_questions_with_progress(memory, writer)
        print_json(report)
        print_report(report, lists_skipped=skipped)
    is_nothing_read = note is None and report["broken"] and not set(report["files"]) - {"broken", "gone", "skipped"}
    return EXIT_NOTHING_READ if is_nothing_read else 0


def remember_with_progress(steps: Iterable["RememberStep"]) -> "list[RememberStep]":
    """Remember files with a progress bar, and print warnings at once.

    Returns the last step of each file.
    """
    file_steps = []
    with ProgressBars("bytes") as bars:
        for step in steps:
            bars.show("remembering", step.done, max(step.total, 1), shorten_path(step.path))
            if step.outcome != "reading":
                file_steps.append(step)
            if step.outcome not in ("reading", "skipped"):
                print_warnings(*(f"{shorten_path(step.path)}: {note}" for note in step.notes))
    return file_steps


def write_questions_with_progress(memory: "Memory", writer: "QuestionWriter") -> int:
    """Write questions ahead with a progress bar; return the number of passages."""
    num_passages = 0
    with ProgressBars() as bars:
        for num_passages, total in memory.write_questions(writer):
            bars.show("writing questions", num_passages, max(total, 1), "passages")
    return num_passages


def summarize_steps(steps: "list[RememberStep]", memory: "Memory") -> dict[str, Any]:
    """Count the outcomes of the files, and list broken and skipped files and notes."""
    from mnemic.store import count_unread

    counts = Counter[str](step.outcome for step in steps)
    return {
        "memory": str(memory.path),
        "files": {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]},
        "passages": sum(step.passages for step in steps),
        "broken": list_reasons(steps, "broken"),
        "skipped": list_reasons(steps, "skipped"),
        "unread": count_unread(steps),
        "notes": {step.path: step.notes for step in steps if step.notes and step.outcome not in ("broken", "skipped")},
    }


def list_reasons(steps: "list[RememberStep]", outcome: str) -> list[dict[str, str]]:
    """List the files with an outcome, each with its reason."""
    return [{"path": step.path, "reason": "; ".join(step.notes)} for step in steps if step.outcome == outcome]


def read_password(file: Path | None, *, ask: bool) -> str | None:
    """Read the password of locked files from a file's first line, or from the terminal."""
    if file is not None:
        return file.read_text(encoding="utf-8").split("\n")[0]
    if not ask:
        return None
    if not sys.stdin.isatty():
        raise ValueError("--password asks on a terminal, and there is none; give --password-file FILE")
    return getpass("password of the files: ")


def print_report(report: dict[str, Any], *, lists_skipped: bool = False) -> None:
    """Print the summary of remembered files, and which were not read."""
    counts = {outcome: count for outcome, count in report["files"].items() if outcome != "skipped"}
    if counts:
        print_text(
            f"files: {', '.join(f'{n} {name}' for name, n in counts.items())}; {report['passages']} new passages"
        )
    elif "note" not in report:
        print_text("no files of a known kind there; --include PATTERN reads others, as text")
    if (num_unread := sum(report["unread"].values())) and (report["skipped"] or lists_skipped):
        reasons = ", ".join(f"{count} {reason}" for reason, count in report["unread"].items())
        verb = "1 file was" if num_unread == 1 else f"{num_unread} files were"
        print_text(f"{verb} not read: {reasons}{'' if lists_skipped else '; --skipped lists them'}")
    for file in [*report["broken"], *report["skipped"]] if lists_skipped else ():
        print_text(f"  {shorten_path(file['path'])}: {file['reason']}")
    if "questions" in report:
        print_text(f"questions written ahead for {report['questions']} passages")
    if "note" in report:
        print_text(f"remembered as document {report['note']}")
    print_text(f"memory: {shorten_path(report['memory'])}", style="dim")


def update(
    target: opt.Document,
    text: Annotated[str | None, opt.Argument("TEXT", "The new text; without it, the file is read again.")] = None,
    address: opt.Memory = None,
) -> None:
    """Replace a document by a new text or by its file's current content.

    The old version stays in the history.

    Example: mnemic update 12 "The meeting is on Friday."

    Its file has changed: mnemic update report.pdf
    """
    with open_memory(address) as memory:
        document = memory.document(target)
        old_id, new_id = document.id, memory.update(target, text)
    for path in document.places if text is not None else ():
        print_warnings(f"{path} is as it was: remembered again, it is read beside the new text")
    print_json({"memory": str(memory.path), "before": old_id, "after": new_id})
    print_text(f"document {old_id} is as it was" if old_id == new_id else f"document {new_id} supersedes {old_id}")
