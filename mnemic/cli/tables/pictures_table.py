"""``mnemic table pictures``: compare networks that look at pictures."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_table, print_text
from mnemic.cli.render.format import format_duration, format_metric
from mnemic.cli.render.plot_story import check_plot_path
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.pictures.table import PicturesTable

DEFAULT_FOLDER = Path("runs/table-pictures")
ROW_HELP = "A row, such as soft or mlbl-b; repeat it."
SETS_HELP = (
    "Change a key of all recipes, or of those with the data, such as data.count=1000 of scenes; may be repeated."
)
PLOT_HELP = "Plot the gaze, word by word, on a test scene: .png, .svg or .pdf."


def compare_pictures(
    rows: Annotated[list[str] | None, opt.Option("--row ROW", ROW_HELP, "all")] = None,
    seeds: Annotated[int, opt.Option("--seeds N", "Runs per row.")] = 1,
    sets: Annotated[list[str] | None, opt.Option("--set KEY=VALUE", SETS_HELP)] = None,
    device: opt.Device = "cpu",
    plot: Annotated[Path | None, opt.Option("--plot FILE", PLOT_HELP)] = None,
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the runs and the table.")] = DEFAULT_FOLDER,
) -> None:
    """Compare networks that describe, classify and align pictures, or do several tasks with them.

    Captions of generated scenes: soft and hard attention, log-bilinear models with and without the
    picture, a decoder that does not see it, and four encoders. Digits: five encoders that classify
    them, (extra pictures). Alignment finds words in scenes; the UniT rows do four tasks,
    with one decoder or one per task. An interrupted table resumes when the command is repeated.

    Example: mnemic table pictures --plot gaze.png
    """
    from mnemic.reproduce.pictures.table import PicturesTable, save_pictures_table

    check_plot_path(plot)
    table = PicturesTable(rows=rows or (), seeds=seeds, sets=sets or (), device=opt.resolve_device(device))
    fill_with_progress(table, folder)
    result = save_pictures_table(table, folder)
    print_json(result)
    print_pictures(result)
    if plot is not None:
        plot_rows(table, folder, plot)
    print_text(f"kept in {folder / 'table.json'}", style="dim")


def fill_with_progress(table: "PicturesTable", folder: Path) -> None:
    """Train and measure the missing rows with a progress bar; Ctrl-C saves between two steps."""
    from mnemic.reproduce.pictures.table import fill_pictures_table

    with (
        defer_interrupts() as should_stop,
        ProgressBars() as bars,
        closing(fill_pictures_table(table, folder)) as steps,
    ):
        for step in steps:
            bars.show("rows", step.number + step.fraction, step.total, f"{step.name}, seed {step.seed}")
            if step.message:
                bars.print_line(step.message)
            if should_stop():
                raise KeyboardInterrupt(f"stopped in row {step.number + 1} of {step.total}, and saved")


def print_pictures(result: dict[str, Any]) -> None:
    """Print tables of rows that share metrics, a column per metric."""
    seeds = len(result["seeds"])
    caption = f"{result['rows'][0]['hardware']}; " + ("seed 0" if seeds == 1 else f"means of {seeds} seeds")
    for rows in group_rows(result["rows"]):
        columns = list(dict.fromkeys(name for row in rows for name in row["metrics"]))
        lines = []
        for row in rows:
            cells = [format_metric(name, row["metrics"][name]) if name in row["metrics"] else "–" for name in columns]
            lines.append([row["row"], *cells, format_duration(row["seconds"])])
        headers = ["", *(f">{name}" if name == "perplexity" else f">{name} %" for name in columns), ">time"]
        print_table(headers, lines, title="pictures", caption=caption)


def group_rows(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group rows that share a metric, in their order."""
    groups: list[list[dict[str, Any]]] = []
    for row in rows:
        names = set(row["metrics"])
        group = next((group for group in groups if names & {name for item in group for name in item["metrics"]}), None)
        if group is None:
            groups.append([row])
        else:
            group.append(row)
    return groups


def plot_rows(table: "PicturesTable", folder: Path, path: Path) -> None:
    """Plot the gaze of rows that read regions, on the scene with most words."""
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.cli.render.plot_gaze import GazePlot, plot_gaze
    from mnemic.predict.captions import caption_pictures
    from mnemic.reproduce.pictures.rows import load_scenes
    from mnemic.reproduce.pictures.table import run_folder_of

    plots = []
    for name in table.names:
        checkpoint = load_checkpoint(run_folder_of(folder, name, 0))
        if not checkpoint.network.respond.reads_regions or checkpoint.network.encode.num_regions == 1:
            continue
        scenes = load_scenes(checkpoint)
        picture = scenes.read_pictures(scenes.lengths.argmax().view(1))
        plots.append(GazePlot(name, picture[0], caption_pictures(checkpoint, picture)[0]))
    if not plots:
        raise ValueError("--plot shows where rows with attention look, such as soft and hard: this table has none")
    plot_gaze(plots, path)
