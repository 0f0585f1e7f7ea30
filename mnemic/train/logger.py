"""Write a run's log as a table, ``log.tsv``, and as TensorBoard events.

``log.tsv`` has one line per logged epoch. It is written from the run's history, so a run that was
killed and resumed has the same log as one that was not.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemic.files import write_text
from mnemic.train.tensorboard import EventWriter

COLUMNS = ("phase", "epoch", "step", "loss", "norm", "rate", "validation", "seconds", "figures")


class RunLogger:
    """The log files of a run."""

    def __init__(self, folder: Path, history: Sequence[Mapping[str, Any]]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "log.tsv"
        lines = ["\t".join(COLUMNS), *(format_row(row) for row in history)]
        write_text(self.path, "\n".join(lines) + "\n")
        if not history:  # remove the events of a run that this one replaces
            for path in sorted(folder.glob("events.out.tfevents.*.mnemic")):
                path.unlink()
        self.events = EventWriter(folder)

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Append a row to the table and its numbers to the TensorBoard events."""
        write_text(self.path, format_row(row) + "\n", append=True)
        names = [name for name in ("loss", "norm", "rate", "validation") if row[name] is not None]
        scalars = {f"train/{name}": float(row[name]) for name in names}
        scalars |= {f"figures/{name}": value for name, value in row.get("figures", {}).items()}
        scalars |= {f"losses/{name}": value for name, value in row.get("losses", {}).items()}
        self.events.add_scalars(int(row["steps"]), scalars)

    def close(self) -> None:
        self.events.close()


def format_row(row: Mapping[str, Any]) -> str:
    return "\t".join(format_value(row.get(name)) for name in COLUMNS)


def format_value(value: Any) -> str:
    """Format a value of the log: ``-`` for None, ``name value, …`` for a dict."""
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {format_value(number)}" for name, number in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
