"""The folder layout of the official bAbI files: which file holds which task and split."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from mnemic.data.babi.format import StoryError, StoryExample, extract_examples, read_stories

TASKS: dict[int, str] = {
    1: "single-supporting-fact",
    2: "two-supporting-facts",
    3: "three-supporting-facts",
    4: "two-arg-relations",
    5: "three-arg-relations",
    6: "yes-no-questions",
    7: "counting",
    8: "lists-sets",
    9: "simple-negation",
    10: "indefinite-knowledge",
    11: "basic-coreference",
    12: "conjunction",
    13: "compound-coreference",
    14: "time-reasoning",
    15: "basic-deduction",
    16: "basic-induction",
    17: "positional-reasoning",
    18: "size-reasoning",
    19: "path-finding",
    20: "agents-motivations",
}

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
    candidates = list(list_candidate_folders(root, SIZES[size]))
    for folder in candidates:
        if any(folder.glob("qa*_*.txt")):
            return folder
    raise StoryError(
        f"no story files (qa1_{TASKS[1]}_train.txt and so on) in "
        f"{', '.join(map(str, candidates))}; unpack the official bAbI v1.2 files there, say where "
        f"they are with --data DIR, or {GENERATE_HINT.format(task='N')}"
    )


def list_candidate_folders(root: Path, size_folder: str) -> Iterator[Path]:
    """Yield the folders that may hold stories, in the order of search."""
    yield root / size_folder
    yield root / "tasks_1-20_v1-2" / size_folder
    yield root
