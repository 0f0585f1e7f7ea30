"""``mnemic data``: generate bAbI stories and prepare sequences for pre-training."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

from mnemic.cli import options as opt
from mnemic.cli.render.console import print_json, print_text
from mnemic.cli.render.format import format_bytes
from mnemic.cli.render.progress import ProgressBars
from mnemic.files import ANYONE, replace_file
from mnemic.recipe import ConfigError, build, load_recipe, override

if TYPE_CHECKING:
    from mnemic.data.babi.format import Story

STORIES_PER_UPDATE = 100  # of the progress bar
Documents = Annotated[str, opt.Option("--data DIR", "Folder with the documents: .jsonl or .txt files.")]


def generate_story_files(
    task: Annotated[list[str], opt.Option("--task", "A task, such as 3, 1-5 or all; may be repeated.")],
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the files.")],
    count: Annotated[int, opt.Option("--count", "Questions per task.")] = 1000,
    split: Annotated[Literal["train", "test"], opt.Option("--split", "Test files use the next seed.")] = "train",
    seed: opt.Seed = 0,
    force: Annotated[bool, opt.Option("--force", "Replace existing files.")] = False,
) -> None:
    """Generate stories as files in the official bAbI layout (qa3_…_train.txt).

    Example: mnemic data stories --task 3 --count 10000 --out generated
    """
    from mnemic.data.babi.folder import TASKS, file_name_of

    task_ids = opt.parse_task_numbers(task, sorted(TASKS))
    paths = {number: folder / file_name_of(number, split) for number in task_ids}
    existing_paths = [str(path) for path in paths.values() if path.exists()]
    if existing_paths and not force:
        raise ConfigError(f"{existing_paths[0]} is there already; give another --out, or --force")
    story_seed = seed + (split == "test")  # test stories differ from training stories
    files = write_story_files(paths, count, story_seed)
    print_json({"out": str(folder), "split": split, "seed": seed, "files": files})
    for file in files:
        print_text(f"{file['path']}  {file['questions']} questions in {file['stories']} stories")


def write_story_files(paths: dict[int, Path], count: int, seed: int) -> list[dict[str, Any]]:
    """Write one file of generated stories per task, all or none.

    They are written under temporary names and renamed at the end.
    """
    from mnemic.data.babi.generate import generate_stories

    files = []
    with ExitStack() as stack, ProgressBars("questions") as bars:
        for task, path in paths.items():
            stories = generate_stories(task, count, seed=seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(replace_file(path, mode=ANYONE))
            files.append({"path": str(path), "task": task, **write_stories(file, stories, task, count, bars)})
    return files


def write_stories(
    file: BinaryIO, stories: "Iterable[Story]", task: int, count: int, bars: ProgressBars
) -> dict[str, int]:
    """Write generated stories; count their questions and the stories."""
    from mnemic.data.babi.format import StoryQuestion, format_story

    num_questions = num_stories = 0
    for num_stories, story in enumerate(stories, start=1):
        file.write(format_story(story).encode("utf-8"))
        num_questions += sum(isinstance(line, StoryQuestion) for line in story)
        if num_stories % STORIES_PER_UPDATE == 0 or num_questions == count:
            bars.show(f"task {task}", num_questions, count)
    return {"questions": num_questions, "stories": num_stories}


def prepare_pretraining(
    recipe: Annotated[str, opt.Argument("RECIPE", "A pre-training recipe or a .toml file.")],
    texts: Documents,
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the sequences.")],
    sets: opt.Sets = None,
    pack: Annotated[
        bool, opt.Option("--pack", "Compress the sequences, to copy them; DATA may be a folder of sequences.")
    ] = False,
) -> None:
    """Learn a vocabulary and prepare the pre-training sequences once for many runs.

    mnemic train RECIPE --data accepts the folder in place of the texts, also on other machines.
    With --pack it is less than half as large, and is read into memory.

    Example: mnemic data sequences bert-pretrain --data texts --out sequences
    """
    from mnemic.train.prepare import prepare_sequences

    recipe_of_texts = load_recipe(recipe, [*(sets or []), f"data.folder={texts}"])
    with ProgressBars("bytes") as bars:
        report = prepare_sequences(
            recipe_of_texts, folder, pack=pack, on_progress=lambda *bytes_of: bars.show("packing", *bytes_of)
        )
    print_json(report)
    for split, count in report["sequences"].items():
        print_text(f"{split:<10}  {count:>11,} sequences  {report['tokens'][split]:>13,} tokens")
    print_text(f"{folder}  {report['vocabulary']:,} pieces, {format_bytes(report['bytes'])}")


def prepare_words(
    data: Documents,
    folder: Annotated[Path, opt.Option("--out DIR", "Folder for the token ids.")],
    sets: opt.Sets = None,
) -> None:
    """Convert documents to token ids once, for many runs.

    The folder then replaces the documents. --set takes the options of data kind language-modeling;
    mnemic recipes lstm-words lists them.

    Example: mnemic data words --data enwiki --out words --set data.vocab=20000
    """
    from mnemic.data import DATASETS

    recipe = override(load_recipe("rnn-words", sets or []), "data.folder", data)
    report = build(DATASETS, recipe["data"]).save_encoded(folder)
    num_bytes = sum(path.stat().st_size for path in folder.iterdir())
    print_json({"out": str(folder), "bytes": num_bytes} | report)
    for split, count in report["words"].items():
        print_text(f"{split:<12} {count:,} words")
    print_text(f"{folder}  {format_bytes(num_bytes)}, a vocabulary of {report['vocab']:,}")


def generate_scene_file(
    path: Annotated[
        Path, opt.Option("--out FILE", "The .npy file; captions and boxes are in a .jsonl file beside it.")
    ],
    count: Annotated[int, opt.Option("--count", "Pictures.", minimum=1)] = 10,
    split: Annotated[Literal["train", "validation", "test"], opt.Option("--split", "Splits differ.")] = "test",
    seed: opt.Seed = 0,
) -> None:
    """Generate pictures of scenes with captions and boxes.

    Example: mnemic data scenes --out scenes.npy
    """
    from mnemic.data.pictures.files import write_scenes
    from mnemic.data.pictures.scenes import generate_scenes

    if path.suffix != ".npy":
        raise ConfigError(f"--out takes a file that ends in .npy, not {str(path)!r}")
    write_scenes(generate_scenes(split, count, seed=seed), path)
    print_json({"out": str(path), "captions": str(path.with_suffix(".jsonl")), "pictures": count})
    print_text(f"{path}  {count} pictures; {path.with_suffix('.jsonl')}  their captions and boxes")


def show_story(task: Annotated[int, opt.Option("--task", "Task number, 1 to 20.")], seed: opt.Seed = 0) -> None:
    """Print one generated story with its questions, answers and supporting facts.

    Example: mnemic data show --task 3
    """
    from mnemic.data.babi.folder import TASKS
    from mnemic.data.babi.format import StoryQuestion
    from mnemic.data.babi.generate import generate_stories

    story = next(generate_stories(task, 1000, seed=seed))
    print_json({"task": task, "name": TASKS[task], "story": [line._asdict() for line in story]})
    print_text(f"task {task}: {TASKS[task]}", style="bold")
    for line in story:
        answer, style = "", ""
        if isinstance(line, StoryQuestion):
            answer, style = f"  {line.answer}  (facts {', '.join(map(str, line.facts))})", "italic green"
        print_text(f"{line.number:>3}  {line.text.strip()}{answer}", style=style)
