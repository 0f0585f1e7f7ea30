"""The folder layout of the official bAbI files: which file holds which task and split."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from mnemic.data.babi.format import Example, StoryError, examples, read

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

Split: TypeAlias = Literal["train", "test"]
Size: TypeAlias = Literal["1k", "10k"]

SPLITS: tuple[Split, ...] = ("train", "test")
SIZES: dict[Size, str] = {"1k": "en", "10k": "en-10k"}  # size -> name of the official folder
GENERATE = "`mnemic data stories --task {task} --out DIR` makes generated ones"


def file_name(task: int, split: Split) -> str:
    """The official name of a task's file, such as qa1_single-supporting-fact_train.txt."""
    if task not in TASKS:
        raise StoryError(f"there is no task {task}; the tasks are 1 to {max(TASKS)}")
    if split not in SPLITS:
        raise StoryError(f"there is no split {split!r}; the splits are {', '.join(SPLITS)}")
    return f"qa{task}_{TASKS[task]}_{split}.txt"


def path_of(folder: Path, task: int, split: Split) -> Path:
    """Where a task's file is; a StoryError that says what was looked for if it is not there."""
    path = folder / file_name(task, split)
    if not path.is_file():
        missing = "file" if folder.is_dir() else "folder"
        raise StoryError(
            f"no {missing} {path if folder.is_dir() else folder}; looked for {path.name}, "
            f"as in the official bAbI v1.2 folder; {GENERATE.format(task=task)}"
        )
    return path


def load(folder: Path, task: int, split: Split) -> list[Example]:
    """Read all questions of a task, each with the sentences before it."""
    stories = read(path_of(folder, task, split))
    return [example for story in stories for example in examples(story, task)]


def folder_of(root: Path, size: Size) -> Path:
    """Find the folder with the stories of a size below ``root``, or ``root`` if it holds stories.

    A folder that holds the files directly is taken as it is, whatever its size.
    """
    if size not in SIZES:
        raise StoryError(f"there is no size {size!r}; the sizes are {', '.join(SIZES)}")
    looked = list(places(root, SIZES[size]))
    for folder in looked:
        if any(folder.glob("qa*_*.txt")):
            return folder
    raise StoryError(
        f"no story files (qa1_{TASKS[1]}_train.txt and so on) in {', '.join(map(str, looked))}; "
        f"unpack the official bAbI v1.2 files there, say where they are with --data DIR, or "
        f"{GENERATE.format(task='N')}"
    )


def places(root: Path, name: str) -> Iterator[Path]:
    """The folders in which stories may lie, in the order in which they are tried."""
    yield root / name
    yield root / "tasks_1-20_v1-2" / name
    yield root
