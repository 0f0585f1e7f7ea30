"""``mnemic table``: rebuild a published table with one command."""

from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mnemic.cli.networks.all_tables import READ_CAPTION, rebuild_all_tables
from mnemic.cli.options import DeviceOption, JsonOption, SetOption, TasksOption, parse_task_numbers, resolve_device
from mnemic.cli.render.console import format_duration, get_stdout, print_json
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

STEPS_PER_UPDATE = 50  # of the progress bar

app = typer.Typer(help="Rebuild a published table.", rich_markup_mode="rich")


class TableSize(StrEnum):
    """Training questions per task."""

    small = "1k"
    large = "10k"


@app.callback()
def tables() -> None:
    """Rebuild a published table."""  # without a callback typer would drop the name `babi`


@app.command()
def babi(
    data: Annotated[str, typer.Option("--data", metavar="DIR", help="Folder of the bAbI stories.")],
    recipe: Annotated[
        str, typer.Option(help="The network; all: every one with a published table of this size.")
    ] = "memn2n",
    size: Annotated[TableSize, typer.Option(help="Training questions per task.")] = TableSize.small,
    joint: Annotated[bool, typer.Option("--joint", help="One network for all tasks, not one per task.")] = False,
    seeds: Annotated[int, typer.Option(help="Number of runs, from seed 0 on.", min=1)] = 5,
    tasks: TasksOption = None,
    sets: SetOption = None,
    device: DeviceOption = "auto",
    at_once: Annotated[int, typer.Option(min=0, help="Runs per program; 0: all on a GPU, one by one on a CPU.")] = 0,
    lanes: Annotated[int, typer.Option(min=0, help="Programs in parallel; 0: 20 on a GPU, 1 on a CPU.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for the runs and the table.",
            show_default="runs/table-babi-RECIPE-SIZE",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train and test a recipe on the bAbI tasks and compare with the published errors.

    Finished runs are kept; an interrupted table resumes when the command is repeated.

    For tasks 1 to 3 it also reports whether the best runs read and need the supporting facts.

    Example: mnemic table babi --recipe memn2n --size 1k --joint --seeds 5 --data babi

    All networks, each as its paper did it: mnemic table babi --recipe all --size 10k --data babi

    Each network gets its own folder below --out; summary.json has one row per network.
    """
    from mnemic.data.babi.folder import TASKS
    from mnemic.reproduce.all_tables import ALL
    from mnemic.reproduce.babi_table import BabiTable, save_result

    table = BabiTable(
        recipe=recipe,
        data=data,
        size=size.value,
        joint=joint,
        seeds=seeds,
        tasks=parse_task_numbers(tasks or ["all"], sorted(TASKS)),
        sets=sets or [],
        device=resolve_device(device),
        at_once=at_once,
        lanes=lanes,
    )
    name = f"table-babi-{Path(recipe).stem}-{size.value}{'-joint' if joint else ''}"
    table_folder = folder or Path("runs") / name
    if recipe == ALL:
        rebuild_all_tables(table, table_folder, train_with_progress, as_json)
        return
    check_story_recipe(recipe)
    train_with_progress(table, table_folder)
    result = save_result(table, table_folder)
    if as_json:
        print_json(result)
        return
    get_stdout().print(build_errors_table(result))
    if result["ours"]["evidence"]:
        get_stdout().print(build_evidence_table(result))
    print_summary(result)
    get_stdout().print(f"kept in {table_folder / 'table.json'}", style="dim", markup=False, soft_wrap=True)


def check_story_recipe(recipe: str) -> None:
    """Raise if a recipe does not train on stories.

    Without this check it would complain about options that the user did not set.
    """
    from mnemic.recipe import ConfigError, load_recipe

    kind = load_recipe(recipe).get("data", {}).get("kind")
    if kind not in ("babi", "generated-babi"):
        raise ConfigError(f"bAbI is a table of stories, but recipe {recipe!r} reads {kind!r}")


def train_with_progress(table: Any, folder: Path) -> None:
    """Train the missing runs of a table with a progress bar.

    Ctrl-C stops at the end of a step.
    """
    from mnemic.reproduce.babi_table import list_missing_groups, train_missing_runs
    from mnemic.train.phases import read_phases

    epochs = [phase.settings.epochs for phase in read_phases(table.build_recipes()[0])]
    total = table.seeds * len(table.build_recipes())
    num_done = total - sum(len(group.seeds) for group in list_missing_groups(table, folder))
    # For each group of runs, how much of it is finished, in runs.
    num_started, runs_by_group = num_done, dict[tuple[int, int], float]()
    with (
        defer_interrupts() as is_interrupted,
        ProgressBars() as bars,
        closing(train_missing_runs(table, folder)) as steps,
    ):
        for group, progress in steps:
            phase, step, num_seeds = progress.phase, progress.step, len(group.seeds)
            key = (group.number, group.seeds[0])
            if key not in runs_by_group:
                is_resumed = (phase.number, step.number) != (0, 1)
                location = f", from step {step.number} of phase {phase.number + 1}" if is_resumed else ""
                bars.print_line(f"runs {num_started + 1} to {num_started + num_seeds} of {total}{location}")
                num_started += num_seeds
            if step.number % STEPS_PER_UPDATE == 0 or key not in runs_by_group or step.number == progress.total_steps:
                phase_epochs = epochs[phase.number] * step.number / progress.total_steps
                epochs_done = sum(epochs[: phase.number]) + phase_epochs
                runs_by_group[key] = num_seeds * epochs_done / sum(epochs)
                tasks = group.recipe["data"]["tasks"]
                location = f"task {tasks[0]}" if len(tasks) == 1 else f"{len(tasks)} tasks"
                bars.show(
                    "runs",
                    num_done + sum(runs_by_group.values()),
                    total,
                    f"{location}, phase {phase.number + 1} of {progress.num_phases}, "
                    f"step {step.number} of {progress.total_steps}, "
                    f"loss {step.loss.mean().item():.3f}",
                )
            if is_interrupted():
                num_finished = total - sum(len(group.seeds) for group in list_missing_groups(table, folder))
                saved_runs = f"{num_finished} finished runs and the state of the others are kept in {folder}"
                raise KeyboardInterrupt(f"stopped; {saved_runs}")


def build_errors_table(result: dict[str, Any]) -> Table:
    """Build a table of the published error, our best run and our mean per task."""
    from mnemic.data.babi.folder import TASKS
    from mnemic.reproduce.statistics import FAILURE_THRESHOLD

    results, published = result["ours"], result["published"]
    table = Table("task", "", "published", "best", "mean", header_style="bold", show_footer=True)
    for column in (0, 2, 3, 4):
        table.columns[column].justify = "right"
    for task, best in results["per_task"].items():
        published_error = published.get("per_task", {}).get(task)
        table.add_row(
            task,
            TASKS[int(task)],
            "-" if published_error is None else f"{published_error:.1f}",
            f"[{'red' if best > FAILURE_THRESHOLD else 'green'}]{best:.1f}",
            f"{results['per_task_mean'][task]:.1f}",
        )
    published_mean = published.get("mean_error") if len(results["per_task"]) == len(TASKS) else None
    footers = ("", "mean error %", "-" if published_mean is None else f"{published_mean:.1f}")
    for column, text in enumerate((*footers, f"{results['best']:.1f}", f"{results['mean_error']:.1f}")):
        table.columns[column].footer = text
    table.title = f"bAbI {result['size']}, {result['setting']}: {result['recipe']}"
    return table


def build_evidence_table(result: dict[str, Any]) -> Table:
    """Build a table of how often the best run reads and needs supporting facts."""
    table = Table("task", "reads a proof", "needs it", "needs another", header_style="bold")
    for column in table.columns:
        column.justify = "right"
    for task, evidence in result["ours"]["evidence"].items():
        cells = (evidence[key] for key in ("supporting", "most_read", "other"))
        table.add_row(task, *(f"{percentage:.1f}" for percentage in cells))
    table.title = "what the best run read"
    table.caption = READ_CAPTION
    return table


def print_summary(result: dict[str, Any]) -> None:
    """Print the errors in one line, with the source, data and time behind them."""
    results, published, screen = result["ours"], result["published"], get_stdout()
    seeds, tasks = len(result["seeds"]), len(results["per_task"])
    deviation = f" ± {results['std']:.1f}" if seeds > 1 else ""
    screen.print(
        f"{seeds} seed{'s' * (seeds > 1)}: mean error {results['mean_error']:.1f}{deviation} %, "
        f"median {results['median']:.1f}, best {results['best']:.1f} with {results['failed']} of "
        f"{tasks} tasks failed; the best is chosen by {result['selection']}",
        soft_wrap=True,
    )
    if published:
        screen.print(f"published: {published['source']}", markup=False, soft_wrap=True)
    if generated_tasks := result["generated_training_tasks"]:
        task_list = ", ".join(map(str, generated_tasks))
        screen.print(f"trained on generated stories: task {task_list} (no official file)")
    screen.print(f"{format_duration(result['seconds'])} of training on {result['hardware']}", style="dim")
