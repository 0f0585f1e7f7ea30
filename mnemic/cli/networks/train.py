"""``mnemic train``: train a recipe to a checkpoint, with one progress bar per phase."""

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_status, print_text
from mnemic.cli.render.format import format_duration, format_metric, format_percent
from mnemic.cli.render.progress import ProgressBars
from mnemic.recipe import ConfigError, kind_of, load_recipe, override
from mnemic.train.interrupt import defer_interrupts

if TYPE_CHECKING:
    from mnemic.train.run import StepReport
    from mnemic.train.start.fill_embeddings import FilledRows

START_HELP = "The encoder to start from: a run, a Hugging Face folder, or reader, which ships."


def train(
    recipe: Annotated[str, opt.Argument("RECIPE", "A name from mnemic recipes or a .toml file.")],
    folder: Annotated[Path | None, opt.Option("--out DIR", "Folder for the run.", "runs/RECIPE")] = None,
    data: opt.Data = None,
    start: Annotated[Path | None, opt.Option("--start DIR", START_HELP)] = None,
    sets: opt.Sets = None,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    fresh: opt.Fresh = False,
) -> None:
    """Train a network; an interrupted run resumes when the command is repeated.

    Example: mnemic train memn2n --data babi --set data.tasks=[1] --out runs/task1

    Without data files: mnemic train memn2n --set data.kind=generated-babi --set data.tasks=[1]

    From a pre-trained BERT: mnemic train bert-pairs --data RTE --start BERT --set train.rate=5e-5
    """
    from mnemic.data import DATASETS
    from mnemic.train.initialize import start_recipe_from

    change = None if start is None else partial(start_recipe_from, folder=start.expanduser())
    full_recipe = set_data_folder(load_recipe(recipe, sets or [], change=change), data)
    run_folder = folder or Path("runs") / Path(recipe).stem
    result = train_with_progress(full_recipe, run_folder, seed=seed, device=device, fresh=fresh)
    report = {"recipe": recipe, "seed": seed, "out": str(run_folder)} | result
    print_json(report)
    print_report(report, kind_of(DATASETS, full_recipe["data"]).next_commands(shlex.quote(str(run_folder))))


def set_data_folder(recipe: dict[str, Any], folder: str | None) -> dict[str, Any]:
    """Set the data folder of a recipe; raise if it needs one and has none."""
    from mnemic.data import DATASETS

    if folder is not None:
        return override(recipe, "data.folder", folder)
    if "data" in recipe and "folder" not in recipe["data"]:
        data_kind = kind_of(DATASETS, recipe["data"])
        if data_kind.files:
            raise ConfigError(
                f"this recipe learns from {data_kind.files} files: give their folder with --data DIR, "
                f"or use {data_kind.alternative}"
            )
    return recipe


def train_with_progress(recipe: dict[str, Any], folder: Path, *, seed: int, device: str, fresh: bool) -> dict[str, Any]:
    """Train with a progress bar and return a report; Ctrl-C saves between two steps."""
    from mnemic.checkpoint.folder import PROGRESS, find_checkpoint
    from mnemic.files import read_json
    from mnemic.train.run import fit

    start: tuple[int, int] | None = None
    fills: list[FilledRows] = []
    with defer_interrupts() as is_interrupted, ProgressBars("steps") as bars:
        steps = fit(
            recipe, folder, seed=seed, device=opt.resolve_device(device), fresh=fresh,
            on_validate=bars.show_validation, on_fill=fills.append,
        )  # fmt: skip
        for report in steps:
            if start is None:
                start = (report.phase, report.step - 1)
                for fill in fills:
                    source = recipe["model"]["init_vectors"]
                    print_status(f"word vectors of {source}: {fill.filled:,} of {fill.rows:,} rows of the embedding")
                if start != (0, 0):
                    print_status(f"going on with {folder}: phase {report.phase + 1}, step {report.step - 1}")
            show_step(bars, report)
            if is_interrupted():
                steps.close()
                location = f"phase {report.phase + 1} of {report.num_phases}, step {report.step}"
                raise KeyboardInterrupt(f"stopped at {location}, and saved")
    history = read_json(find_checkpoint(folder) / PROGRESS)["history"]
    validation_errors = [row["validation"] for row in history if row["validation"] is not None]
    validation: dict[str, Any] = {"validation_error": validation_errors[-1] if validation_errors else None}
    if rows := [row for row in history if "figures" in row]:  # the best; of equal ones the last
        validation = {"figures": min(reversed(rows), key=lambda row: row["validation"])["figures"]}
    vectors = {"vectors": {"filled": fills[0].filled, "rows": fills[0].rows}} if fills else {}
    return {
        "checkpoint": str(find_checkpoint(folder)),
        "resumed": start not in (None, (0, 0)),
        "already_trained": start is None,
        "steps": history[-1]["steps"] if history else 0,
        "loss": history[-1]["loss"] if history else None,
        **validation,
        **vectors,
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def show_step(bars: ProgressBars, report: "StepReport") -> None:
    """Update the bar of the phase, or print a line without a terminal."""
    row, name = report.row, f"phase {report.phase + 1} of {report.num_phases}"
    if row is None:
        bars.show(name, report.step, report.total_steps)
        return
    losses = "".join(f"  {key} {loss:.4f}" for key, loss in row.get("losses", {}).items())
    metrics = [f"{key} {format_metric(key, value)}" for key, value in row.get("figures", {}).items()]
    if not metrics and row["validation"] is not None:
        metrics = [f"error {format_percent(row['validation'])}"]
    validation = f"  validation {', '.join(metrics)}" if metrics else ""
    line = f"{name}  step {report.step} of {report.total_steps}  loss {row['loss']:.4f}{losses}{validation}"
    bars.show(name, report.step, report.total_steps, ", ".join([f"loss {row['loss']:.3f}", *metrics[:1]]))
    bars.print_line(f"{line}  {row['seconds']:.1f} s")


def print_report(report: dict[str, Any], next_commands: list[str]) -> None:
    """Print the result and suggest the next commands."""
    if report["already_trained"]:
        print_text("this run was already trained; --fresh trains it again")
    print_text(f"checkpoint        {report['checkpoint']}")
    if "figures" in report:
        metrics = ", ".join(f"{name} {format_metric(name, value)}" for name, value in report["figures"].items())
        print_text(f"validation        {metrics}")
    else:
        print_text(f"validation error  {format_percent(report['validation_error'])}")
    print_text(f"trained           {report['steps']} steps, {format_duration(report['seconds'])}")
    print_text("\nnext:")
    for command in next_commands:
        print_text(f"  mnemic {command}")
