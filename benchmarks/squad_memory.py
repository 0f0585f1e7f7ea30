"""SQuAD's paragraphs as a lasting memory, one document an article, for the benchmarks beside this.

Three parts of it: ``train``, on which the shipped reader was trained; ``held``, articles of the
train file that its training held back, where constants are chosen and fitted; ``dev``, where
figures are measured and nothing is chosen.
"""

import json
import random
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mnemic import Memory
from mnemic.checkpoint.atomic_files import read_json
from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.data import DATASETS
from mnemic.data.contract import Split
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.data.text_tasks.retrieval import ArticleFiles
from mnemic.recipe import build

SPLITS: dict[str, Split] = {"train": "train", "held": "validation", "dev": "test"}


class Squad(NamedTuple):
    """The articles of each part; an article is its questions with their paragraphs."""

    splits: dict[str, list[list[QuestionExample]]]

    def sample(self, split: str, count: int) -> list[QuestionExample]:
        """That many questions of a part, by dice that always fall alike."""
        questions = [question for article in self.splits[split] for question in article]
        return random.Random(0).sample(questions, min(count, len(questions)))


def read_squad(folder: Path) -> Squad:
    """train-v1.1.json.gz and dev-v1.1.json.gz of a folder, parted as for the shipped reader."""
    recipe = read_json(WEIGHTS / "reader" / "recipe.json")["recipe"]
    files = build(DATASETS, recipe["data"] | {"folder": str(folder)})
    assert isinstance(files, ArticleFiles)
    return Squad({name: files.read_split(split) for name, split in SPLITS.items()})


def fill_memory(memory: Memory, squad: Squad, splits: Iterable[str] = SPLITS) -> None:
    """Remember every paragraph, a record each, of one file an article beside the memory."""
    folder = article_folder_of(memory)
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for split, articles in squad.splits.items():
            for number, article in enumerate(articles):
                texts = dict.fromkeys(question.text for question in article)
                lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
                (folder / f"{split}-{number:03}.jsonl").write_text(lines, encoding="utf-8")
    started = time.perf_counter()
    files = [path for split in splits for path in sorted(folder.glob(f"{split}-*.jsonl"))]
    num_passages = sum(step.passages for step in memory.remember(*files))
    seconds = time.perf_counter() - started
    if num_passages:
        rate = memory.stats().sentences / seconds
        print(f"remembered: {num_passages} passages in {seconds:.0f} s, {rate:.0f} sentences/s", flush=True)


def article_folder_of(memory: Memory) -> Path:
    """Where the files of a memory's articles are: beside it, or here if it lies on a server."""
    path = memory.path if isinstance(memory.path, Path) else Path("squad")
    return path.with_suffix(".articles")


def normalize_spaces(text: str) -> str:
    return " ".join(text.split())


def copy_without_split(path: Path, split: str) -> Memory:
    """A copy of a memory that has forgotten all articles of a part; made once, beside it."""
    copy = path.with_name(f"{path.stem}-without-{split}.db")
    if not copy.exists():
        temporary = path.with_name(f".{copy.name}")
        shutil.copy(path, temporary)
        with Memory(temporary) as memory:
            memory.forget(*sorted(article_folder_of(Memory(path)).glob(f"{split}-*.jsonl")))
        temporary.replace(copy)
    return Memory(copy)
