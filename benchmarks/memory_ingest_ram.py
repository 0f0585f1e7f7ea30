"""Measure RAM and speed of remembering many megabytes of text.

    python benchmarks/memory_ingest_ram.py TEXTS FOLDER [--megabytes 50] [--file 20]
        [--embedder none]

TEXTS is a file of JSON lines with ``text`` (.jsonl or .jsonl.xz). They are written to FOLDER as
files of --file megabytes; once all texts are used they are repeated with a number before each line,
so that no two files are the same. Then all files are remembered, and lines of JSON report the peak
resident memory of this process and of the one that parses.
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


def repeat_lines(texts: Path) -> Iterator[str]:
    """Yield the lines of all texts endlessly; repetitions have a number before each line."""
    for repetition in count():
        open_file = lzma.open if texts.suffix == ".xz" else open
        with open_file(texts, "rt", encoding="utf-8") as file:
            for line in file:
                for text_line in json.loads(line)["text"].splitlines():
                    yield f"{repetition}: {text_line}\n" if repetition and text_line else f"{text_line}\n"


def write_files(texts: Path, folder: Path, total_bytes: int, file_bytes: int) -> None:
    """Write text files of ``file_bytes`` bytes each, ``total_bytes`` in total."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = repeat_lines(texts)
    for number in range(-(-total_bytes // file_bytes)):
        path, num_remaining = folder / f"{number:04}.txt", min(file_bytes, total_bytes - number * file_bytes)
        with path.open("w", encoding="utf-8") as file:
            while num_remaining > 0:
                line = next(lines)
                file.write(line)
                num_remaining -= len(line.encode())


def measure_resident_mb(process: str | int = "self") -> float:
    """Return the resident megabytes of a process and its children."""
    kilobytes = 0.0
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            kilobytes = float(line.split()[1])
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = " ".join(path.read_text(encoding="utf-8") for path in tasks).split()
    return kilobytes / 1000 + sum(measure_resident_mb(int(child)) for child in children)


def print_progress(megabytes: float, seconds: float, max_resident_mb: float) -> None:
    """Print speed and peak memory as JSON."""
    progress = {
        "megabytes": round(megabytes),
        "seconds": round(seconds),
        "megabytes a second": round(megabytes / seconds, 2),
        "most resident": round(max_resident_mb),
    }
    print(json.dumps(progress), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--file", type=int, default=20)
    parser.add_argument("--embedder", default="none")
    args = parser.parse_args()
    texts, memory_path = args.folder / "texts", args.folder / "memory.db"
    write_files(args.texts, texts, args.megabytes * MEGABYTE, args.file * MEGABYTE)
    for old in args.folder.glob("memory.db*"):
        old.unlink()
    started, last_measured, max_resident_mb, tenth = time.perf_counter(), 0.0, 0.0, 1
    with Memory(memory_path, embedder=args.embedder) as lasting:
        for step in lasting.remembering([texts]):
            if time.perf_counter() - last_measured > 0.2:
                last_measured, max_resident_mb = time.perf_counter(), max(max_resident_mb, measure_resident_mb())
            if step.done >= step.total * tenth / 10:
                print_progress(step.done / MEGABYTE, time.perf_counter() - started, max_resident_mb)
                max_resident_mb, tenth = 0.0, tenth + 1
        print_progress(
            step.total / MEGABYTE, time.perf_counter() - started, max(max_resident_mb, measure_resident_mb())
        )
        counts = lasting.stats()
    size = memory_path.stat().st_size / MEGABYTE
    print(json.dumps({"passages": counts.passages, "sentences": counts.sentences, "file": round(size)}))


if __name__ == "__main__":
    main()
