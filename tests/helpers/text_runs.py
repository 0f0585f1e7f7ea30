"""Train one small network per text task, for all tests."""

from functools import cache
from pathlib import Path
from typing import Any

import text_files
from shared_folders import copy_shared

from mnemic.predict.model import Model, load
from mnemic.recipe import Recipe, load_recipe
from mnemic.train.run import fit

TINY = [
    "model.width=32",
    "model.encode.stack.depth=1",
    "train.rate=0.003",
    "train.buckets=2",
    'data.tokenizer={kind="wordpiece", vocab=400}',
    "data.length=24",
    "data.overlap=6",
]
EPOCHS = {"classes": 10, "pairs": 12, "numbers": 8, "spans": 4, "tags": 8}


def tiny(kind: str, folder: Path, *sets: str) -> Recipe:
    """Load a small recipe for the files in ``folder``."""
    return load_recipe(f"bert-{kind}", [*TINY, f"train.epochs={EPOCHS[kind]}", f"data.folder={folder}", *sets])


def files(kind: str, folder: Path) -> Path:
    """Write generated files of a kind."""
    more: dict[str, Any] = {"numbers": {"numbers": True}, "spans": {"none": True}}.get(kind, {})
    if kind == "pairs":
        more["count"] = 800
    if kind == "classes":
        more |= {"longest": 30, "count": 300}  # some are longer than a window
    return getattr(text_files, "pairs" if kind == "numbers" else kind)(folder, **more)


def run_of(kind: str) -> Path:
    """Train a network; its run is in the folder of its data."""

    def train(folder: Path) -> None:
        for _ in fit(tiny(kind, files(kind, folder)), folder / "run", device="cpu"):
            pass

    return copy_shared(f"text-{kind}", train) / "run"


@cache
def trained(kind: str) -> Model:
    return load(run_of(kind))
