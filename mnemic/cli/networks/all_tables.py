"""``mnemic table babi --recipe all``: one table after the other, and a line a network."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mnemic.cli.render.console import duration, out, print_json, say

if TYPE_CHECKING:
    from mnemic.reproduce.babi_table import BabiTable

READ = (
    "% of test questions: the most-read sentence proves the answer; the answer changes without it; "
    "it changes without another one"
)


def all_tables(
    asked: "BabiTable", folder: Path, follow: Callable[["BabiTable", Path], None], as_json: bool
) -> None:
    """Rebuild every published table of a size; the summary is written anew after each.

    ``follow`` trains what is missing of one table and shows how far it is.
    """
    from mnemic.reproduce.all_tables import SUMMARY, check, every, place_of, save_summary

    tables = every(asked)
    check(tables)
    for number, table in enumerate(tables, start=1):
        place = place_of(table, folder)
        say(f"table {number} of {len(tables)}: {place.name}")
        follow(table, place)
        whole = save_summary(tables[:number], folder)
    if as_json:
        print_json(whole)
        return
    out().print(summary_table(whole))
    out().print(reads_table(whole))
    hardware = sorted({row["hardware"] for row in whole["rows"]})
    took = duration(60 * sum(row["minutes"] for row in whole["rows"]))
    out().print(f"{took} of training on {', '.join(hardware)}", style="dim", markup=False)
    out().print(f"kept in {folder / SUMMARY}", style="dim", markup=False, soft_wrap=True)


def name_of(row: dict[str, Any]) -> str:
    return f"{row['recipe']} joint" if row["setting"] == "joint" else row["recipe"]


def summary_table(whole: dict[str, Any]) -> Table:
    """A line a network: published beside ours."""
    from mnemic.reproduce.statistics import FAILED

    heads = ("network", "published", "best", "mean ± deviation", "seeds", "chosen by", "time")
    table = Table(*heads, header_style="bold", title=f"bAbI {whole['size']}")
    for row in whole["rows"]:
        goal, best, colour = row["published"], row["best"], "[default]"
        if goal is not None:
            reached = round(best, 1) <= goal and row["failed"] <= row["published_failed"]
            colour = "[green]" if reached else "[red]"
        table.add_row(
            name_of(row),
            "-" if goal is None else f"{goal:.1f} / {row['published_failed']}",
            f"{colour}{best:.1f} / {row['failed']}",
            f"{row['mean_error']:.1f}" + (f" ± {row['std']:.1f}" if row["seeds"] > 1 else ""),
            str(row["seeds"]),
            row["selection"],
            duration(60 * row["minutes"]),
        )
    justify(table, left=(0, 5))
    table.caption = f"mean error in % / tasks that failed, with more than {FAILED:g} % error"
    return table


def reads_table(whole: dict[str, Any]) -> Table:
    """A line a network: whether its best runs read what proves the answer, and need it."""
    from mnemic.reproduce.statistics import evidence_line

    heads = ("network", "reads a proof", "needs it", "needs another")
    table = Table(*heads, header_style="bold", title="what the best runs read, tasks 1 / 2 / 3")
    for row in whole["rows"]:
        keys = ("supporting", "most_read", "other")
        table.add_row(name_of(row), *(evidence_line(row["evidence"], key) for key in keys))
    justify(table, left=(0,))
    table.caption = READ
    return table


def justify(table: Table, left: tuple[int, ...]) -> None:
    for place, column in enumerate(table.columns):
        column.justify = "left" if place in left else "right"
