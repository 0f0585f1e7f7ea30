"""The log of a run: a table that a person can read, and the same numbers for TensorBoard.

``log.tsv`` has one line a logged epoch. It is written from the run's history, so a run that was
killed and went on has the log of a run that was not.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mnemic.train.tensorboard import Events

COLUMNS = ("phase", "epoch", "step", "loss", "norm", "rate", "validation", "seconds", "figures")
NAME = "log.tsv"


class Log:
    """Where the rows of a run go."""

    def __init__(self, folder: Path, history: Sequence[Mapping[str, Any]]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        lines = ["\t".join(COLUMNS), *(line(row) for row in history)]
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if not history:  # what another run, now replaced, told TensorBoard
            for old in sorted(folder.glob("events.out.tfevents.*.mnemic")):
                old.unlink()
        self.events = Events(folder)

    def add(self, row: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line(row) + "\n")
        numbers = {
            name: row[name]
            for name in ("loss", "norm", "rate", "validation")
            if row[name] is not None
        }
        told = {f"train/{name}": float(value) for name, value in numbers.items()}
        told |= {f"figures/{name}": value for name, value in row.get("figures", {}).items()}
        told |= {f"losses/{name}": value for name, value in row.get("losses", {}).items()}
        self.events.add(int(row["steps"]), told)

    def close(self) -> None:
        self.events.close()


def line(row: Mapping[str, Any]) -> str:
    return "\t".join(spelled(row.get(name)) for name in COLUMNS)


def spelled(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {spelled(own)}" for name, own in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
