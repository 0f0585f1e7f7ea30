"""``mnemic watch``: keep a memory up to date with folders, until Ctrl-C."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory, shorten_path
from mnemic.cli.render.console import AS_JSON, print_json_line, print_status, print_text
from mnemic.store.ingest.watch import FolderWatcher, import_watchfiles

if TYPE_CHECKING:
    from mnemic.store import Memory, RememberStep

SILENT_OUTCOMES = ("reading", "unchanged", "skipped")
FOLDERS_HELP = "Folders or files to watch; folders recursively."
Patterns = list[str] | None


def watch(
    folders: Annotated[list[Path], opt.Argument("FOLDERS", FOLDERS_HELP)],
    include: Annotated[Patterns, opt.Option("--include PATTERN", "As of `mnemic remember`.")] = None,
    exclude: Annotated[Patterns, opt.Option("--exclude PATTERN", "As of `mnemic remember`.")] = None,
    address: opt.Memory = None,
    embedder: opt.Embedder = None,
) -> None:
    """Remember folders, and then every change in them, until Ctrl-C.

    It prints one line per file that is new, changed, gone or broken.

    Example: mnemic watch ~/Documents ~/notes

    In the background: nohup mnemic watch ~/Documents > watch.log &
    """
    paths = [path.expanduser().absolute() for path in folders]
    if missing := [path for path in paths if not path.exists()]:
        raise ValueError(f"there is no {missing[0]}; give folders or files that exist")
    import_watchfiles()
    with open_memory(address, embedder) as memory, end_on_termination():
        watcher = make_watcher(memory, paths, include or [], exclude or [])
        try:
            watcher.run()
        except KeyboardInterrupt:
            print_status("stopped; the memory has all that was reported")


def make_watcher(memory: "Memory", paths: list[Path], include: list[str], exclude: list[str]) -> FolderWatcher:
    """Make a watcher that prints what it remembers."""
    names = ", ".join(shorten_path(str(path)) for path in paths)
    return FolderWatcher(
        memory,
        paths,
        WatchReporter(memory, include, exclude).remember,
        on_start=lambda: print_status(f"watching {names}; Ctrl-C ends"),
        on_wait=lambda reason, path: print_event("waiting", reason, str(path)),
    )


class WatchReporter:
    """Remembers folders, and prints what is new in them."""

    def __init__(self, memory: "Memory", include: list[str], exclude: list[str]) -> None:
        self.memory, self.include, self.exclude = memory, include, exclude
        self.broken: dict[str, tuple[str, ...]] = {}  # of broken files, with the notes that were printed

    def remember(self, root: Path) -> None:
        """Remember a folder, and print what is new in it."""
        for step in self.memory.remembering([root], include=self.include, exclude=self.exclude):
            self.report(step)

    def report(self, step: "RememberStep") -> None:
        """Print a line about a file, once while it stays broken."""
        notes = tuple(step.notes)
        if step.outcome != "broken":
            self.broken.pop(step.path, None)
        elif self.broken.get(step.path) == notes:
            return
        else:
            self.broken[step.path] = notes
        print_step(step)


def print_step(step: "RememberStep") -> None:
    """Print a line about a file, unless nothing happened to it."""
    if step.outcome not in SILENT_OUTCOMES:
        passages = f"{step.passages} passages" if step.passages else ""
        print_event(step.outcome, "; ".join([passages, *step.notes] if passages else step.notes), step.path)


def print_event(outcome: str, detail: str, path: str) -> None:
    """Print a line of the log, with the time; as JSON if --json is set."""
    at = time.strftime("%H:%M:%S")
    if AS_JSON.get():
        print_json_line({"at": at, "outcome": outcome, "path": path, "detail": detail})
    else:
        print_text(f"{at}  {outcome:<8} {shorten_path(path)}{f'  ({detail})' if detail else ''}", flush=True)


@contextmanager
def end_on_termination() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that the memory is closed."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
