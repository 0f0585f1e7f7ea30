"""An audit log of calls, one JSON line each, for its owner alone.

Texts to remember are logged by their length: what is forgotten must not stay in a log.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mnemic.files import OWNER_ONLY, fcntl, open_private
from mnemic.store.locate import find_home_folder
from mnemic.store.postgres.address import Address

MAX_CHARS = 120  # of an argument or an outcome
MAX_ITEMS = 20  # of a list
MAX_BYTES = 10_000_000  # then the log moves to NAME.1, in the place of the one before
TEXT_ARGUMENTS = ("text", "title")  # logged as their length


def find_log_path(memory_path: Path | Address) -> Path:
    """Return the path of a memory's log: beside its file, or among the named memories."""
    if isinstance(memory_path, Address):
        return find_home_folder() / f"{memory_path.schema}-mcp.log"
    return memory_path.with_name(f"{memory_path.name}-mcp.log")


class AuditLog:
    """A log file, to which several servers of a memory may append."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(self.open_file())  # a log that cannot be written is an error before anything is served

    def write(self, tool: str, arguments: Mapping[str, Any], outcome: str, seconds: float) -> None:
        """Append a line about a call."""
        items = list(arguments.items())[:MAX_ITEMS]
        record = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "tool": shorten(tool),
            "arguments": {name[:MAX_CHARS]: describe_argument(name, value) for name, value in items},
            "outcome": shorten(outcome),
            "seconds": round(seconds, 3),
        }
        descriptor = self.open_file()
        try:
            os.write(descriptor, json.dumps(record).encode() + b"\n")
        finally:
            os.close(descriptor)

    def open_file(self) -> int:
        """Open and lock the file; move a full one aside."""
        while True:
            descriptor = open_log(self.path)
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            status = os.fstat(descriptor)
            if self.path.exists() and os.path.samestat(self.path.stat(), status):
                if status.st_size < MAX_BYTES:
                    return descriptor
                os.replace(self.path, self.path.with_name(f"{self.path.name}.1"))
            os.close(descriptor)  # it was moved, by this process or another


def open_log(path: Path) -> int:
    """Open a file of this user's own for appending, and close it to others."""
    try:
        descriptor = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise ValueError(f"the log {path} cannot be written: {error.strerror}; give another --log FILE") from None
    os.fchmod(descriptor, OWNER_ONLY)
    return descriptor


def describe_argument(name: str, value: Any) -> Any:
    """Describe an argument for the log: texts by their length, all others shortened."""
    if name in TEXT_ARGUMENTS and isinstance(value, str):
        return f"{len(value)} characters"
    return shorten(value)


def shorten(value: Any) -> Any:
    """Shorten a value of JSON to a few words or items."""
    if isinstance(value, list):
        return [shorten(item) for item in value[:MAX_ITEMS]]
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MAX_CHARS:
        return f"{text[:MAX_CHARS]}…"
    return value
