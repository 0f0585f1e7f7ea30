"""``mnemic data``: stories made to order, and the sequences that pre-training reads."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from mnemic.cli.options import AsJson, Seed, Sets, task_numbers
from mnemic.cli.render.console import out, print_json, size
from mnemic.cli.render.progress import Bars

if TYPE_CHECKING:
    from mnemic.data.babi.format import Story

OFTEN = 100  # stories between two moves of the bar

app = typer.Typer(help="Make what networks are trained and tested on.", rich_markup_mode="rich")


class Split(StrEnum):
    """Which of a task's two files."""

    train = "train"
    test = "test"


@app.command()
def stories(
    task: Annotated[
        list[str], typer.Option("--task", help="A task, such as 3, 1-5 or all; may be repeated.")
    ],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the files go.")],
    count: Annotated[int, typer.Option("--count", help="Questions a task.")] = 1000,
    split: Annotated[
        Split, typer.Option(help="Test files use the seed after --seed.")
    ] = Split.train,
    seed: Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write generated stories as files of the official bAbI layout (qa3_…_train.txt).

    Example: mnemic data stories --task 3 --count 10000 --out generated
    """
    from mnemic.data.babi.folder import TASKS, file_name
    from mnemic.recipe import ConfigError

    numbers = task_numbers(task, sorted(TASKS))
    paths = {number: folder / file_name(number, split.value) for number in numbers}
    there = [str(path) for path in paths.values() if path.exists()]
    if there and not force:
        raise ConfigError(f"{there[0]} is there already; give another --out, or --force")
    dice = seed + (split is Split.test)  # so that nobody is tested on what was learnt
    files = write_all(paths, count, dice)
    if as_json:
        print_json({"out": str(folder), "split": split.value, "seed": seed, "files": files})
        return
    for file in files:
        text = f"{file['path']}  {file['questions']} questions in {file['stories']} stories"
        out().print(text, markup=False, soft_wrap=True)


def write_all(paths: dict[int, Path], count: int, seed: int) -> list[dict[str, Any]]:
    """Write every file beside its place, then put all there; whoever stops this changes nothing."""
    beside = {path: path.with_name(f".{path.name}.new") for path in paths.values()}
    try:
        with Bars("questions") as bars:
            files = [
                {"path": str(path), "task": task, **write(beside[path], task, count, seed, bars)}
                for task, path in paths.items()
            ]
        for path, new in beside.items():
            os.replace(new, path)
    finally:
        for new in beside.values():
            new.unlink(missing_ok=True)
    return files


def write(path: Path, task: int, count: int, seed: int, bars: Bars) -> dict[str, int]:
    """Write one file and count what is in it."""
    from mnemic.data.babi.format import Question, render
    from mnemic.data.babi.generate import generate

    made = generate(task, count, seed=seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    asked = told = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for told, story in enumerate(made, start=1):
            file.write(render(story))
            asked += sum(isinstance(line, Question) for line in story)
            if told % OFTEN == 0 or asked == count:
                bars.show(f"task {task}", asked, count)
    return {"questions": asked, "stories": told}


@app.command()
def sequences(
    recipe: Annotated[str, typer.Argument(help="A recipe of pre-training, or a .toml file.")],
    texts: Annotated[
        str, typer.Option("--data", metavar="DIR", help="Folder of .jsonl or .txt files.")
    ],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where they go.")],
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Learn a vocabulary and make the sequences of pre-training, once for any number of runs.

    mnemic train RECIPE --data takes the folder as it takes the texts, on other machines too.

    Example: mnemic data sequences bert-pretrain --data texts --out sequences
    """
    from mnemic.recipe import load
    from mnemic.train.prepare import prepare

    report = prepare(load(recipe, [*(sets or []), f"data.folder={texts}"]), folder)
    if as_json:
        print_json(report)
        return
    for part, count in report["sequences"].items():
        text = f"{part:<10}  {count:>11,} sequences  {report['tokens'][part]:>13,} tokens"
        out().print(text, markup=False)
    words, room = report["vocabulary"], size(report["bytes"])
    out().print(f"{folder}  {words:,} pieces, {room}", markup=False, soft_wrap=True)


@app.command()
def show(
    task: Annotated[int, typer.Option("--task", help="1 to 20.")],
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Print one generated story with its questions, answers and supporting facts.

    Example: mnemic data show --task 3
    """
    from mnemic.data.babi.folder import TASKS
    from mnemic.data.babi.generate import generate

    story = next(generate(task, 1000, seed=seed))
    if as_json:
        print_json({"task": task, "name": TASKS[task], "story": [line._asdict() for line in story]})
        return
    out().print(f"task {task}: {TASKS[task]}", style="bold")
    for line in lines(story):
        out().print(line)


def lines(story: "Story") -> list[Text]:
    """A story for the eye: questions stand out, with answers and the facts that prove them."""
    from mnemic.data.babi.format import Question

    shown = []
    for line in story:
        text = Text(f"{line.number:>3}  ", style="dim").append(line.text.strip(), style="not dim")
        if isinstance(line, Question):
            text.stylize("italic", 5)
            text.append(f"  {line.answer}", style="not dim bold green")
            text.append(f"  (facts {', '.join(map(str, line.facts))})")
        shown.append(text)
    return shown
