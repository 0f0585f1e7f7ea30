"""``mnemic train``: train a recipe to a checkpoint, with one progress bar per phase."""

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mnemic.cli.options import DataOption, DeviceOption, FreshOption, JsonOption, SeedOption, SetOption, resolve_device
from mnemic.cli.render.console import (
    format_duration,
    format_metric,
    format_percent,
    get_stdout,
    print_json,
    print_status,
)
from mnemic.cli.render.progress import ProgressBars
from mnemic.train.interrupt import defer_interrupts

FILE_KINDS = {  # kind of data → the content of its files, and an alternative to them
    "babi": ("story", "generated stories with --set data.kind=generated-babi"),
    "knowledge": ("knowledge", "a generated base with --set data.kind=generated-knowledge"),
    "classes": ("text", "your own .tsv or .jsonl files"),
    "pairs": ("text", "your own .tsv or .jsonl files"),
    "spans": ("SQuAD", "your own of the same form"),
    "retrieval": ("SQuAD", "your own of the same form"),
    "tags": ("CoNLL", "your own of the same form"),
    "corpus": ("plain text", "a folder that mnemic data sequences made"),
    "language-modeling": ("text", "your own .jsonl or .txt files"),
    "seq2seq": ("text", "dates that are made with --set data.kind=dates"),
}


