"""Reproduce all published bAbI tables of one size, each network as in its paper."""

import tomllib
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mnemic.checkpoint.atomic_files import write_json
from mnemic.data.babi.dataset import GeneratedStories
from mnemic.models import check_parts_fit
from mnemic.recipe import ConfigError, Recipe, override
from mnemic.reproduce.babi_table import AUGMENTED_SUFFIX, PUBLISHED, BabiTable, save_result
from mnemic.reproduce.statistics import summarize_table
from mnemic.train.initialize import build_network, check_phases
from mnemic.train.phases import read_phases
from mnemic.train.run import load_data

ALL = "all"  # recipe name that stands for all recipes
JOINT_SUFFIX = "-joint"
SUMMARY = "summary.json"
NUM_CHECK_STORIES = 20  # for the check before training


def list_tables(table: BabiTable) -> list[BabiTable]:
    """List the tables that papers published for the size of ``table``, per task and joint.

    A network that is also trained on augmented (``retold``) stories is listed twice. If ``table``
    is joint, only joint tables are listed. All other settings are those of ``table``: seeds, tasks,
    overrides, device.
    """
    published: dict[str, dict[str, Any]] = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    tables = [
        replace(table, recipe=name, joint=setting.endswith(JOINT_SUFFIX))
        for recipe, settings in published.items()
        for setting, entry in settings.items()
        if setting in (table.size + JOINT_SUFFIX, "" if table.joint else table.size)
        for name in ([recipe, recipe + AUGMENTED_SUFFIX] if entry.get("retold") else [recipe])
    ]
    if not tables:
        raise ConfigError(f"no paper has a joint table of {table.size}; leave out --joint")
    return tables


def check_tables(tables: Sequence[BabiTable]) -> None:
    """Build each network on a few generated stories, to find errors before training starts."""
    seen: list[Recipe] = []
    for table in tables:
        for recipe in table.build_recipes():
            if (settings := override(recipe, "data.tasks", [])) in seen:
                continue
            seen.append(settings)
            known = {field.name for field in fields(GeneratedStories)} - {"interchangeable", "augment"}
            data = {option: value for option, value in recipe["data"].items() if option in known}
            small_recipe = recipe | {"data": data | {"kind": "generated-babi", "count": NUM_CHECK_STORIES}}
            sizes = load_data(small_recipe).sizes
            check_phases(read_phases(recipe), recipe, sizes)
            check_parts_fit(build_network(recipe["model"], sizes, 0), sizes)


def table_folder_of(table: BabiTable, folder: Path) -> Path:
    """Return the folder for the runs and the ``table.json`` of one of all tables."""
    return folder / f"{table.recipe}-{table.size}{JOINT_SUFFIX if table.joint else ''}"


def save_summary(tables: Sequence[BabiTable], folder: Path) -> dict[str, Any]:
    """Save the JSON of each table, and ``summary.json`` with one row per network."""
    paths = [table_folder_of(table, folder) for table in tables]
    rows = [summarize_table(save_result(table, path)) | {"folder": path.name} for table, path in zip(tables, paths)]
    summary = {"table": "babi", "recipe": ALL, "size": tables[0].size, "rows": rows}
    write_json(folder / SUMMARY, summary)
    return summary
