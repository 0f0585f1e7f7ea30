"""List and describe the trained networks shipped with the package.

Each folder ``mnemic/weights/NAME`` is a checkpoint with one more file, ``card.json``: the data it
was trained on, the command, the seed and the metrics. Nothing here imports torch, so that the help
of the command line can list them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mnemic.files import read_json
from mnemic.recipe.migrate import migrate_recipe

WEIGHTS = Path(__file__).parents[1] / "weights"
CARD = "card.json"
READERS = ("reader", "reader-small")  # that answer from a memory of documents; the first is the default
EMBEDDERS = ("reader-small",)  # that embed its passages; the first is that of a new memory
MAX_NETWORK_BYTES = 34_500_000  # per network
MAX_TOTAL_BYTES = 52_000_000  # of all shipped networks together


def list_networks() -> list[str]:
    """List the names of the shipped networks, such as ``entnet-babi``."""
    return sorted(path.parent.name for path in WEIGHTS.glob(f"[!.]*/{CARD}"))


def list_text_models() -> list[str]:
    """List the shipped networks that read or embed documents."""
    return list(dict.fromkeys((*READERS, *EMBEDDERS)))


def read_card(name: str) -> dict[str, Any]:
    """Read the card of a shipped network."""
    card = read_json(WEIGHTS / name / CARD)
    return card | migrate_recipe({"data": card["data"]})


def size_in_bytes(folder: Path) -> int:
    """The size of all files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def summarize_card(card: dict[str, Any]) -> str:
    """Summarize a card in one line.

    Such as ``entnet, task 1: 0.2 % error`` or ``reading: f1 80.1, exact 70.2``. A card without
    tasks is named by its kind of data instead.
    """
    if "figures" in card:
        metrics_text = ", ".join(f"{name} {value:.1f}" for name, value in card["figures"].items())
        return f"{card['data']['kind']}: {metrics_text}"
    task_text = card["data"]["kind"]
    if "tasks" in card["data"]:
        noun = "tasks" if len(card["per_task"]) > 1 else "task"
        task_text = f"{noun} {format_ranges([int(task) for task in card['per_task']])}"
    return f"{card['memory']}, {task_text}: {card['mean_error']:.1f} % error"


def format_ranges(numbers: Sequence[int]) -> str:
    """Format ascending numbers as ranges: ``1, 6-9, 12``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
