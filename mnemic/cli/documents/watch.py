"""``mnemic watch``: keep a memory up to date with folders, until Ctrl-C."""

import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory, shorten_path
from mnemic.cli.render.console import AS_JSON, print_json_line, print_status, print_text

if TYPE_CHECKING:
    from mnemic.store import Memory, RememberStep

DEBOUNCE_MS, STEP_MS = 1000, 100  # changes within a second are one; quiet for a tenth ends it
POLL_MS = 300  # after which it looks for Ctrl-C and for what is still to be written
RETRY_S = 3.0  # until what another process kept from being written is tried again
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
        watcher = FolderWatcher(memory, paths, include or [], exclude or [])
        try:
            watcher.run()
        except KeyboardInterrupt:
            print_status("stopped; the memory has all that was reported")


class FolderWatcher:
    """Remembers what changes in folders; a change that could not be written is tried again."""

    def __init__(self, memory: "Memory", paths: Sequence[Path], include: list[str], exclude: list[str]) -> None:
        self.memory, self.paths = memory, paths
        self.include, self.exclude = include, exclude
        self.pending: set[Path] = set(paths)  # still to be remembered, at first everything
        self.blocked_until = 0.0  # another process writes, or a folder is not there for the moment
        self.broken: dict[str, tuple[str, ...]] = {}  # of broken files, with the notes that were printed

    def run(self) -> None:
        """Remember everything, then all changes."""
        changes = import_watchfiles().watch(
            *self.paths,
            watch_filter=self.accepts,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            rust_timeout=POLL_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
            raise_interrupt=True,
        )
        for number, batch in enumerate(changes):
            # The folders are watched by now, so that no change escapes the first reading.
            self.pending |= self.find_roots(path for _, path in batch)
            if time.monotonic() >= self.blocked_until:
                self.remember_pending()
            if number == 0:
                print_status(f"watching {', '.join(shorten_path(str(path)) for path in self.paths)}; Ctrl-C ends")

    def accepts(self, _: object, path: str) -> bool:
        """Return whether a change matters: not in hidden folders, nor of the memory's own files."""
        if path.startswith(str(Path(str(self.memory.path)).absolute())):
            return False
        roots = [root for root in self.paths if Path(path).is_relative_to(root)]
        return any(not is_hidden(Path(path).relative_to(root)) for root in roots)

    def find_roots(self, paths: Iterable[str]) -> set[Path]:
        """Return the watched folders and files in which paths changed."""
        return {root for path in paths for root in self.paths if Path(path).is_relative_to(root)}

    def remember_pending(self) -> None:
        """Remember the folders that changed, and print what is new in them."""
        for root in sorted(self.pending):
            try:
                for step in self.memory.remembering([root], include=self.include, exclude=self.exclude):
                    self.report(step)
                self.pending.discard(root)
            except (ValueError, OSError) as error:  # such as another process that writes
                if not self.blocked_until:
                    print_event("waiting", str(error), str(root))
                self.blocked_until = time.monotonic() + RETRY_S
                return
        self.blocked_until = 0.0

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


def is_hidden(path: Path) -> bool:
    """Return whether a relative path has a hidden name in it."""
    return any(name.startswith(".") for name in path.parts)


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


def import_watchfiles() -> Any:
    """Import watchfiles, which only this command needs."""
    try:
        import watchfiles
    except ImportError:
        raise ValueError("watching folders needs watchfiles: pip install 'mnemic[watch]'") from None
    return watchfiles
