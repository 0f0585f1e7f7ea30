"""The trained networks that come with the package: ``mnemic/weights/NAME``, a checkpoint each.

Beside a checkpoint's own files a folder has ``card.json``: what the network was trained on, by
which command and seed, and how it does. Nothing here needs torch, so that help can list them.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WEIGHTS = Path(__file__).parents[1] / "weights"
CARD = "card.json"
LARGEST = 24_000_000  # bytes of one of them
MOST = 28_000_000  # bytes of all of them together


def names() -> list[str]:
    """What is there, such as ``entnet-babi``."""
    return sorted(path.parent.name for path in WEIGHTS.glob(f"[!.]*/{CARD}"))


def card(name: str) -> dict[str, Any]:
    """What a shipped network says of itself."""
    return json.loads((WEIGHTS / name / CARD).read_text(encoding="utf-8"))


def size_of(folder: Path) -> int:
    """How many bytes a folder's files have."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def brief(own: dict[str, Any]) -> str:
    """A card in a line: ``entnet, task 1: 0.2 % error``, or ``reading: f1 80.1, exact 70.2``.

    Where there are no tasks the kind of data stands in their place.
    """
    if "figures" in own:
        told = ", ".join(f"{name} {figure:.1f}" for name, figure in own["figures"].items())
        return f"{own['data']['kind']}: {told}"
    learnt = own["data"]["kind"]
    if "tasks" in own["data"]:
        many = "tasks" if len(own["per_task"]) > 1 else "task"
        learnt = f"{many} {stretches([int(task) for task in own['per_task']])}"
    return f"{own['memory']}, {learnt}: {own['mean_error']:.1f} % error"


def stretches(numbers: Sequence[int]) -> str:
    """Rising numbers, those in a row as their ends: 1, 6-9, 12."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
