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
from mnemic.data.contract import Part
from mnemic.data.text_tasks.examples import Asked
from mnemic.data.text_tasks.retrieval import ArticleFiles
from mnemic.recipe import build

PARTS: dict[str, Part] = {"train": "train", "held": "validation", "dev": "test"}


class Squad(NamedTuple):
    """The articles of each part; an article is its questions with their paragraphs."""

    parts: dict[str, list[list[Asked]]]

    def sample(self, part: str, count: int) -> list[Asked]:
        """That many questions of a part, by dice that always fall alike."""
        every = [one for article in self.parts[part] for one in article]
        return random.Random(0).sample(every, min(count, len(every)))


def read(folder: Path) -> Squad:
    """train-v1.1.json.gz and dev-v1.1.json.gz of a folder, parted as for the shipped reader."""
    recipe = read_json(WEIGHTS / "reader" / "recipe.json")["recipe"]
    files = build(DATASETS, recipe["data"] | {"folder": str(folder)})
    assert isinstance(files, ArticleFiles)
    return Squad({name: files.told(part) for name, part in PARTS.items()})


def fill(memory: Memory, squad: Squad, parts: Iterable[str] = PARTS) -> None:
    """Remember every paragraph, a record each, of one file an article beside the memory."""
    folder = files_of(memory)
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for part, articles in squad.parts.items():
            for number, article in enumerate(articles):
                texts = dict.fromkeys(one.text for one in article)
                lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
                (folder / f"{part}-{number:03}.jsonl").write_text(lines, encoding="utf-8")
    began = time.perf_counter()
    files = [path for part in parts for path in sorted(folder.glob(f"{part}-*.jsonl"))]
    added = sum(step.passages for step in memory.remember(*files))
    spent = time.perf_counter() - began
    if added:
        rate = memory.stats().sentences / spent
        print(f"remembered: {added} passages in {spent:.0f} s, {rate:.0f} sentences/s", flush=True)


def files_of(memory: Memory) -> Path:
    """Where the files of a memory's articles are: beside it, or here if it lies on a server."""
    own = memory.path if isinstance(memory.path, Path) else Path("squad")
    return own.with_suffix(".articles")


def flat(text: str) -> str:
    return " ".join(text.split())


def forgetful(path: Path, part: str) -> Memory:
    """A copy of a memory that has forgotten all articles of a part; made once, beside it."""
    copy = path.with_name(f"{path.stem}-without-{part}.db")
    if not copy.exists():
        beside = path.with_name(f".{copy.name}")
        shutil.copy(path, beside)
        with Memory(beside) as memory:
            memory.forget(*sorted(files_of(Memory(path)).glob(f"{part}-*.jsonl")))
        beside.replace(copy)
    return Memory(copy)
