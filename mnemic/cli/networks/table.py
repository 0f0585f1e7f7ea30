"""``mnemic table``: a published table, rebuilt by one command."""

from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mnemic.cli.networks.all_tables import READ, all_tables
from mnemic.cli.options import AsJson, Device, Sets, Tasks, device_of, task_numbers
from mnemic.cli.render.console import duration, out, print_json
from mnemic.cli.render.progress import Bars
from mnemic.train.interrupt import patient

OFTEN = 50  # steps between two moves of the bar

app = typer.Typer(help="Rebuild a published table.", rich_markup_mode="rich")


class Size(StrEnum):
    """Training questions a task."""

    small = "1k"
    large = "10k"


@app.callback()
def tables() -> None:
    """Rebuild a published table."""  # this alone keeps `babi` a command of its own


@app.command()
def babi(
    data: Annotated[str, typer.Option("--data", metavar="DIR", help="Folder of the bAbI stories.")],
    recipe: Annotated[
        str, typer.Option(help="Which network; all: every one with a published table of this size.")
    ] = "memn2n",
    size: Annotated[Size, typer.Option(help="Training questions a task.")] = Size.small,
    joint: Annotated[
        bool, typer.Option("--joint", help="One network for all tasks, not one a task.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="Runs, from seed 0 on.", min=1)] = 5,
    tasks: Tasks = None,
    sets: Sets = None,
    device: Device = "auto",
    at_once: Annotated[
        int,
        typer.Option(min=0, help="Runs as one program; 0: all on a GPU, one by one on a CPU."),
    ] = 0,
    lanes: Annotated[
        int, typer.Option(min=0, help="Such programs side by side; 0: 20 on a GPU, 1 on a CPU.")
    ] = 0,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where runs and table go.",
            show_default="runs/table-babi-RECIPE-SIZE",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train and test a recipe on the bAbI tasks, and set the errors beside the published ones.

    Finished runs are kept; a table that was stopped goes on when the command is repeated.

    For tasks 1 to 3 it also says whether the best runs read what proves the answer, and need it.

    Example: mnemic table babi --recipe memn2n --size 1k --joint --seeds 5 --data babi

    All networks, each as its paper did it: mnemic table babi --recipe all --size 10k --data babi

    Each of them goes into a folder of its own below --out; summary.json has a line a network.
    """
    from mnemic.data.babi.folder import TASKS
    from mnemic.reproduce.all_tables import ALL
    from mnemic.reproduce.babi_table import BabiTable, save_result

    wanted = BabiTable(
        recipe=recipe,
        data=data,
        size=size.value,
        joint=joint,
        seeds=seeds,
        tasks=task_numbers(tasks or ["all"], sorted(TASKS)),
        sets=sets or [],
        device=device_of(device),
        at_once=at_once,
        lanes=lanes,
    )
    name = f"table-babi-{Path(recipe).stem}-{size.value}{'-joint' if joint else ''}"
    place = folder or Path("runs") / name
    if recipe == ALL:
        all_tables(wanted, place, follow, as_json)
        return
    check_stories(recipe)
    follow(wanted, place)
    result = save_result(wanted, place)
    if as_json:
        print_json(result)
        return
    out().print(errors_table(result))
    if result["ours"]["evidence"]:
        out().print(evidence_table(result))
    summarise(result)
    out().print(f"kept in {place / 'table.json'}", style="dim", markup=False, soft_wrap=True)


def check_stories(recipe: str) -> None:
    """A recipe of other data would else complain of options that nobody gave."""
    from mnemic.recipe import ConfigError, load

    kind = load(recipe).get("data", {}).get("kind")
    if kind not in ("stories", "generated"):
        raise ConfigError(f"bAbI is a table of stories, but recipe {recipe!r} reads {kind!r}")


def follow(table: Any, folder: Path) -> None:
    """Train what is missing, and show how far it is; Ctrl-C waits for the end of a step."""
    from mnemic.reproduce.babi_table import missing, rebuild
    from mnemic.train.phases import phases

    epochs = [phase.settings.epochs for phase in phases(table.recipes()[0])]
    total = table.seeds * len(table.recipes())
    done = total - sum(len(group.seeds) for group in missing(table, folder))
    begun, parts = done, dict[tuple[int, int], float]()  # how much of each group is done, in runs
    with patient() as stopped, Bars() as bars, closing(rebuild(table, folder)) as steps:
        for group, watched in steps:
            phase, step, share = watched.phase, watched.step, len(group.seeds)
            key = (group.number, group.seeds[0])
            if key not in parts:
                half = (phase.number, step.number) != (0, 1)
                where = f", from step {step.number} of phase {phase.number + 1}" if half else ""
                bars.line(f"runs {begun + 1} to {begun + share} of {total}{where}")
                begun += share
            if step.number % OFTEN == 0 or key not in parts or step.number == watched.total:
                now = epochs[phase.number] * step.number / watched.total
                part = sum(epochs[: phase.number]) + now
                parts[key] = share * part / sum(epochs)
                tasks = group.recipe["data"]["tasks"]
                where = f"task {tasks[0]}" if len(tasks) == 1 else f"{len(tasks)} tasks"
                bars.show(
                    "runs",
                    done + sum(parts.values()),
                    total,
                    f"{where}, phase {phase.number + 1} of {watched.phases}, "
                    f"step {step.number} of {watched.total}, loss {step.loss.mean().item():.3f}",
                )
            if stopped():
                runs = total - sum(len(group.seeds) for group in missing(table, folder))
                kept = f"{runs} finished runs and the state of the others are kept in {folder}"
                raise KeyboardInterrupt(f"stopped; {kept}")


def errors_table(result: dict[str, Any]) -> Table:
    """Task by task: published, our best run, our mean."""
    from mnemic.data.babi.folder import TASKS
    from mnemic.reproduce.statistics import FAILED

    ours, paper = result["ours"], result["published"]
    table = Table("task", "", "published", "best", "mean", header_style="bold", show_footer=True)
    for place in (0, 2, 3, 4):
        table.columns[place].justify = "right"
    for task, best in ours["per_task"].items():
        theirs = paper.get("per_task", {}).get(task)
        table.add_row(
            task,
            TASKS[int(task)],
            "-" if theirs is None else f"{theirs:.1f}",
            f"[{'red' if best > FAILED else 'green'}]{best:.1f}",
            f"{ours['per_task_mean'][task]:.1f}",
        )
    whole = paper.get("mean_error") if len(ours["per_task"]) == len(TASKS) else None
    feet = ("", "mean error %", "-" if whole is None else f"{whole:.1f}")
    for place, text in enumerate((*feet, f"{ours['best']:.1f}", f"{ours['mean_error']:.1f}")):
        table.columns[place].footer = text
    table.title = f"bAbI {result['size']}, {result['setting']}: {result['recipe']}"
    return table


def evidence_table(result: dict[str, Any]) -> Table:
    """Task by task: does the best run read what proves the answer, and need what it read?"""
    table = Table("task", "reads a proof", "needs it", "needs another", header_style="bold")
    for column in table.columns:
        column.justify = "right"
    for task, own in result["ours"]["evidence"].items():
        cells = (own[key] for key in ("supporting", "most_read", "other"))
        table.add_row(task, *(f"{share:.1f}" for share in cells))
    table.title = "what the best run read"
    table.caption = READ
    return table


def summarise(result: dict[str, Any]) -> None:
    """One line that can be quoted, and what must be known beside it."""
    ours, paper, screen = result["ours"], result["published"], out()
    seeds, tasks = len(result["seeds"]), len(ours["per_task"])
    spread = f" ± {ours['std']:.1f}" if seeds > 1 else ""
    screen.print(
        f"{seeds} seed{'s' * (seeds > 1)}: mean error {ours['mean_error']:.1f}{spread} %, "
        f"median {ours['median']:.1f}, best {ours['best']:.1f} with {ours['failed']} of {tasks} "
        f"tasks failed; the best is chosen by {result['selection']}",
        soft_wrap=True,
    )
    if paper:
        screen.print(f"published: {paper['source']}", markup=False, soft_wrap=True)
    if made := result["generated_training_tasks"]:
        listed = ", ".join(map(str, made))
        screen.print(f"trained on generated stories: task {listed} (no official file)")
    screen.print(f"{duration(result['seconds'])} of training on {result['hardware']}", style="dim")
