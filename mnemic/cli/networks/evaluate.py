"""``mnemic evaluate``: how often a trained network answers wrongly, task by task."""

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table

from mnemic.cli.options import AsJson, Data, Device, Model, Tasks, device_of, refuse, task_numbers
from mnemic.cli.render.console import out, print_json, warn


class Split(StrEnum):
    """Which part of a data set."""

    test = "test"
    validation = "validation"
    train = "train"


def evaluate(
    context: typer.Context,
    model: Model,
    data: Data = None,
    split: Annotated[Split, typer.Option(help="Which questions.")] = Split.test,
    tasks: Tasks = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Other data, such as data.tested=dev."),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Test a trained network: the error of each task, or the figures of texts; perplexity.

    The questions are those of the checkpoint's own recipe; --data puts another folder in its place,
    and --set data.tested=dev another file.

    Example: mnemic evaluate --model runs/memn2n --data babi --tasks 1-3
    """
    from mnemic.checkpoint.folder import load
    from mnemic.cli.networks.evaluate_texts import evaluate_texts
    from mnemic.data import RESPONSE_OF
    from mnemic.evaluate.error_rate import mean
    from mnemic.reproduce.statistics import FAILED

    checkpoint = load(model)
    source = dict(checkpoint.recipe["data"])
    if data is not None:
        source = from_folder(source, data)
    source = changed(source, sets or [])
    if source["kind"] in RESPONSE_OF:  # without a memory
        refuse(context, ["tasks"], "these texts are not in tasks")
        evaluate_texts(checkpoint, source, str(model), split.value, device_of(device), as_json)
        return
    found = test(checkpoint, source, split, tasks or ["all"], device_of(device))
    errors = found["per_task"]
    report = {
        "model": str(model),
        "data": source,
        "split": split.value,
        "mean_error": mean(list(errors.values())),
        "failed": sum(error > FAILED for error in errors.values()),
        **found,
    }
    for note in report["notes"]:
        warn(note)
    if as_json:
        print_json(report)
    else:
        tell(report, FAILED)


def test(
    checkpoint: Any, source: dict[str, Any], split: Split, tasks: list[str], device: str
) -> dict[str, Any]:
    """Ask every question of the split, in the words that the network knows."""
    from mnemic.data import DATASETS
    from mnemic.evaluate.error_rate import task_errors
    from mnemic.recipe import ConfigError, build

    data = build(DATASETS, source)
    chosen = task_numbers(tasks, sorted(data.tasks))
    asked = data.asked(split.value, checkpoint.tokenizer, chosen).to(device)
    if not len(asked):
        raise ConfigError(f"the {split.value} split of this data has no questions")
    errors = task_errors(checkpoint.network.to(device), asked)
    notes = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    if strange := asked.unknown:
        notes.append(
            f"{strange} of {len(asked)} answers are words the network does not know; they "
            "count as wrong"
        )
    return {
        "per_task": {str(task): error for task, error in errors.items()},
        "names": {str(task): data.names[task] for task in errors},
        "questions": {str(task): int((asked.task == task).sum()) for task in errors},
        "notes": notes,
    }


def changed(source: dict[str, Any], sets: list[str]) -> dict[str, Any]:
    """The data with some of its keys set."""
    from mnemic.recipe import ConfigError, assignment, override

    recipe: dict[str, Any] = {"data": source}
    for text in sets:
        key, value = assignment(text)
        if not key.startswith("data."):
            raise ConfigError(f"a network is tested as it is: --set takes data.…, not {key}")
        recipe = override(recipe, key, value)
    return recipe["data"]


def from_folder(source: dict[str, Any], folder: str) -> dict[str, Any]:
    """The same data from files in ``folder``; in place of generated data the files they imitate."""
    shared = {  # kind of generated data → the kind in files, and what both take
        "generated": ("stories", ("tasks", "sentences", "validation")),
        "generated-knowledge": ("knowledge", ("validation", "slots", "common", "keys", "reach")),
        "dates": ("sequences", ("tokenizer", "length")),
    }
    if source["kind"] not in shared:
        return {**source, "folder": folder}
    kind, both = shared[source["kind"]]
    return {**{k: v for k, v in source.items() if k in both}, "kind": kind, "folder": folder}


def tell(report: dict[str, Any], limit: float) -> None:
    table = Table("task", "", "questions", "error %", header_style="bold", show_footer=True)
    for column in (0, 2, 3):
        table.columns[column].justify = "right"
    for task, error in report["per_task"].items():
        style = "red" if error > limit else "green"
        asked = str(report["questions"][task])
        table.add_row(task, report["names"][task], asked, f"[{style}]{error:.1f}")
    table.columns[1].footer = "mean"
    table.columns[2].footer = str(sum(report["questions"].values()))
    table.columns[3].footer = f"{report['mean_error']:.1f}"
    screen = out()
    screen.print(table)
    screen.print(f"{report['failed']} of {len(report['per_task'])} tasks failed (over {limit:g} %)")
