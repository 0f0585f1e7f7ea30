"""``mnemic demo``: remember mnemic's own documentation and answer questions with evidence."""

from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import mnemic
from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory, shorten_path
from mnemic.cli.documents.print_answer import print_answer
from mnemic.cli.documents.remember import print_report, remember_with_progress, summarize_steps
from mnemic.cli.networks.demo_stories import run_stories_demo
from mnemic.cli.render.console import print_json, print_text
from mnemic.files import write_text
from mnemic.store.answers import answer_to_dict

if TYPE_CHECKING:
    from mnemic.store import Memory

MAX_EVIDENCE = 2  # sentences per question
MEMORY_FILE = "memory.db"
PAGES = Path(mnemic.__file__).with_name("docs")  # in a clone a link to docs
QUESTIONS = {  # about mnemic, with words of the right answer; None: there is none
    "What is the license?": "Apache",
    "Which package is needed for PDF files?": "pypdfium2",
    "Which version of Python does mnemic need?": "3.11",
    "Who won the football world cup in 1998?": None,
}
OUT_HELP = "Folder for the memory or the run."


def demo(
    use_stories: Annotated[bool, opt.Option("--stories", "Train a memory network on stories and ask it.")] = False,
    folder: Annotated[Path | None, opt.Option("--out DIR", OUT_HELP, "runs/demo, or runs/demo-stories")] = None,
    fresh: opt.Fresh = False,
) -> int:
    """Remember mnemic's own documentation, ask questions about it and show the evidence.

    Nothing leaves this machine. With --stories, train a small memory network in a minute and show
    which sentences it reads.

    Example: mnemic demo

    A memory network: mnemic demo --stories
    """
    if use_stories:
        all_right = run_stories_demo(folder or Path("runs/demo-stories"), fresh=fresh)
    else:
        all_right = run_documents_demo(folder or Path("runs/demo"), fresh=fresh)
    return 0 if all_right else 1


def run_documents_demo(folder: Path, *, fresh: bool) -> bool:
    """Remember the documentation, ask the questions; return whether all answers are right."""
    folder.mkdir(parents=True, exist_ok=True)
    memory_path = str((folder / MEMORY_FILE).absolute())
    for path in folder.glob(f"{MEMORY_FILE}*") if fresh else ():
        path.unlink()
    paths = find_documentation(folder)
    with open_memory(memory_path) as memory:
        print_text(f"mnemic remembers its documentation ({len(paths)} files):")
        report = summarize_steps(remember_with_progress(memory.remembering(paths)), memory)
        print_report(report)
        answers = [ask_demo_question(memory, question) for question in QUESTIONS]
    print_json({"remembered": report, "answers": answers})
    print_text("\nNow yours: mnemic remember ~/Documents, then mnemic ask 'When …?'")
    print_text(f"(This memory: mnemic ask --memory {shorten_path(memory_path)} '…')")
    return all(answer["right"] for answer in answers)


def find_documentation(folder: Path) -> list[Path]:
    """Find the README and the pages; an installed package has its README as metadata."""
    pages = PAGES.resolve()
    readme = pages.with_name("README.md")
    if not readme.is_file():
        package_metadata = metadata("mnemic")
        if "Description" not in package_metadata:
            raise ValueError(
                f"no README beside {pages}, nor one in the installed package; run it in a clone of "
                "mnemic, or install a wheel: make wheel"
            )
        readme = folder / "README.md"
        write_text(readme, package_metadata["Description"])
    return [readme, *sorted(pages.rglob("*.md"))]


def ask_demo_question(memory: "Memory", question: str) -> dict[str, Any]:
    """Ask one question, print the evidence, and report whether the answer is right."""
    answer, right_answer = memory.ask(question), QUESTIONS[question]
    is_right = not answer.has_answer if right_answer is None else right_answer in answer.text
    print_text("")
    print_answer(answer, MAX_EVIDENCE)
    if not is_right:
        print_text(f"wrong: it should be {right_answer or 'none'}", style="red")
    return answer_to_dict(answer) | {"right": is_right}
