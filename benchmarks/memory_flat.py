"""How much working memory remembering takes while megabytes of text go by, and how fast they do.

    python benchmarks/memory_flat.py TEXTS FOLDER [--megabytes 50] [--file 20] [--embedder none]

TEXTS is a file of JSON lines with ``text`` (.jsonl or .jsonl.xz). FOLDER gets text files of --file
megabytes made of them, as many as it takes; once all texts are used they come again with a number
before each line, so that no two files are the same. Then everything is remembered, and lines of
JSON say how much of this process and of the one that parses was resident by then, at most.
"""

import argparse
import json
import lzma
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from mnemic import Memory

MEGABYTE = 1_000_000


def lines_of(texts: Path) -> Iterator[str]:
    """Lines of all texts, for ever; from the second time on each has a number before it."""
    for again in count():
        opened = lzma.open if texts.suffix == ".xz" else open
        with opened(texts, "rt", encoding="utf-8") as file:
            for line in file:
                for own in json.loads(line)["text"].splitlines():
                    yield f"{again}: {own}\n" if again and own else f"{own}\n"


def written(texts: Path, folder: Path, total: int, size: int) -> None:
    """Files of ``size`` bytes, ``total`` in all; those that are there are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = lines_of(texts)
    for number in range(-(-total // size)):
        path, room = folder / f"{number:04}.txt", min(size, total - number * size)
        with path.open("w", encoding="utf-8") as file:
            while room > 0:
                line = next(lines)
                file.write(line)
                room -= len(line.encode())


def resident(process: str | int = "self") -> float:
    """Megabytes of a process and of its children that are in memory now."""
    kilobytes = 0.0
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            kilobytes = float(line.split()[1])
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = " ".join(path.read_text(encoding="utf-8") for path in tasks).split()
    return kilobytes / 1000 + sum(resident(int(child)) for child in children)


def tell(megabytes: float, seconds: float, most: float) -> None:
    told = {
        "megabytes": round(megabytes),
        "seconds": round(seconds),
        "megabytes a second": round(megabytes / seconds, 2),
        "most resident": round(most),
    }
    print(json.dumps(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--file", type=int, default=20)
    parser.add_argument("--embedder", default="none")
    given = parser.parse_args()
    texts, memory = given.folder / "texts", given.folder / "memory.db"
    written(given.texts, texts, given.megabytes * MEGABYTE, given.file * MEGABYTE)
    for old in given.folder.glob("memory.db*"):
        old.unlink()
    began, looked, most, tenth = time.perf_counter(), 0.0, 0.0, 1
    with Memory(memory, embedder=given.embedder) as lasting:
        for step in lasting.remembering([texts]):
            if time.perf_counter() - looked > 0.2:
                looked, most = time.perf_counter(), max(most, resident())
            if step.done >= step.total * tenth / 10:
                tell(step.done / MEGABYTE, time.perf_counter() - began, most)
                most, tenth = 0.0, tenth + 1
        tell(step.total / MEGABYTE, time.perf_counter() - began, max(most, resident()))
        counts = lasting.stats()
    size = memory.stat().st_size / MEGABYTE
    print(
        json.dumps(
            {"passages": counts.passages, "sentences": counts.sentences, "file": round(size)}
        )
    )


if __name__ == "__main__":
    main()
