"""The page of all systems names every recipe, and no other."""

import re
from pathlib import Path

from mnemic.recipe import recipe_names

PAGE = (Path(__file__).parents[1] / "docs" / "explain" / "systems.md").read_text(encoding="utf-8")
UNMADE = "not built"


def read_rows() -> list[list[str]]:
    """Read the rows of all tables: system, recipe or place, our figure, the published one."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row[0] != "system" and not set("".join(row)) <= set("-| ")]


def list_named_recipes() -> list[str]:
    """List the names in backticks of the second column, but commands, options and links."""
    return [
        name
        for row in read_rows()
        for name in re.findall(r"`([^`]+)`", re.sub(r"\[[^]]*\]\([^)]*\)", "", row[1]))
        if re.fullmatch(r"[a-z0-9-]+", name)
    ]


def test_every_recipe_is_on_the_page_once_and_every_name_is_one() -> None:
    assert sorted(list_named_recipes()) == recipe_names()


def test_every_system_has_a_figure_or_says_why_not() -> None:
    for row in read_rows():
        assert len(row) == 4, row
        assert all(row), row
        assert (row[1] == "–") == (row[2] == UNMADE), row
