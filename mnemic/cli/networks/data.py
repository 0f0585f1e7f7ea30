"""``mnemic data``: generate bAbI stories and prepare sequences for pre-training."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from mnemic.cli.options import JsonOption, SeedOption, SetOption, parse_task_numbers
from mnemic.cli.render.console import format_bytes, get_stdout, print_json
from mnemic.cli.render.progress import ProgressBars

if TYPE_CHECKING:
    from mnemic.data.babi.format import Story

STORIES_PER_UPDATE = 100  # of the progress bar

app = typer.Typer(help="Generate or prepare training and test data.", rich_markup_mode="rich")


class StorySplit(StrEnum):
    """The two files of a bAbI task."""

    train = "train"
    test = "test"


@app.command()
def stories(
    task: Annotated[list[str], typer.Option("--task", help="A task, such as 3, 1-5 or all; may be repeated.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files.")],
    count: Annotated[int, typer.Option("--count", help="Questions per task.")] = 1000,
    split: Annotated[StorySplit, typer.Option(help="Test files use the seed after --seed.")] = StorySplit.train,
    seed: SeedOption = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Generate stories as files in the official bAbI layout (qa3_…_train.txt).

    Example: mnemic data stories --task 3 --count 10000 --out generated
    """
    from mnemic.data.babi.folder import TASKS, file_name_of
    from mnemic.recipe import ConfigError

    task_ids = parse_task_numbers(task, sorted(TASKS))
    paths = {number: folder / file_name_of(number, split.value) for number in task_ids}
    existing_paths = [str(path) for path in paths.values() if path.exists()]
    if existing_paths and not force:
        raise ConfigError(f"{existing_paths[0]} is there already; give another --out, or --force")
    story_seed = seed + (split is StorySplit.test)  # test stories differ from training stories
    files = write_story_files(paths, count, story_seed)
    if as_json:
        print_json({"out": str(folder), "split": split.value, "seed": seed, "files": files})
        return
    for file in files:
        text = f"{file['path']}  {file['questions']} questions in {file['stories']} stories"
        get_stdout().print(text, markup=False, soft_wrap=True)


def write_story_files(paths: dict[int, Path], count: int, seed: int) -> list[dict[str, Any]]:
    """Write one file of generated stories per task, all or none.

    They are written under temporary names and renamed at the end.
    """
    temporary_paths = {path: path.with_name(f".{path.name}.new") for path in paths.values()}
    try:
        with ProgressBars("questions") as bars:
            files = [
                {"path": str(path), "task": task, **write_story_file(temporary_paths[path], task, count, seed, bars)}
                for task, path in paths.items()
            ]
        for path, temporary_path in temporary_paths.items():
            os.replace(temporary_path, path)
    finally:
        for temporary_path in temporary_paths.values():
            temporary_path.unlink(missing_ok=True)
    return files


def write_story_file(path: Path, task: int, count: int, seed: int, bars: ProgressBars) -> dict[str, int]:
    """Write one file of generated stories; count its questions and stories."""
    from mnemic.data.babi.format import StoryQuestion, format_story
    from mnemic.data.babi.generate import generate_stories

    stories = generate_stories(task, count, seed=seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    num_questions = num_stories = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for num_stories, story in enumerate(stories, start=1):
            file.write(format_story(story))
            num_questions += sum(isinstance(line, StoryQuestion) for line in story)
            if num_stories % STORIES_PER_UPDATE == 0 or num_questions == count:
                bars.show(f"task {task}", num_questions, count)
    return {"questions": num_questions, "stories": num_stories}


@app.command()
def sequences(
    recipe: Annotated[str, typer.Argument(help="A pre-training recipe or a .toml file.")],
    texts: Annotated[str, typer.Option("--data", metavar="DIR", help="Folder of .jsonl or .txt files.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the sequences.")],
    sets: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn a vocabulary and prepare the pre-training sequences once for many runs.

    mnemic train RECIPE --data accepts the folder in place of the texts, also on other machines.

    Example: mnemic data sequences bert-pretrain --data texts --out sequences
    """
    from mnemic.recipe import load_recipe
    from mnemic.train.prepare import prepare_sequences

    report = prepare_sequences(load_recipe(recipe, [*(sets or []), f"data.folder={texts}"]), folder)
    if as_json:
        print_json(report)
        return
    for split, count in report["sequences"].items():
        text = f"{split:<10}  {count:>11,} sequences  {report['tokens'][split]:>13,} tokens"
        get_stdout().print(text, markup=False)
    vocab_size, total_size = report["vocabulary"], format_bytes(report["bytes"])
    get_stdout().print(f"{folder}  {vocab_size:,} pieces, {total_size}", markup=False, soft_wrap=True)


@app.command()
def show(
    task: Annotated[int, typer.Option("--task", help="Task number, 1 to 20.")],
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Print one generated story with its questions, answers and supporting facts.

    Example: mnemic data show --task 3
    """
    from mnemic.data.babi.folder import TASKS
    from mnemic.data.babi.generate import generate_stories

    story = next(generate_stories(task, 1000, seed=seed))
    if as_json:
        print_json({"task": task, "name": TASKS[task], "story": [line._asdict() for line in story]})
        return
    get_stdout().print(f"task {task}: {TASKS[task]}", style="bold")
    for line in highlight_story(story):
        get_stdout().print(line)


def highlight_story(story: "Story") -> list[Text]:
    """Format a story with highlighted questions, answers and supporting facts."""
    from mnemic.data.babi.format import StoryQuestion

    texts = []
    for line in story:
        text = Text(f"{line.number:>3}  ", style="dim").append(line.text.strip(), style="not dim")
        if isinstance(line, StoryQuestion):
            text.stylize("italic", 5)
            text.append(f"  {line.answer}", style="not dim bold green")
            text.append(f"  (facts {', '.join(map(str, line.facts))})")
        texts.append(text)
    return texts