def train(
    recipe: Annotated[str, typer.Argument(help="A name from mnemic recipes or a .toml file.")],
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the run.", show_default="runs/RECIPE")
    ] = None,
    data: DataOption = None,
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The encoder to start from: a run, a Hugging Face folder, or reader, which ships."
        ),
    ] = None,
    sets: SetOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train a network; an interrupted run resumes when the command is repeated.

    Example: mnemic train memn2n --data babi --set data.tasks=[1] --out runs/task1

    Without data files: mnemic train memn2n --set data.kind=generated --set data.tasks=[1]

    From a pre-trained BERT: mnemic train bert-pairs --data RTE --start BERT --set train.rate=5e-5
    """
    from mnemic.recipe import load_recipe
    from mnemic.train.initialize import start_recipe_from

    change = None if start is None else partial(start_recipe_from, folder=start.expanduser())
    full_recipe = set_data_folder(load_recipe(recipe, sets or [], change=change), data)
    run_folder = folder or Path("runs") / Path(recipe).stem
    result = train_with_progress(full_recipe, run_folder, seed=seed, device=device, fresh=fresh)
    report = {"recipe": recipe, "seed": seed, "out": str(run_folder)} | result
    if as_json:
        print_json(report)
    else:
        print_report(report, full_recipe["data"].get("kind", ""))


def set_data_folder(recipe: dict[str, Any], folder: str | None) -> dict[str, Any]:
    """Set the data folder of a recipe; raise if it needs one and has none."""
    from mnemic.recipe import ConfigError, override

    if folder is not None:
        return override(recipe, "data.folder", folder)
    data_spec = recipe.get("data", {})
    if data_spec.get("kind") in FILE_KINDS and "folder" not in data_spec:
        files, instead = FILE_KINDS[data_spec["kind"]]
        raise ConfigError(f"this recipe learns from {files} files: give their folder with --data DIR, or use {instead}")
    return recipe


def train_with_progress(recipe: dict[str, Any], folder: Path, *, seed: int, device: str, fresh: bool) -> dict[str, Any]:
    """Train with a progress bar and return a report; Ctrl-C saves between two steps."""
    from mnemic.checkpoint.atomic_files import read_json
    from mnemic.checkpoint.folder import PROGRESS, find_checkpoint
    from mnemic.train.run import fit

    is_resumed = False
    start: tuple[int, int] | None = None
    with defer_interrupts() as is_interrupted, ProgressBars("steps") as bars:
        steps = fit(
            recipe, folder, seed=seed, device=resolve_device(device), fresh=fresh, on_validate=bars.show_validation
        )
        for report in steps:
            if start is None:
                start = (report.phase, report.step - 1)
                is_resumed = start != (0, 0)
                if is_resumed:
                    print_status(f"going on with {folder}: phase {report.phase + 1}, step {report.step - 1}")
            show_step(bars, report)
            if is_interrupted():
                steps.close()
                location = f"phase {report.phase + 1} of {report.num_phases}, step {report.step}"
                raise KeyboardInterrupt(f"stopped at {location}, and saved")
    history = read_json(find_checkpoint(folder) / PROGRESS)["history"]
    validation_errors = [row["validation"] for row in history if row["validation"] is not None]
    validation: dict[str, Any] = {"validation_error": validation_errors[-1] if validation_errors else None}
    if any("figures" in row for row in history):
        validation = {"figures": select_best_metrics(history)}
    return {
        "checkpoint": str(find_checkpoint(folder)),
        "resumed": is_resumed,
        "already_trained": start is None,
        "steps": history[-1]["steps"] if history else 0,
        "loss": history[-1]["loss"] if history else None,
        **validation,
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def select_best_metrics(history: list[dict[str, Any]]) -> dict[str, float]:
    """Select the metrics of the best validation; the last one if several are equal."""
    rows = [row for row in history if "figures" in row]
    return min(reversed(rows), key=lambda row: row["validation"])["figures"]


def show_step(bars: ProgressBars, report: Any) -> None:
    """Update the bar of the phase; without a terminal, print a line after each validation."""
    row, name = report.row, f"phase {report.phase + 1} of {report.num_phases}"
    if row is None:
        bars.show(name, report.step, report.total_steps)
        return
    error, is_last = row["validation"], report.step == report.total_steps
    detail = f"loss {row['loss']:.3f}" + ("" if error is None else f", error {format_percent(error)}")
    validation = f"validation error {format_percent(error)}"
    if "figures" in row:
        metric, value = next(iter(row["figures"].items()))
        validation = f"validation {metric} {format_metric(metric, value)}"
        detail = f"loss {row['loss']:.3f}, {metric} {format_metric(metric, value)}"
    if is_last or error is not None:
        bars.show(name, report.step, report.total_steps, detail)
        line = f"{name}  step {report.step} of {report.total_steps}  loss {row['loss']:.4f}"
        bars.print_line(line + ("" if error is None else f"  {validation}"))


def print_report(report: dict[str, Any], kind: str) -> None:
    """Print the result and suggest the next commands."""
    from mnemic.data import SEGMENT_KINDS

    screen, run_folder = get_stdout(), shlex.quote(report["out"])
    if report["already_trained"]:
        screen.print("this run was already trained; --fresh trains it again")
    screen.print(f"checkpoint        {report['checkpoint']}", markup=False, soft_wrap=True)
    if "figures" in report:
        metrics = ", ".join(f"{name} {format_metric(name, value)}" for name, value in report["figures"].items())
        screen.print(f"validation        {metrics}")
    else:
        screen.print(f"validation error  {format_percent(report['validation_error'])}")
    screen.print(f"trained           {report['steps']} steps, {format_duration(report['seconds'])}")
    screen.print("\nnext:", style="dim")
    ask = f'ask --model {run_folder} --story FILE "Where is Mary?"'
    commands = [f"evaluate --model {run_folder}"]
    commands += [f"read --model {run_folder} FILE" if "figures" in report else ask]
    if kind.endswith("knowledge"):
        commands[1] = f'ask --model {run_folder} "who directed [NAME OF A FILM]"'
    if kind == "pairs":
        commands[1] = f"read --model {run_folder} FILE.jsonl"
    if kind in ("spans", "retrieval"):
        commands[1] = f'read --model {run_folder} --question "Who …?" FILE'
    if kind in SEGMENT_KINDS:
        commands[1:] = [f"read --model {run_folder} --state notes.mem FILE"]
        commands += ['ask --state notes.mem "Where is Mary?"']
    if kind == "long-documents":  # its queries are words, not questions
        commands = commands[:1]
    if kind == "corpus":
        tune = f"train bert-classes --start {run_folder} --data DIR"
        commands = [tune, f"export {run_folder} FOLDER"]
    for line in commands:
        screen.print(f"  mnemic {line}", markup=False, soft_wrap=True)
