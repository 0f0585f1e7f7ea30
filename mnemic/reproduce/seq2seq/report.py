"""Save the table of noises: scores of generated texts, means over seeds."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any

from mnemic.checkpoint.atomic_files import write_json
from mnemic.evaluate.text_scores import TEXT_SCORES, score_texts
from mnemic.recipe import ConfigError, join_words
from mnemic.reproduce.rows import describe_versions
from mnemic.reproduce.seq2seq.rows import COLUMNS, PRETRAINING, ROWS
from mnemic.reproduce.seq2seq.table import NoiseCell, Seq2SeqTable, list_cells, load_cells


def save_table(table: Seq2SeqTable, folder: Path) -> dict[str, Any]:
    """Score the generated texts of all finished cells, and save ``table.json``."""
    cells = load_cells(folder)
    scored: dict[str, dict[str, Any]] = {}
    notes: set[str] = set()
    for name, line in cells.items():
        values = dict(line.get("metrics", {}))
        if "predictions" in line:
            scores, missing = score_available(COLUMNS[line["column"]].scores, line)
            values |= scores
            notes |= missing
        facts = {key: value for key, value in line.items() if key not in ("predictions", "references", "metrics")}
        scored[name] = {**facts, "metrics": values} if "failed" not in line else facts
    rows = [
        {
            "row": row,
            "title": ROWS[row].title,
            "noises": ROWS[row].noises,
            "columns": {column: summarize(table, row, column, scored) for column in table.selected_columns},
            "pretraining": summarize(table, row, PRETRAINING, scored) if ROWS[row].noises else None,
        }
        for row in table.selected_rows
    ]
    unfinished = [cell.name for cell in list_cells(table) if cell.name not in scored]
    result = {
        "table": "seq2seq",
        "command": table.command,
        "rows": rows,
        "columns": {name: list(COLUMNS[name].metrics) for name in table.selected_columns},
        "seeds": list(range(table.seeds)),
        "overrides": list(table.sets),
        "unfinished": len(unfinished),
        "notes": sorted(notes),
        "hardware": join_words(sorted({line["hardware"] for line in scored.values() if "hardware" in line})),
        "versions": describe_versions(),
        "seconds": round(sum(line.get("seconds", 0.0) for line in scored.values()), 1),
    }
    write_json(folder / "table.json", result)
    return result


def score_available(names: tuple[str, ...], line: dict[str, Any]) -> tuple[dict[str, float], set[str]]:
    """Compute the scores of a cell, and say which are missing and why."""
    values: dict[str, float] = {}
    missing = set()
    for name in names:
        if name not in TEXT_SCORES:
            missing.add(f"no score {name!r} in this version")
            continue
        try:
            values |= score_texts([name], line["predictions"], line["references"])
        except ConfigError as error:
            missing.add(str(error))
    return values, missing


def summarize(table: Seq2SeqTable, row: str, column: str, cells: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Summarize the finished cells of a row and column over seeds."""
    names = [NoiseCell(row, column, seed).name for seed in range(table.seeds)]
    lines = [cells[name] for name in names if name in cells]
    finished = [line for line in lines if "metrics" in line]
    keys = finished[0]["metrics"] if finished else {}
    return {
        "metrics": {
            key: {
                "mean": mean(line["metrics"][key] for line in finished),
                "std": stdev(line["metrics"][key] for line in finished) if len(finished) > 1 else 0.0,
            }
            for key in keys
        },
        "runs": lines,
    }
