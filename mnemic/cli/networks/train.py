"""``mnemic train``: from a recipe to a checkpoint, with a bar a phase."""

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mnemic.cli.options import AsJson, Data, Device, Fresh, Seed, Sets, device_of
from mnemic.cli.render.console import duration, figure, out, percent, print_json, say
from mnemic.cli.render.progress import Bars
from mnemic.train.interrupt import patient

FROM_FILES = {  # kind of data → what its files hold, and what can be used in their place
    "stories": ("story", "generated stories with --set data.kind=generated"),
    "knowledge": ("knowledge", "a generated base with --set data.kind=generated-knowledge"),
    "classes": ("text", "your own .tsv or .jsonl files"),
    "pairs": ("text", "your own .tsv or .jsonl files"),
    "spans": ("SQuAD", "your own of the same form"),
    "reading": ("SQuAD", "your own of the same form"),
    "tags": ("CoNLL", "your own of the same form"),
    "corpus": ("plain text", "a folder that mnemic data sequences made"),
    "words": ("text", "your own .jsonl or .txt files"),
    "sequences": ("text", "dates that are made with --set data.kind=dates"),
}


def train(
    recipe: Annotated[str, typer.Argument(help="A name from mnemic recipes, or a .toml file.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where the run goes.", show_default="runs/RECIPE"
        ),
    ] = None,
    data: Data = None,
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Begin with this encoder: a run, a Hugging Face folder, or reader, which ships.",
        ),
    ] = None,
    sets: Sets = None,
    seed: Seed = 0,
    device: Device = "auto",
    fresh: Fresh = False,
    as_json: AsJson = False,
) -> None:
    """Train a network; a run that was stopped goes on by itself when the command is repeated.

    Example: mnemic train memn2n --data babi --set data.tasks=[1] --out runs/task1

    Without data files: mnemic train memn2n --set data.kind=generated --set data.tasks=[1]

    From a pre-trained BERT: mnemic train bert-pairs --data RTE --start BERT --set train.rate=5e-5
    """
    from mnemic.recipe import load
    from mnemic.train.initialize import with_start

    change = None if start is None else partial(with_start, folder=start.expanduser())
    whole = with_folder(load(recipe, sets or [], change=change), data)
    place = folder or Path("runs") / Path(recipe).stem
    found = follow(whole, place, seed=seed, device=device, fresh=fresh)
    report = {"recipe": recipe, "seed": seed, "out": str(place)} | found
    if as_json:
        print_json(report)
    else:
        tell(report, whole["data"].get("kind", ""))


def with_folder(recipe: dict[str, Any], data: str | None) -> dict[str, Any]:
    """The recipe with the data's folder in it; one that needs a folder and has none is refused."""
    from mnemic.recipe import ConfigError, override

    if data is not None:
        return override(recipe, "data.folder", data)
    own = recipe.get("data", {})
    if own.get("kind") in FROM_FILES and "folder" not in own:
        files, instead = FROM_FILES[own["kind"]]
        raise ConfigError(
            f"this recipe learns from {files} files: give their folder with --data DIR, or use "
            f"{instead}"
        )
    return recipe


def follow(
    recipe: dict[str, Any], folder: Path, *, seed: int, device: str, fresh: bool
) -> dict[str, Any]:
    """Train and show how far it is; Ctrl-C saves between two steps."""
    from mnemic.checkpoint.atomic_files import read_json
    from mnemic.checkpoint.folder import PROGRESS, locate
    from mnemic.train.run import fit

    going = False
    began_at: tuple[int, int] | None = None
    with patient() as stopped, Bars("steps") as bars:
        steps = fit(
            recipe, folder, seed=seed, device=device_of(device), fresh=fresh, looking=bars.looking
        )
        for report in steps:
            if began_at is None:
                began_at = (report.phase, report.step - 1)
                going = began_at != (0, 0)
                if going:
                    say(f"going on with {folder}: phase {report.phase + 1}, step {report.step - 1}")
            show(bars, report)
            if stopped():
                steps.close()
                where = f"phase {report.phase + 1} of {report.phases}, step {report.step}"
                raise KeyboardInterrupt(f"stopped at {where}, and saved")
    history = read_json(locate(folder) / PROGRESS)["history"]
    looks = [row["validation"] for row in history if row["validation"] is not None]
    held: dict[str, Any] = {"validation_error": looks[-1] if looks else None}
    if any("figures" in row for row in history):
        held = {"figures": best_of(history)}
    return {
        "checkpoint": str(locate(folder)),
        "resumed": going,
        "already_trained": began_at is None,
        "steps": history[-1]["steps"] if history else 0,
        "loss": history[-1]["loss"] if history else None,
        **held,
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def best_of(history: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of the best look at the validation set; of equally good ones the last."""
    looks = [row for row in history if "figures" in row]
    return min(reversed(looks), key=lambda row: row["validation"])["figures"]


def show(bars: Bars, report: Any) -> None:
    """Move the phase's bar; where there is none, a line whenever validation was looked at."""
    row, name = report.row, f"phase {report.phase + 1} of {report.phases}"
    if row is None:
        bars.show(name, report.step, report.total)
        return
    held, last = row["validation"], report.step == report.total
    brief = f"loss {row['loss']:.3f}" + ("" if held is None else f", error {percent(held)}")
    said = f"validation error {percent(held)}"
    if "figures" in row:
        first, value = next(iter(row["figures"].items()))
        said = f"validation {first} {figure(first, value)}"
        brief = f"loss {row['loss']:.3f}, {first} {figure(first, value)}"
    if last or held is not None:
        bars.show(name, report.step, report.total, brief)
        line = f"{name}  step {report.step} of {report.total}  loss {row['loss']:.4f}"
        bars.line(line + ("" if held is None else f"  {said}"))


def tell(report: dict[str, Any], kind: str) -> None:
    """What came out, and what to type next."""
    from mnemic.data import LONG

    screen, place = out(), shlex.quote(report["out"])
    if report["already_trained"]:
        screen.print("this run was already trained; --fresh trains it anew")
    screen.print(f"checkpoint        {report['checkpoint']}", markup=False, soft_wrap=True)
    if "figures" in report:
        told = ", ".join(f"{name} {figure(name, own)}" for name, own in report["figures"].items())
        screen.print(f"validation        {told}")
    else:
        screen.print(f"validation error  {percent(report['validation_error'])}")
    screen.print(f"trained           {report['steps']} steps, {duration(report['seconds'])}")
    screen.print("\nnext:", style="dim")
    ask = f'ask --model {place} --story FILE "Where is Mary?"'
    lines = [f"evaluate --model {place}"]
    lines += [f"read --model {place} FILE" if "figures" in report else ask]
    if kind.endswith("knowledge"):
        lines[1] = f'ask --model {place} "who directed [NAME OF A FILM]"'
    if kind == "pairs":
        lines[1] = f"read --model {place} FILE.jsonl"
    if kind in ("spans", "reading"):
        lines[1] = f'read --model {place} --question "Who …?" FILE'
    if kind in LONG:
        lines[1:] = [f"read --model {place} --state notes.mem FILE"]
        lines += ['ask --state notes.mem "Where is Mary?"']
    if kind == "documents":  # which are asked for words, not questions
        lines = lines[:1]
    if kind == "corpus":
        tune = f"train bert-classes --start {place} --data DIR"
        lines = [tune, f"export {place} FOLDER"]
    for line in lines:
        screen.print(f"  mnemic {line}", markup=False, soft_wrap=True)
