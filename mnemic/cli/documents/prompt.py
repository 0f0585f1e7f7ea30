"""The prompt of ``mnemic ask``: one start for many questions, with a history."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from mnemic.cli.config import find_config_folder
from mnemic.cli.documents.common import shorten_path
from mnemic.cli.documents.print_answer import print_answer
from mnemic.cli.render.console import print_status, print_text, print_warnings
from mnemic.files import OWNER_ONLY, write_text

if TYPE_CHECKING:
    from mnemic.store import Answer, Memory

PROMPT = "\n? "
NUM_SHORT = 2  # sentences of evidence per answer, unless --limit says otherwise
MAX_HISTORY = 1000  # questions
HELP = """\
Write a question, or words to look for. Ctrl-C ends an answer, Ctrl-D the prompt.
:evidence   all sentences that the last answer was found in
:help       this text
:quit       end, as Ctrl-D"""


def run_prompt(memory: "Memory", ask: "Callable[[str], Answer]", limit: int | None) -> None:
    """Read questions from a terminal and answer them, until it ends."""
    stats = memory.stats()  # raises here if there is no memory
    print_text(f"{stats.documents} documents in {shorten_path(str(memory.path))}; :help for help", style="dim")
    loading = Thread(target=load_models, args=[memory])
    loading.start()  # while the first question is typed
    history = QuestionHistory(find_config_folder() / "history")
    answer: Answer | None = None
    while (line := read_line()) is not None and line not in (":quit", ":q", ":exit"):
        if not line:
            continue
        try:
            if line.startswith(":"):
                run_colon_command(line, answer)
                continue
            history.add(line)
            loading.join()
            answer = ask(line)
            print_warnings(*answer.notes)
            print_answer(answer, limit or NUM_SHORT)
        except KeyboardInterrupt:
            print_status("stopped")
        except (ValueError, OSError) as error:
            print_status(f"error: {error}")


def load_models(memory: "Memory") -> None:
    """Load what the first question needs; a failure is reported by that question."""
    with suppress(Exception):
        if memory.embedder is not None:
            memory.embedder.embed(["warm up"])
        if memory.reader is not None:
            memory.reader.answer("Who?", ["warm up"])


def run_colon_command(line: str, answer: "Answer | None") -> None:
    """Run a command of the prompt, such as :help."""
    if line in (":evidence", ":e"):
        if answer is None:
            raise ValueError("there is no answer yet; ask a question first")
        print_answer(answer, len(answer.evidence))
        return
    if line not in (":help", ":h", ":?"):
        print_status(f"there is no command {line}")
    print_text(HELP)


def read_line() -> str | None:
    """Read a line from the terminal; empty after Ctrl-C, None at its end."""
    try:
        return input(PROMPT).strip()
    except KeyboardInterrupt:
        print_text("")
        return ""
    except EOFError:
        print_text("")
        return None
    except UnicodeDecodeError:
        print_status("error: this is no UTF-8 text")
        return ""


class QuestionHistory:
    """The questions of earlier prompts, in a file that only its owner can read.

    Without Python's ``readline`` or a folder to write, there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.readline = path, import_readline()
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
        if len(lines) > 2 * MAX_HISTORY:
            lines = lines[-MAX_HISTORY:]
            self.write("".join(f"{line}\n" for line in lines), append=False)
        for line in lines if self.readline else ():
            self.readline.add_history(line)

    def add(self, question: str) -> None:
        """Add a question for the next prompt; this one's ``readline`` has it already."""
        if self.readline:
            self.write(f"{question}\n", append=True)

    def write(self, text: str, *, append: bool) -> None:
        """Write the file, unless its folder is read-only or it is a link."""
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_text(self.path, text, append=append, mode=OWNER_ONLY)


def import_readline() -> Any:
    """Import ``readline``, which gives ``input`` its history; None where Python lacks it."""
    try:
        import readline
    except ImportError:
        return None
    return readline if sys.stdin.isatty() else None
