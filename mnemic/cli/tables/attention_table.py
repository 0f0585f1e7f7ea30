"""``mnemic table attention``: compare kinds of attention and stacks at the same size."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.format import format_duration
from mnemic.cli.render.plot_story import check_plot_path
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.attention.table import AttentionTable

DEFAULT_FOLDER = Path("runs/table-attention")
DATA_HELP = "Folder of long documents: train… and test… or valid…, .jsonl or .txt, also .gz or .xz."
CLASSES_HELP = "Folder of reviews with their class, such as IMDB: train… and test…, .jsonl, .csv or .tsv."
SENTENCES_HELP = "Folder of SST-5: stsa.fine.train, stsa.fine.dev and stsa.fine.test."
SCALE_HELP = "small: two cores, about an hour with two processes; full: a GPU."
ROWS_HELP = "Kinds, separated by commas, such as full,relative."
COLUMNS_HELP = "Of perplexity, masked-words, imdb, sst5, copies-256, copies-1024 and cost, separated by commas."
SETS_HELP = "Change a key of the scale, such as columns.imdb.train.epochs=2; may be repeated."
PLOT_HELP = "Plot cost against length into a .png, .svg or .pdf file."


def compare_attentions(
    data: Annotated[str, opt.Option("--data DIR", DATA_HELP, "none")] = "",
    classes: Annotated[str, opt.Option("--classes DIR", CLASSES_HELP, "none")] = "",
    sentences: Annotated[str, opt.Option("--sentences DIR", SENTENCES_HELP, "none")] = "",
    scale: Annotated[Literal["small", "full"], opt.Option("--scale", SCALE_HELP)] = "small",
    rows: Annotated[str, opt.Option("--rows", ROWS_HELP, "all")] = "",
    columns: Annotated[str, opt.Option("--columns", COLUMNS_HELP, "all")] = "",
    seeds: Annotated[int, opt.Option("--seeds", "Runs per cell, from seed 0 on.", "the scale's", minimum=0)] = 0,
    sets: Annotated[list[str] | None, opt.Option("--set KEY=VALUE", SETS_HELP)] = None,
    device: opt.Device = "auto",
    plot: Annotated[Path | None, opt.Option("--plot FILE", PLOT_HELP)] = None,
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the runs and the table.")] = DEFAULT_FOLDER,
) -> None:
    """Compare every kind of attention and stack: quality, time and memory.

    All have the same width, depth, texts and seeds. Without the folder of a column's texts it is
    not measured, and the table says so. An interrupted table resumes when the command is repeated;
    the same command in a second process takes other cells.

    Example: mnemic table attention --data enwiki --classes imdb --sentences sentences
    """
    from mnemic.reproduce.attention.report import save_table
    from mnemic.reproduce.attention.table import AttentionTable

    check_plot_path(plot)
    row_names, column_names = ([name for name in text.replace(" ", "").split(",") if name] for text in (rows, columns))
    table = AttentionTable(
        data=data, classes=classes, sentences=sentences, scale_name=scale, rows=row_names, columns=column_names,
        seeds=seeds, sets=sets or [], device=opt.resolve_device(device),
    )  # fmt: skip
    fill_with_progress(table, folder)
    result = save_table(table, folder)
    print_json(result)
    print_attentions(result)
    print_text(f"{format_duration(result['seconds'])} of training on {result['hardware']}")
    if result["unfinished"]:
        print_text(
            f"{result['unfinished']} cells are not finished; repeat the command when no other process fills them"
        )
    if plot is not None:
        from mnemic.cli.render.plot_length_cost import plot_length_cost

        plot_length_cost(result, plot)
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def fill_with_progress(table: "AttentionTable", folder: Path) -> None:
    """Train and measure the missing cells with a progress bar; Ctrl-C saves between two steps."""
    from mnemic.reproduce.attention.table import fill_table

    with defer_interrupts() as should_stop, ProgressBars() as bars, closing(fill_table(table, folder)) as steps:
        last_cell = ""
        for step in steps:
            bars.show("cells", step.number + step.fraction, step.total, f"{step.cell}, {step.detail}")
            if step.message:
                bars.print_line(step.message)
            elif step.cell != last_cell:
                bars.print_line(f"cell {step.number + 1} of {step.total}: {step.cell}")
            last_cell = step.cell
            if should_stop():
                raise KeyboardInterrupt(f"stopped in cell {step.number + 1} of {step.total}, and saved")


def print_attentions(result: dict[str, Any]) -> None:
    """Print quality, costs, what each row cannot do, and why cells are empty."""
    from mnemic.reproduce.attention.format import format_costs, format_limits, format_quality, format_reasons

    settings = result["settings"]
    headers, lines = format_quality(result)
    caption = f"width {settings['width']}, {settings['depth']} layers, {settings['heads']} heads; – has a reason below"
    if len(headers) > 1:
        print_table(headers, lines, title=f"attention, scale {result['scale']}", caption=caption)
    for device in result["rows"][0]["cost"]:
        headers, lines = format_costs(result, device)
        cost = settings["cost"]
        caption = (
            f"training pass of {cost['depth']} layers of width {cost['width']}, one text; medians of turns; "
            f"MiB: {'peak' if device != 'cpu' else 'kept for the backward pass'}"
        )
        print_table(headers, lines, title=f"cost by tokens, {device}", caption=caption)
    print_table(*format_limits(result), title="what each can do, and cannot")
    for line in format_reasons(result):
        print_text(f"– {line}")
