"""``mnemic evaluate``: compute the test error of a trained network, task by task."""

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table

from mnemic.cli.options import (
    DataOption,
    DeviceOption,
    JsonOption,
    ModelOption,
    TasksOption,
    parse_task_numbers,
    refuse_options,
    resolve_device,
)
from mnemic.cli.render.console import get_stdout, print_json, print_warning


class EvaluationSplit(StrEnum):
    """The splits of a dataset."""

    test = "test"
    validation = "validation"
    train = "train"


def evaluate(
    context: typer.Context,
    model: ModelOption,
    data: DataOption = None,
    split: Annotated[EvaluationSplit, typer.Option(help="The split to test on.")] = EvaluationSplit.test,
    tasks: TasksOption = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the data, such as data.test_file=dev."),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Test a trained network: error per task, metrics of texts, or perplexity.

    The data is that of the checkpoint's recipe; --data replaces its folder, and
    --set data.tested=dev its test file.

    Example: mnemic evaluate --model runs/memn2n --data babi --tasks 1-3
    """
    from mnemic.checkpoint.folder import load_checkpoint
    from mnemic.cli.networks.evaluate_texts import evaluate_texts
    from mnemic.data import RESPONSE_OF
    from mnemic.evaluate.by_task import mean_error
    from mnemic.reproduce.statistics import FAILURE_THRESHOLD

    checkpoint = load_checkpoint(model)
    data_spec = dict(checkpoint.recipe["data"])
    if data is not None:
        data_spec = replace_folder(data_spec, data)
    data_spec = override_data(data_spec, sets or [])
    if data_spec["kind"] in RESPONSE_OF:  # texts without a memory
        refuse_options(context, ["tasks"], "this data has no tasks")
        evaluate_texts(checkpoint, data_spec, str(model), split.value, resolve_device(device), as_json)
        return
    results = evaluate_tasks(checkpoint, data_spec, split, tasks or ["all"], resolve_device(device))
    errors = results["per_task"]
    report = {
        "model": str(model),
        "data": data_spec,
        "split": split.value,
        "mean_error": mean_error(list(errors.values())),
        "failed": sum(error > FAILURE_THRESHOLD for error in errors.values()),
        **results,
    }
    for note in report["notes"]:
        print_warning(note)
    if as_json:
        print_json(report)
    else:
        print_report(report, FAILURE_THRESHOLD)


def evaluate_tasks(
    checkpoint: Any, data_spec: dict[str, Any], split: EvaluationSplit, tasks: list[str], device: str
) -> dict[str, Any]:
    """Compute the error per task on a split, with the checkpoint's tokenizer."""
    from mnemic.data import DATASETS
    from mnemic.evaluate.error_rate import compute_task_errors
    from mnemic.recipe import ConfigError, build

    data = build(DATASETS, data_spec)
    task_ids = parse_task_numbers(tasks, sorted(data.tasks))
    dataset = data.dataset(split.value, checkpoint.tokenizer, task_ids).to(device)
    if not len(dataset):
        raise ConfigError(f"the {split.value} split of this data has no questions")
    errors = compute_task_errors(checkpoint.network.to(device), dataset)
    notes = [] if checkpoint.progress.done else ["this network is not trained to the end"]
    if num_unknown := dataset.num_unknown:
        notes.append(
            f"{num_unknown} of {len(dataset)} answers are words the network does not know; they count as wrong"
        )
    return {
        "per_task": {str(task): error for task, error in errors.items()},
        "names": {str(task): data.names[task] for task in errors},
        "questions": {str(task): int((dataset.task == task).sum()) for task in errors},
        "notes": notes,
    }


def override_data(data_spec: dict[str, Any], sets: list[str]) -> dict[str, Any]:
    """Apply ``--set data.key=value`` changes to the data section of a recipe."""
    from mnemic.recipe import ConfigError, override, parse_assignment
    from mnemic.recipe.migrate import migrate_override

    recipe: dict[str, Any] = {"data": data_spec}
    for text in sets:
        key, value = migrate_override(*parse_assignment(text))
        if not key.startswith("data."):
            raise ConfigError(f"only the data of a trained network can change: --set takes data.…, not {key}")
        recipe = override(recipe, key, value)
    return recipe["data"]


def replace_folder(data_spec: dict[str, Any], folder: str) -> dict[str, Any]:
    """Read the data from ``folder``; generated data is replaced by files of its kind."""
    file_kinds = {  # kind of generated data → the kind of files, and the keys of both
        "generated-babi": ("babi", ("tasks", "sentences", "validation")),
        "generated-knowledge": ("knowledge", ("validation", "slots", "common", "keys", "reach")),
        "dates": ("seq2seq", ("tokenizer", "length")),
    }
    if data_spec["kind"] not in file_kinds:
        return {**data_spec, "folder": folder}
    kind, shared_keys = file_kinds[data_spec["kind"]]
    return {**{k: v for k, v in data_spec.items() if k in shared_keys}, "kind": kind, "folder": folder}


def print_report(report: dict[str, Any], max_error: float) -> None:
    """Print the error of each task; tasks above ``max_error`` percent failed."""
    table = Table("task", "", "questions", "error %", header_style="bold", show_footer=True)
    for column in (0, 2, 3):
        table.columns[column].justify = "right"
    for task, error in report["per_task"].items():
        style = "red" if error > max_error else "green"
        num_questions = str(report["questions"][task])
        table.add_row(task, report["names"][task], num_questions, f"[{style}]{error:.1f}")
    table.columns[1].footer = "mean"
    table.columns[2].footer = str(sum(report["questions"].values()))
    table.columns[3].footer = f"{report['mean_error']:.1f}"
    screen = get_stdout()
    screen.print(table)
    screen.print(f"{report['failed']} of {len(report['per_task'])} tasks failed (over {max_error:g} %)")
