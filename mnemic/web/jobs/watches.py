"""Folders whose changes are remembered while the server runs, and again after a restart."""

import json
import logging
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from mnemic.files import make_private_folder, read_json, replace_file
from mnemic.store.ingest.watch import FolderWatcher, import_watchfiles
from mnemic.web.memories import ServedMemory

FILE = "watches.json"
logger = logging.getLogger(__name__)


class WatchTable:
    """The watched folders of a server, each with a thread."""

    def __init__(self, folder: Path) -> None:
        self.path, self.lock = folder / FILE, Lock()
        self.stops: dict[tuple[str, str], Event] = {}

    def list_stored(self) -> list[tuple[str, str]]:
        """List memory and folder of all that was watched when the server ended."""
        rows: list[Any] = read_json(self.path).get("watches", []) if self.path.is_file() else []
        return [(str(memory), str(folder)) for memory, folder in rows]

    def is_watched(self, memory: str, folder_id: str) -> bool:
        """Return whether a folder is watched for a memory."""
        return (memory, folder_id) in self.stops

    def set(self, served: ServedMemory, folder_id: str, folder: Path, *, is_on: bool) -> None:
        """Begin or end to watch a folder, and note that."""
        with self.lock:
            make_private_folder(self.path.parent)
            key = (served.name, folder_id)
            if is_on and key not in self.stops:
                import_watchfiles()
                self.stops[key] = stop = Event()
                Thread(target=watch_folder, args=(served, folder, stop), daemon=True).start()
            elif not is_on and key in self.stops:
                self.stops.pop(key).set()
            with replace_file(self.path) as file:
                file.write(json.dumps({"watches": sorted(self.stops)}).encode())

    def close(self) -> None:
        """End all threads."""
        for stop in self.stops.values():
            stop.set()


def watch_folder(served: ServedMemory, folder: Path, stop: Event) -> None:
    """Remember the changes of a folder until ``stop`` is set."""

    def remember(root: Path) -> None:
        with served.turns.take(is_urgent=False, stop=stop):
            for _ in () if stop.is_set() else served.memory.remembering([root]):
                if stop.is_set():
                    return

    watcher = FolderWatcher(served.memory, [folder], remember)
    try:
        watcher.run(stop)
    except Exception as error:
        logger.error("the folder %s is not watched any more: %s", folder, error)
