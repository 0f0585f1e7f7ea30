"""How long the runs of a table took, also where it was stopped and gone on with."""

import time
from pathlib import Path

from mnemic.checkpoint.atomic_files import read_json, write_json


class Clock:
    """Laps add up to the whole time, also where what they time runs side by side.

    What a table that was stopped had spent on runs that it did not finish is kept in ``path``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        spent = read_json(path)["seconds"] if path.is_file() else 0.0
        path.unlink(missing_ok=True)
        self.last = time.monotonic() - spent

    def lap(self) -> float:
        """Seconds since the lap before."""
        before, self.last = self.last, time.monotonic()
        return self.last - before

    def stop(self) -> None:
        """Keep the seconds since the last lap for the next time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, {"seconds": self.lap()})
