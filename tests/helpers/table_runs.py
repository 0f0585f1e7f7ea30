"""Write small stories in the official layout, and train short runs of a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mnemic.data.babi.folder import file_name_of
from mnemic.data.babi.format import format_story
from mnemic.data.babi.generate import generate_stories
from mnemic.reproduce import babi_table as tables
from mnemic.reproduce.babi_table import BabiTable, train_missing_runs

TASKS = [1, 6]
# Three steps per phase: the tests are about the table, not about learning.
SHORT = ["model.width=5", "train.batch=8", "train.steps=3", "phases.0.train.steps=3"]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write small files of tasks 1 and 6 in the layout of the official archive."""
    root = tmp_path_factory.mktemp("stories")
    folder = root / "tasks_1-20_v1-2" / "en"
    folder.mkdir(parents=True)
    for task in TASKS:
        for number, split in enumerate(("train", "test")):
            generated = generate_stories(task, 40, seed=number)
            text = "".join(format_story(story) for story in generated)
            (folder / file_name_of(task, split)).write_text(text, encoding="utf-8")
    return root


def table_of(stories: Path, **options: Any) -> BabiTable:
    defaults = {"recipe": "memn2n", "data": str(stories), "tasks": TASKS, "seeds": 2, "sets": SHORT}
    return BabiTable(**{**defaults, **options})


def trained(table: BabiTable, folder: Path) -> int:
    """Train the missing runs; return the number of steps."""
    return sum(1 for _ in train_missing_runs(table, folder))


def write_runs(table: BabiTable, folder: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write runs as if trained: (recipe number, seed, train errors, test errors)."""
    recipes = table.build_recipes()
    tables.append_runs(
        folder,
        [
            {
                "recipe": table.hash_recipes()[number],
                "tasks": recipes[number]["data"]["tasks"],
                "seed": seed,
                "generated": [],
                "seconds": 1.5,
                "train": train,
                "validation": {},
                "test": test,
            }
            for number, seed, train, test in rows
        ],
    )
