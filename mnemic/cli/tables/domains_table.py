"""``mnemic table domains``: compare readers on questions of many domains."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.domains_table import DomainsTable

DATA_HELP = "Files of questions, one per domain, or folders of them: .jsonl, .json, also .gz or .xz."
DEFAULT_FOLDER = Path("runs/table-domains")


def compare_domains(
    data: Annotated[list[str], opt.Option("--data DIR|FILE", DATA_HELP)],
    models: Annotated[list[str] | None, opt.Option("--model DIR", "A reader; repeat it to compare.", "reader")] = None,
    limit: Annotated[int, opt.Option("--limit N", "Questions per file, drawn by their ids.", "all", minimum=0)] = 0,
    device: opt.Device = "auto",
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the table.")] = DEFAULT_FOLDER,
) -> None:
    """Compare readers on questions of many domains, one row per file.

    Each question is read with its own text. F1 and exact match are of questions that have an
    answer. An interrupted table resumes when the command is repeated.

    Example: mnemic table domains --data qa --model reader --model runs/reader-12 --limit 500
    """
    from mnemic.reproduce.domains_table import DomainsTable, save_domains

    table = DomainsTable(data=data, models=models or ["reader"], limit=limit, device=opt.resolve_device(device))
    evaluate_with_progress(table, folder)
    result = save_domains(table, folder)
    print_json(result)
    print_domains(result)
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def evaluate_with_progress(table: "DomainsTable", folder: Path) -> None:
    """Evaluate the missing domains with a progress bar; Ctrl-C stops between two domains."""
    from mnemic.reproduce.domains_table import evaluate_missing_domains

    with (
        defer_interrupts() as should_stop,
        ProgressBars() as bars,
        closing(evaluate_missing_domains(table, folder)) as steps,
    ):
        for step in steps:
            bars.show("domains", step.number, step.total, f"{step.model}, {step.domain}")
            if should_stop():
                raise KeyboardInterrupt(f"stopped after {step.number} of {step.total} domains, which are saved")


def print_domains(result: dict[str, Any]) -> None:
    """Print one row per domain and reader."""
    rows = []
    for domain, by_model in result["domains"].items():
        for model, row in by_model.items():
            interval = "{:.1f} – {:.1f}".format(*row["f1_interval"]) if "f1_interval" in row else ""
            cells = [format(row[name], ".1f") if name in row else "" for name in ("f1", "exact", "f1_or_none", "auroc")]
            count = f"{row['answerable']} + {row['questions'] - row['answerable']}"
            rows.append([domain, count, model, cells[0], interval, *cells[1:]])
    headers = ["domain", ">answerable + not", "reader", ">F1", ">95 %", ">exact", ">F1 or none", ">AUROC"]
    caption = '"F1 or none" counts "no answer" as right where there is none; AUROC is that of "no answer"'
    print_table(headers, rows, title="questions, each with its own text", caption=caption)
