"""Watch folders, and remember what changes in them."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemic.store.memory import Memory

DEBOUNCE_MS, STEP_MS = 1000, 100  # changes within a second are one; quiet for a tenth ends it
POLL_MS = 300  # after which it looks whether to stop and for what is still to be written
RETRY_S = 3.0  # until what another process kept from being written is tried again


class FolderWatcher:
    """Calls ``remember`` with folders in which something changed, again if that failed."""

    def __init__(
        self,
        memory: "Memory",
        paths: Sequence[Path],
        remember: Callable[[Path], None],
        *,
        on_start: Callable[[], object] = lambda: None,
        on_wait: Callable[[str, Path], object] = lambda reason, path: None,
    ) -> None:
        self.memory, self.paths, self.remember = memory, paths, remember
        self.on_start, self.on_wait = on_start, on_wait
        self.pending: set[Path] = set(paths)  # still to be remembered, at first everything
        self.blocked_until = 0.0  # another process writes, or a folder is not there for the moment

    def run(self, stop: Event | None = None) -> None:
        """Remember everything, then all changes, until ``stop`` is set."""
        changes = import_watchfiles().watch(
            *self.paths,
            watch_filter=self.accepts,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            rust_timeout=POLL_MS,
            stop_event=stop,
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
                self.on_start()

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
        """Remember the folders that changed."""
        for root in sorted(self.pending):
            try:
                self.remember(root)
                self.pending.discard(root)
            except (ValueError, OSError) as error:  # such as another process that writes
                if not self.blocked_until:
                    self.on_wait(str(error), root)
                self.blocked_until = time.monotonic() + RETRY_S
                return
        self.blocked_until = 0.0


def is_hidden(path: Path) -> bool:
    """Return whether a relative path has a hidden name in it."""
    return any(name.startswith(".") for name in path.parts)


def import_watchfiles() -> Any:
    """Import watchfiles, which only watching needs."""
    try:
        import watchfiles
    except ImportError:
        raise ValueError("watching folders needs watchfiles: pip install 'mnemic[watch]'") from None
    return watchfiles
