"""Small stories in the official layout, and short runs of a table on them."""

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
# Three steps a phase: what is tested is the table, not the learning.
SHORT = ["model.width=5", "train.batch=8", "train.steps=3", "phases.0.train.steps=3"]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks 1 and 6 as the official archive lays them out, but small."""
    root = tmp_path_factory.mktemp("stories")
    folder = root / "tasks_1-20_v1-2" / "en"
    folder.mkdir(parents=True)
    for task in TASKS:
        for number, split in enumerate(("train", "test")):
            made = generate_stories(task, 40, seed=number)
            text = "".join(format_story(story) for story in made)
            (folder / file_name_of(task, split)).write_text(text, encoding="utf-8")
    return root


def table_of(stories: Path, **options: Any) -> BabiTable:
    given = {"recipe": "memn2n", "data": str(stories), "tasks": TASKS, "seeds": 2, "sets": SHORT}
    return BabiTable(**{**given, **options})


def trained(table: BabiTable, folder: Path) -> int:
    """Rebuild, and say how many steps that took."""
    return sum(1 for _ in train_missing_runs(table, folder))


def by_hand(table: BabiTable, folder: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """Runs as if they had been trained: (recipe number, seed, train errors, test errors)."""
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
