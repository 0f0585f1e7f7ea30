"""``mnemic table babi --recipe all``: rebuild every table, with a summary per network."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from mnemic.cli.render.console import format_duration, get_stdout, print_json, print_status

if TYPE_CHECKING:
    from mnemic.reproduce.babi_table import BabiTable

READ_CAPTION = (
    "% of test questions: the most-read sentence proves the answer; the answer changes without it; "
    "it changes without another one"
)


def rebuild_all_tables(
    settings: "BabiTable", folder: Path, train_table: Callable[["BabiTable", Path], None], as_json: bool
) -> None:
    """Rebuild every published table of a size; update the summary after each table.

    ``train_table`` trains the missing runs of one table and shows the progress.
    """
    from mnemic.reproduce.all_tables import SUMMARY, check_tables, list_tables, save_summary, table_folder_of

    tables = list_tables(settings)
    check_tables(tables)
    for number, table in enumerate(tables, start=1):
        table_folder = table_folder_of(table, folder)
        print_status(f"table {number} of {len(tables)}: {table_folder.name}")
        train_table(table, table_folder)
        summary = save_summary(tables[:number], folder)
    if as_json:
        print_json(summary)
        return
    get_stdout().print(build_summary_table(summary))
    get_stdout().print(build_evidence_table(summary))
    hardware = sorted({row["hardware"] for row in summary["rows"]})
    time = format_duration(60 * sum(row["minutes"] for row in summary["rows"]))
    get_stdout().print(f"{time} of training on {', '.join(hardware)}", style="dim", markup=False)
    get_stdout().print(f"kept in {folder / SUMMARY}", style="dim", markup=False, soft_wrap=True)


def format_network_name(row: dict[str, Any]) -> str:
    return f"{row['recipe']} joint" if row["setting"] == "joint" else row["recipe"]


def build_summary_table(summary: dict[str, Any]) -> Table:
    """Build a table of published and reproduced errors, with one row per network."""
    from mnemic.reproduce.statistics import FAILURE_THRESHOLD

    headers = ("network", "published", "best", "mean ± deviation", "seeds", "chosen by", "time")
    table = Table(*headers, header_style="bold", title=f"bAbI {summary['size']}")
    for row in summary["rows"]:
        published, best, color = row["published"], row["best"], "[default]"
        if published is not None:
            is_reached = round(best, 1) <= published and row["failed"] <= row["published_failed"]
            color = "[green]" if is_reached else "[red]"
        table.add_row(
            format_network_name(row),
            "-" if published is None else f"{published:.1f} / {row['published_failed']}",
            f"{color}{best:.1f} / {row['failed']}",
            f"{row['mean_error']:.1f}" + (f" ± {row['std']:.1f}" if row["seeds"] > 1 else ""),
            str(row["seeds"]),
            row["selection"],
            format_duration(60 * row["minutes"]),
        )
    justify_columns(table, left_columns=(0, 5))
    table.caption = f"mean error in % / tasks that failed, with more than {FAILURE_THRESHOLD:g} % error"
    return table


def build_evidence_table(summary: dict[str, Any]) -> Table:
    """Build a table of how often the best runs read and need supporting facts."""
    from mnemic.reproduce.statistics import format_evidence

    headers = ("network", "reads a proof", "needs it", "needs another")
    table = Table(*headers, header_style="bold", title="what the best runs read, tasks 1 / 2 / 3")
    for row in summary["rows"]:
        keys = ("supporting", "most_read", "other")
        table.add_row(format_network_name(row), *(format_evidence(row["evidence"], key) for key in keys))
    justify_columns(table, left_columns=(0,))
    table.caption = READ_CAPTION
    return table


def justify_columns(table: Table, left_columns: tuple[int, ...]) -> None:
    """Align the given columns to the left and all others to the right."""
    for index, column in enumerate(table.columns):
        column.justify = "left" if index in left_columns else "right"
