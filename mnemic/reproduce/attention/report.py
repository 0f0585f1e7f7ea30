"""Save a table of attention as JSON: means, deviations, and the reasons of empty cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from mnemic.checkpoint.atomic_files import write_json
from mnemic.files import read_json
from mnemic.recipe import join_words
from mnemic.reproduce.attention.columns import COLUMNS, COST, LENGTH, find_reason
from mnemic.reproduce.attention.cost import fit_slope
from mnemic.reproduce.attention.rows import BASELINE, AttentionRow
from mnemic.reproduce.attention.sources import SOURCE_FILE
from mnemic.reproduce.attention.table import CELLS_FILE, DATA_FOLDER, AttentionTable, hash_cost, load_cells, load_cost
from mnemic.reproduce.rows import describe_versions, read_rows

UNFINISHED = "not finished: repeat the command"


def save_table(table: AttentionTable, folder: Path) -> dict[str, Any]:
    """Save all finished cells, and the reasons of the others, as ``table.json``."""
    finished = load_cells(folder)
    columns = {name: describe_column(name, table) for name in table.selected_columns}
    rows = [describe_row(row, table, folder, finished) for row in table.selected_rows.values()]
    baseline = next((row for row in rows if row["name"] == BASELINE), None)
    if baseline is not None:
        for row in rows:
            add_differences(row, baseline)
    all_runs = [run for row in rows for cell in row["cells"].values() for run in cell.get("runs", ())]
    hardware = [line["hardware"] for line in read_rows(folder / CELLS_FILE) if "hardware" in line]
    sources = (folder / DATA_FOLDER).glob(f"*/{SOURCE_FILE}")
    result = {
        "table": "attention",
        "command": table.command,
        "scale": table.scale_name,
        "settings": table.scale.describe(),
        "overrides": list(table.sets),
        "columns": columns,
        "rows": rows,
        "unfinished": sum(cell.get("reason") == UNFINISHED for row in rows for cell in row["cells"].values()),
        "data": {path.parent.name: read_json(path) for path in sorted(sources)},
        "hardware": join_words(sorted(set(hardware))),
        "versions": describe_versions(),
        "seconds": round(sum(run["seconds"] for run in all_runs), 1),
    }
    write_json(folder / "table.json", result)
    return result


def describe_column(name: str, table: AttentionTable) -> dict[str, Any]:
    """Describe a column: title, unit, recipe, seeds, and why it is not measured."""
    column, settings = COLUMNS[name], table.scale.column_settings(name)
    reason = table.find_reason_of_column(name)
    return {
        "title": column.title.replace(LENGTH, f"{settings.max_tokens:,}"),
        "unit": column.unit,
        "decimals": column.decimals,
        "recipe": column.recipe,
        "seeds": list(table.seeds_of(name)),
        **({"reason": f"not measured: {reason}"} if reason else {}),
    }


def describe_row(
    row: AttentionRow, table: AttentionTable, folder: Path, finished: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Describe a row: its parts, what it can and cannot do, its cells and costs."""
    cells = {name: describe_cell(row, name, table, finished) for name in table.selected_columns}
    costs = {}
    for device in table.cost_devices if table.measures_cost else ():
        label = f"{COST}-{device.partition(':')[0]}"
        measured = load_cost(folder, label, hash_cost(table.scale)).get(row.name, {})
        costs[device.partition(":")[0]] = describe_cost(row, [measured[tokens] for tokens in sorted(measured)])
    parts: dict[str, Any] = {"attention": row.attention, "stack": row.stack, "positions": row.positions}
    parts = {name: dict(spec) if row.has_attention else {} for name, spec in parts.items()}
    abilities = {"can": row.list_abilities(), "cannot": row.cannot}
    return {"name": row.name, "title": row.title, **parts, **abilities, "cells": cells, COST: costs}


def describe_cell(
    row: AttentionRow, name: str, table: AttentionTable, finished: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Summarize a row in a column over its seeds, or say why it is empty."""
    if reason := table.find_reason_of_column(name):
        return {"reason": f"not measured: {reason}"}
    if reason := find_reason(row, name):
        return {"reason": reason}
    lines = [finished.get(f"{row.name}-{name}-{seed}", {}) for seed in table.seeds_of(name)]
    if failures := [line["failed"] for line in lines if "failed" in line]:
        return {"reason": f"failed: {failures[0]}"}
    if not all("value" in line for line in lines):
        return {"reason": UNFINISHED}
    values = [line["value"] for line in lines]
    runs = [
        {key: value for key, value in line.items() if key not in ("row", "column", "fingerprint")} for line in lines
    ]
    return {"mean": mean(values), "std": stdev(values) if len(values) > 1 else 0.0, "runs": runs}


def describe_cost(row: AttentionRow, cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarize the costs of a row by length, with the fitted powers of the length."""
    if reason := find_reason(row, COST):
        return {"reason": reason}
    if not cells:
        return {"reason": UNFINISHED}
    slopes = {f"{key}_slope": fit_slope(cells, key) for key in ("seconds", "saved_mib", "peak_mib")}
    return {"lengths": list(cells), **{key: slope for key, slope in slopes.items() if slope is not None}}


def add_differences(row: dict[str, Any], baseline: Mapping[str, Any]) -> None:
    """Add to each cell of a row its difference from the baseline, seed by seed."""
    for name, cell in row["cells"].items():
        if "mean" in cell and "mean" in baseline["cells"][name]:
            pairs = zip(cell["runs"], baseline["cells"][name]["runs"])
            differences = [run["value"] - peer["value"] for run, peer in pairs]
            spread = stdev(differences) if len(differences) > 1 else 0.0
            cell["difference"] = {"mean": mean(differences), "std": spread}
