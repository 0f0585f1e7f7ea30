"""``mnemic table babi``: rebuild a published table, or all of them, with one command."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mnemic.cli import options as opt
from mnemic.cli.render.console import Styled, print_json, print_status, print_table, print_text
from mnemic.cli.render.format import format_duration
from mnemic.cli.render.progress import ProgressBars
from mnemic.recipe import ConfigError, kind_name, kind_of, load_recipe
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.reproduce.babi_table import BabiTable

STEPS_PER_UPDATE = 50  # of the progress bar
STEPS_PER_LINE = 1000  # where there is no bar
EVIDENCE_HEADERS = {"supporting": ">reads a proof", "most_read": ">needs it", "other": ">needs another"}
READ_CAPTION = (
    "% of test questions: the most-read sentence proves the answer; the answer changes without it; "
    "it changes without another one"
)
RECIPE_HELP = "The network; all: every one with a published table of this size."
OUT_HELP = "Folder for the runs and the table."


def rebuild_babi(
    data: Annotated[str, opt.Option("--data DIR", "Folder of the bAbI stories.")],
    recipe: Annotated[str, opt.Option("--recipe", RECIPE_HELP)] = "memn2n",
    size: Annotated[Literal["1k", "10k"], opt.Option("--size", "Training questions per task.")] = "1k",
    joint: Annotated[bool, opt.Option("--joint", "One network for all tasks, not one per task.")] = False,
    seeds: Annotated[int, opt.Option("--seeds", "Number of runs, from seed 0 on.", minimum=1)] = 5,
    tasks: opt.Tasks = None,
    sets: opt.Sets = None,
    device: opt.Device = "auto",
    at_once: Annotated[int, opt.Option("--at-once", "Runs per program; 0: all on a GPU, one on a CPU.", minimum=0)] = 0,
    lanes: Annotated[int, opt.Option("--lanes", "Programs in parallel; 0: 20 on a GPU, 1 on a CPU.", minimum=0)] = 0,
    folder: Annotated[Path | None, opt.Option("--out DIR", OUT_HELP, "runs/table-babi-RECIPE-SIZE")] = None,
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

    task_ids = opt.parse_task_numbers(tasks or ["all"], sorted(TASKS))
    table = BabiTable(
        recipe=recipe, data=data, size=size, joint=joint, seeds=seeds, tasks=task_ids, sets=sets or [],
        device=opt.resolve_device(device), at_once=at_once, lanes=lanes,
    )  # fmt: skip
    name = f"table-babi-{Path(recipe).stem}-{size}{'-joint' if joint else ''}"
    table_folder = folder or Path("runs") / name
    if recipe == ALL:
        rebuild_all(table, table_folder)
        return
    check_story_recipe(recipe)
    train_with_progress(table, table_folder)
    result = save_result(table, table_folder)
    print_json(result)
    print_errors(result)
    if result["ours"]["evidence"]:
        per_task = result["ours"]["evidence"].items()
        rows = [[task, *(f"{evidence[key]:.1f}" for key in EVIDENCE_HEADERS)] for task, evidence in per_task]
        headers = [">task", *EVIDENCE_HEADERS.values()]
        print_table(headers, rows, title="what the best run read", caption=READ_CAPTION)
    print_summary(result)
    print_text(f"kept in {table_folder / 'table.json'}", style="dim")


def check_story_recipe(recipe: str) -> None:
    """Raise if a recipe does not train on stories.

    Without this check it would complain about options that the user did not set.
    """
    from mnemic.data import DATASETS

    data_spec = load_recipe(recipe).get("data", {})
    if not kind_of(DATASETS, data_spec).reads_stories:
        raise ConfigError(f"bAbI is a table of stories, but recipe {recipe!r} reads {kind_name(data_spec)!r}")


def train_with_progress(table: "BabiTable", folder: Path) -> None:
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
    with defer_interrupts() as should_stop, ProgressBars() as bars, closing(train_missing_runs(table, folder)) as steps:
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
                detail = (
                    f"{f'task {tasks[0]}' if len(tasks) == 1 else f'{len(tasks)} tasks'}, "
                    f"phase {phase.number + 1} of {progress.num_phases}, "
                    f"step {step.number} of {progress.total_steps}, loss {step.loss.mean().item():.3f}"
                )
                bars.show("runs", num_done + sum(runs_by_group.values()), total, detail)
                if step.number % STEPS_PER_LINE == 0:
                    bars.print_line(detail)
            if should_stop():
                num_finished = total - sum(len(group.seeds) for group in list_missing_groups(table, folder))
                saved_runs = f"{num_finished} finished runs and the state of the others are kept in {folder}"
                raise KeyboardInterrupt(f"stopped; {saved_runs}")


def print_errors(result: dict[str, Any]) -> None:
    """Print the published error, our best run and our mean per task."""
    from mnemic.data.babi.folder import TASKS
    from mnemic.reproduce.statistics import FAILURE_THRESHOLD

    results, published = result["ours"], result["published"]
    rows = []
    for task, best in results["per_task"].items():
        best_error = Styled(f"{best:.1f}", "red" if best > FAILURE_THRESHOLD else "green")
        other_errors = published.get("per_task", {}).get(task), results["per_task_mean"][task]
        published_error, mean_error = map(format_error, other_errors)
        rows.append([task, TASKS[int(task)], published_error, best_error, mean_error])
    published_mean = published.get("mean_error") if len(results["per_task"]) == len(TASKS) else None
    means = [format_error(error) for error in (published_mean, results["best"], results["mean_error"])]
    title = f"bAbI {result['size']}, {result['setting']}: {result['recipe']}"
    headers = [">task", "", ">published", ">best", ">mean"]
    print_table(headers, rows, title=title, footer=["", "mean error %", *means])


def format_error(error: float | None) -> str:
    return "-" if error is None else f"{error:.1f}"


def print_summary(result: dict[str, Any]) -> None:
    """Print the errors in one line, with the source, data and time behind them."""
    results, published = result["ours"], result["published"]
    seeds, tasks = len(result["seeds"]), len(results["per_task"])
    deviation = f" ± {results['std']:.1f}" if seeds > 1 else ""
    print_text(
        f"{seeds} seed{'s' * (seeds > 1)}: mean error {results['mean_error']:.1f}{deviation} %, "
        f"median {results['median']:.1f}, best {results['best']:.1f} with {results['failed']} of "
        f"{tasks} tasks failed; the best is chosen by {result['selection']}"
    )
    if published:
        print_text(f"published: {published['source']}")
    if generated_tasks := result["generated_training_tasks"]:
        print_text(f"trained on generated stories: task {', '.join(map(str, generated_tasks))} (no official file)")
    print_text(f"{format_duration(result['seconds'])} of training on {result['hardware']}", style="dim")


def rebuild_all(settings: "BabiTable", folder: Path) -> None:
    """Rebuild every published table of a size; update the summary after each table."""
    from mnemic.reproduce.all_tables import SUMMARY, check_tables, list_tables, save_summary, table_folder_of

    tables = list_tables(settings)
    check_tables(tables)
    for number, table in enumerate(tables, start=1):
        table_folder = table_folder_of(table, folder)
        print_status(f"table {number} of {len(tables)}: {table_folder.name}")
        train_with_progress(table, table_folder)
        summary = save_summary(tables[:number], folder)
    print_json(summary)
    print_networks(summary)
    hardware = sorted({row["hardware"] for row in summary["rows"]})
    time = format_duration(60 * sum(row["minutes"] for row in summary["rows"]))
    print_text(f"{time} of training on {', '.join(hardware)}", style="dim")
    print_text(f"kept in {folder / SUMMARY}", style="dim")


def print_networks(summary: dict[str, Any]) -> None:
    """Print published and reproduced errors per network, and what the best runs read."""
    from mnemic.reproduce.statistics import FAILURE_THRESHOLD, format_evidence

    rows, evidence_rows = [], []
    for row in summary["rows"]:
        name = f"{row['recipe']} joint" if row["setting"] == "joint" else row["recipe"]
        published, best, color = row["published"], row["best"], ""
        if published is not None:
            is_reached = round(best, 1) <= published and row["failed"] <= row["published_failed"]
            color = "green" if is_reached else "red"
        published_error = "-" if published is None else f"{published:.1f} / {row['published_failed']}"
        best_error = Styled(f"{best:.1f} / {row['failed']}", color)
        mean_error = f"{row['mean_error']:.1f}" + (f" ± {row['std']:.1f}" if row["seeds"] > 1 else "")
        setting = [str(row["seeds"]), row["selection"], format_duration(60 * row["minutes"])]
        rows.append([name, published_error, best_error, mean_error, *setting])
        evidence_rows.append([name, *(format_evidence(row["evidence"], key) for key in EVIDENCE_HEADERS)])
    headers = ["network", ">published", ">best", ">mean ± deviation", ">seeds", "chosen by", ">time"]
    caption = f"mean error in % / tasks that failed, with more than {FAILURE_THRESHOLD:g} % error"
    print_table(headers, rows, title=f"bAbI {summary['size']}", caption=caption)
    title = "what the best runs read, tasks 1 / 2 / 3"
    print_table(["network", *EVIDENCE_HEADERS.values()], evidence_rows, title=title, caption=READ_CAPTION)
