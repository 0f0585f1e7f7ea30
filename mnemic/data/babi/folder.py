"""The folder layout of the official bAbI files: which file holds which task and split."""

from pathlib import Path
from typing import Literal, TypeAlias

from mnemic.data.babi.format import StoryError, StoryExample, extract_examples, read_stories

TASK_NAMES = (
    "single-supporting-fact", "two-supporting-facts", "three-supporting-facts", "two-arg-relations",
    "three-arg-relations", "yes-no-questions", "counting", "lists-sets", "simple-negation",
    "indefinite-knowledge", "basic-coreference", "conjunction", "compound-coreference", "time-reasoning",
    "basic-deduction", "basic-induction", "positional-reasoning", "size-reasoning", "path-finding",
    "agents-motivations",
)  # fmt: skip
TASKS: dict[int, str] = dict(enumerate(TASK_NAMES, start=1))

FileSplit: TypeAlias = Literal["train", "test"]
Size: TypeAlias = Literal["1k", "10k"]

FILE_SPLITS: tuple[FileSplit, ...] = ("train", "test")
SIZES: dict[Size, str] = {"1k": "en", "10k": "en-10k"}  # size -> name of the official folder
GENERATE_HINT = "`mnemic data stories --task {task} --out DIR` makes generated ones"


def file_name_of(task: int, split: FileSplit) -> str:
    """Return the official file name of a task, such as qa1_single-supporting-fact_train.txt."""
    if task not in TASKS:
        raise StoryError(f"there is no task {task}; the tasks are 1 to {max(TASKS)}")
    if split not in FILE_SPLITS:
        raise StoryError(f"there is no split {split!r}; the splits are {', '.join(FILE_SPLITS)}")
    return f"qa{task}_{TASKS[task]}_{split}.txt"


def find_task_file(folder: Path, task: int, split: FileSplit) -> Path:
    """Return the path of a task's file; raise a StoryError if there is none."""
    path = folder / file_name_of(task, split)
    if not path.is_file():
        missing = "file" if folder.is_dir() else "folder"
        raise StoryError(
            f"no {missing} {path if folder.is_dir() else folder}; looked for {path.name}, "
            f"as in the official bAbI v1.2 folder; {GENERATE_HINT.format(task=task)}"
        )
    return path


def load_task(folder: Path, task: int, split: FileSplit) -> list[StoryExample]:
    """Load all questions of a task, each with the sentences before it."""
    stories = read_stories(find_task_file(folder, task, split))
    return [example for story in stories for example in extract_examples(story, task)]


def find_story_folder(root: Path, size: Size) -> Path:
    """Find the folder of a dataset size below ``root``.

    A ``root`` that holds the files directly is used as it is, whatever the size.
    """
    if size not in SIZES:
        raise StoryError(f"there is no size {size!r}; the sizes are {', '.join(SIZES)}")
    candidates = [root / SIZES[size], root / "tasks_1-20_v1-2" / SIZES[size], root]
    for folder in candidates:
        if any(folder.glob("qa*_*.txt")):
            return folder
    raise StoryError(
        f"no story files (qa1_{TASKS[1]}_train.txt and so on) in "
        f"{', '.join(map(str, candidates))}; unpack the official bAbI v1.2 files there, say where "
        f"they are with --data DIR, or {GENERATE_HINT.format(task='N')}"
    )
