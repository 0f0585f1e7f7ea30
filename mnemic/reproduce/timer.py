"""Measure the training time of a table's runs, also across interruptions."""

import time
from pathlib import Path

from mnemic.checkpoint.atomic_files import write_json
from mnemic.files import read_json


class LapTimer:
    """Timer whose laps add up to the total time, even of concurrent runs.

    The time spent on runs that an interrupted table did not finish is saved in ``path``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        spent = read_json(path)["seconds"] if path.is_file() else 0.0
        path.unlink(missing_ok=True)
        self.last = time.monotonic() - spent

    def lap(self) -> float:
        """Return the seconds since the previous lap."""
        before, self.last = self.last, time.monotonic()
        return self.last - before

    def stop(self) -> None:
        """Save the seconds since the previous lap for the next timer on ``path``."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, {"seconds": self.lap()})
