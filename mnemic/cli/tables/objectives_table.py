"""``mnemic table objectives``: compare objectives of pre-training on one encoder."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.format import format_duration
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.objectives.table import ObjectivesTable

DEFAULT_FOLDER = Path("runs/table-objectives")
DATA_HELP = "Folder of sequences of the format sentences, packed or not, or of texts."
GLUE_HELP = "Folder of GLUE: SST-2, MRPC, RTE, STS-B and CoLA, each with train.tsv and dev.tsv."
SQUAD_HELP = "Folder of SQuAD: train….json and dev….json, also .gz."
SCALE_HELP = "small: one CPU core, no SQuAD; full: a GPU."
ROWS_HELP = "Objectives or groups, separated by commas, such as mlm,electra; groups: batches, replaced."
TASKS_HELP = "Of sst2, mrpc, rte, stsb, cola and squad, separated by commas."
BUDGETS_HELP = "Of tokens and seconds, separated by commas."
SETS_HELP = "Change a key of the scale, such as seconds=60 or tasks.sst2.seeds=1; may be repeated."


def compare_objectives(
    data: Annotated[str, opt.Option("--data DIR", DATA_HELP)],
    glue: Annotated[str, opt.Option("--glue DIR", GLUE_HELP, "none")] = "",
    squad: Annotated[str, opt.Option("--squad DIR", SQUAD_HELP, "none")] = "",
    scale: Annotated[Literal["small", "full"], opt.Option("--scale", SCALE_HELP)] = "small",
    rows: Annotated[str, opt.Option("--rows", ROWS_HELP, "all")] = "",
    tasks: Annotated[str, opt.Option("--tasks", TASKS_HELP, "all whose files are there")] = "",
    budgets: Annotated[str, opt.Option("--budgets", BUDGETS_HELP, "both")] = "",
    seeds: Annotated[
        int, opt.Option("--seeds", "Fine-tunings per task, from seed 0 on.", "the scale's", minimum=0)
    ] = 0,
    sets: Annotated[list[str] | None, opt.Option("--set KEY=VALUE", SETS_HELP)] = None,
    device: opt.Device = "auto",
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the networks and the table.")] = DEFAULT_FOLDER,
) -> None:
    """Pre-train one encoder by every objective, at equal tokens and at equal seconds.

    Each network is fine-tuned on GLUE and SQuAD. All have the same size, texts and vocabulary;
    the two budgets are two moments of one run. An interrupted table resumes when the command is
    repeated; the same command in a second process takes other networks and tasks.

    Example: mnemic table objectives --data SEQUENCES --glue GLUE --squad squad
    """
    from mnemic.reproduce.objectives.report import save_table
    from mnemic.reproduce.objectives.table import ObjectivesTable

    names = ([name for name in text.replace(" ", "").split(",") if name] for text in (rows, tasks, budgets))
    row_names, task_names, budget_names = names
    table = ObjectivesTable(
        data=data, glue=glue, squad=squad, scale_name=scale, rows=row_names, tasks=task_names, budgets=budget_names,
        seeds=seeds, sets=sets or [], device=opt.resolve_device(device),
    )  # fmt: skip
    fill_with_progress(table, folder)
    result = save_table(table, folder)
    print_json(result)
    print_objectives(result)
    print_text(f"{format_duration(result['seconds'])} of training on {result['hardware']}")
    if result["unfinished"]:
        print_text(
            f"{result['unfinished']} cells are not measured; repeat the command when no other process fills them"
        )
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def fill_with_progress(table: "ObjectivesTable", folder: Path) -> None:
    """Train the missing networks and tasks with a progress bar; Ctrl-C saves between two steps."""
    from mnemic.reproduce.objectives.table import fill_table

    with defer_interrupts() as should_stop, ProgressBars() as bars, closing(fill_table(table, folder)) as steps:
        for step in steps:
            bars.show("cells", step.number + step.fraction, step.total, f"{step.cell}, {step.detail}")
            if step.message:
                bars.print_line(step.message)
            if should_stop():
                raise KeyboardInterrupt(f"stopped in cell {step.number + 1} of {step.total}, and saved")


def print_objectives(result: dict[str, Any]) -> None:
    """Print a table per budget, what pairs tell, and why cells are empty."""
    from mnemic.reproduce.objectives.format import (
        TITLES,
        format_batches,
        format_budget,
        format_pairs,
        format_reasons,
        list_budgets,
    )

    settings = result["settings"]
    caption = f"width {settings['width']}, {settings['depth']} layers, {settings['heads']} heads; – has a reason below"
    for budget in list_budgets(result):
        print_table(*format_budget(result, budget), title=TITLES[budget], caption=caption)
    for budget in list_budgets(result)[:1]:
        for title, (headers, lines) in (
            ("pairs", format_pairs(result, budget)),
            ("batches", format_batches(result, budget)),
        ):
            if lines:
                print_table(headers, lines, title=f"{title}, {TITLES[budget]}")
    for line in format_reasons(result):
        print_text(f"– {line}")
