"""SQuAD's paragraphs in a persistent memory, one document per article, for benchmarks.

It has three splits: ``train``, on which the shipped reader was trained; ``held``, articles of the
train file that its training held out, to choose and fit constants; ``dev``, to measure metrics.
"""

import json
import random
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mnemic import Memory
from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.data import DATASETS
from mnemic.data.contract import Split
from mnemic.data.text_tasks.examples import QuestionExample
from mnemic.data.text_tasks.questions import QuestionArticles
from mnemic.files import read_json
from mnemic.recipe import build

SPLITS: dict[str, Split] = {"train": "train", "held": "validation", "dev": "test"}


class Squad(NamedTuple):
    """The articles of each split; an article is its questions with their paragraphs."""

    splits: dict[str, list[list[QuestionExample]]]

    def sample(self, split: str, count: int) -> list[QuestionExample]:
        """Sample up to ``count`` questions of a split with a fixed seed."""
        questions = [question for article in self.splits[split] for question in article]
        return random.Random(0).sample(questions, min(count, len(questions)))


def read_squad(folder: Path) -> Squad:
    """Read SQuAD's train and dev files, split as for the shipped readers.

    The questions that those were trained on decide the split: the folder of ``folder`` has ``qa``.
    """
    recipe = read_json(WEIGHTS / "reader" / "recipe.json")["recipe"]
    files = build(DATASETS, recipe["data"] | {"folder": str(folder.resolve().parent)})
    assert isinstance(files, QuestionArticles)
    articles = {
        name: [article.examples for article in files.articles_by_split[split] if "squad/" in article.source.path]
        for name, split in SPLITS.items()
    }
    return Squad(articles)


def fill_memory(memory: Memory, squad: Squad, splits: Iterable[str] = SPLITS) -> None:
    """Remember every paragraph as a record, from one file per article next to the memory."""
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
    """Return the folder of a memory's article files, next to it or in this folder."""
    path = memory.path if isinstance(memory.path, Path) else Path("squad")
    return path.with_suffix(".articles")


def normalize_spaces(text: str) -> str:
    """Replace all whitespace by single spaces."""
    return " ".join(text.split())


def copy_without_split(path: Path, split: str) -> Memory:
    """Open a copy of a memory without one split; make it once, next to it."""
    copy = path.with_name(f"{path.stem}-without-{split}.db")
    if not copy.exists():
        temporary = path.with_name(f".{copy.name}")
        shutil.copy(path, temporary)
        with Memory(temporary) as memory:
            memory.forget(*sorted(article_folder_of(Memory(path)).glob(f"{split}-*.jsonl")))
        temporary.replace(copy)
    return Memory(copy)
