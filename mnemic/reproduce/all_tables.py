"""All published tables of a size, one after the other: every network as its own paper did it."""

import tomllib
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mnemic.checkpoint.atomic_files import write_json
from mnemic.data.babi.dataset import GeneratedStories
from mnemic.recipe import ConfigError
from mnemic.reproduce.babi_table import PUBLISHED, RETOLD, BabiTable, save_result
from mnemic.reproduce.statistics import summary_of
from mnemic.train.initialize import check_phases
from mnemic.train.phases import phases
from mnemic.train.run import data_of

ALL = "all"  # the recipe's name that means every one
JOINT = "-joint"
SUMMARY = "summary.json"
FEW = 20  # stories that a network is tried on before it is trained


def every(table: BabiTable) -> list[BabiTable]:
    """The tables that papers have printed for this size, per task and joint, in their order.

    A network that is also trained on ``retold`` stories is there twice. With ``joint`` only the
    joint ones. All else is taken over: seeds, tasks, overrides, device.
    """
    printed: dict[str, dict[str, Any]] = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    found = [
        replace(table, recipe=name, joint=setting.endswith(JOINT))
        for recipe, settings in printed.items()
        for setting, own in settings.items()
        if setting in (table.size + JOINT, "" if table.joint else table.size)
        for name in ([recipe, recipe + RETOLD] if own.get("retold") else [recipe])
    ]
    if not found:
        raise ConfigError(f"no paper has a joint table of {table.size}; leave out --joint")
    return found


def check(tables: Sequence[BabiTable]) -> None:
    """Build every network once, small, so that a slip is noticed before the first is trained."""
    seen = set()
    for table in tables:
        for tasks in table.groups():
            recipe = table.recipe_of(tasks)
            if (own := (table.name(tasks), table.joint)) in seen:
                continue
            seen.add(own)
            known = {field.name for field in fields(GeneratedStories)} - {"alike", "retold"}
            said = {key: value for key, value in recipe["data"].items() if key in known}
            small = recipe | {"data": said | {"kind": "generated", "count": FEW}}
            check_phases(phases(recipe), recipe, data_of(small).sizes)


def place_of(table: BabiTable, folder: Path) -> Path:
    """Where one table of all goes: its runs and its ``table.json``."""
    return folder / f"{table.recipe}-{table.size}{JOINT if table.joint else ''}"


def save_summary(done: Sequence[BabiTable], folder: Path) -> dict[str, Any]:
    """Write every table's JSON, and beside them ``summary.json``: a line a network."""
    rows = [
        summary_of(save_result(table, place_of(table, folder)))
        | {"folder": place_of(table, folder).name}
        for table in done
    ]
    whole = {"table": "babi", "recipe": ALL, "size": done[0].size, "rows": rows}
    write_json(folder / SUMMARY, whole)
    return whole
