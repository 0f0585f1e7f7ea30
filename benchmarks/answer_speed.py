"""Time whole answers of a large memory, and remembering, by two readers in one run.

    python benchmarks/answer_speed.py fill DATA FOLDER OLD [--passages 100000] [--device cuda]
    OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive taskset -c 0,1 \\
        python benchmarks/answer_speed.py time DATA FOLDER "" OLD [--questions 200] [--rounds 3]

DATA has ``squad`` and ``qa``. A network is the folder of a checkpoint that embeds and reads, such
as that of version 0.2; "" is the default: the shipped embedder and the shipped reader. ``fill``
makes the memory of one network: SQuAD's paragraphs, then the texts of ``qa`` in a fixed random
order, until it has so many passages. ``time`` asks questions of SQuAD's dev file, each of every
network's memory in turn, with the default settings, as ``mnemic ask`` does in an open memory
(retrieve, rerank, read), on the processor; and remembers a text of SQuAD, in turn, --rounds times.
Printed are the median and the 95th percentile of a whole answer, on the clock and of all threads,
the medians of retrieval alone, and the sentences that are remembered per second, in each round.
"""

import argparse
import gzip
import json
import lzma
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from memory_device import open_memory

from mnemic import Memory
from mnemic.checkpoint.shipped import EMBEDDERS, READERS

TEXTS_PER_FILE = 250
SHIPPED = "shipped"
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}  # by suffix


def name_network(network: str) -> str:
    """Name a network's memory and its rows."""
    return Path(network).name if network else SHIPPED


def open_network_memory(folder: Path, network: str, device: str = "cpu") -> Memory:
    """Open the memory of a network, with that network."""
    path = folder / f"{name_network(network)}.db"
    return open_memory(path, device, embedder=network or EMBEDDERS[0], reader=network or READERS[0])


def read_text(path: Path) -> str:
    """Read a text file, compressed (.gz, .xz) or not."""
    with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        return str(file.read())


def read_squad_file(data: Path, part: str) -> list[dict[str, Any]]:
    """Read the articles of SQuAD's train or dev file."""
    articles: list[dict[str, Any]] = json.loads(read_text(next((data / "squad").glob(f"{part}-v1.1.json*"))))["data"]
    return articles


def list_paragraphs(data: Path) -> list[str]:
    """List the paragraphs of SQuAD."""
    articles = [article for part in ("train", "dev") for article in read_squad_file(data, part)]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


def list_other_texts(data: Path) -> list[str]:
    """List the distinct texts of the other domains, in a fixed random order."""
    texts: dict[str, None] = {}
    for path in sorted((data / "qa").glob("*.jsonl*")):
        if not path.name.startswith("squad2"):  # paragraphs of SQuAD
            rows = [json.loads(line) for line in read_text(path).split("\n") if line]
            texts |= dict.fromkeys(row.get("context") or row.get("answer") or "" for row in rows)
    texts.pop("", None)
    return random.Random(0).sample([*texts], len(texts))


def write_files(texts: list[str], folder: Path) -> Iterator[Path]:
    """Write texts as records, so many per file."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(texts), TEXTS_PER_FILE):
        path = folder / f"{start:06}.jsonl"
        lines = (json.dumps({"text": text}) + "\n" for text in texts[start : start + TEXTS_PER_FILE])
        path.write_text("".join(lines), encoding="utf-8")
        yield path


def fill(args: argparse.Namespace) -> None:
    """Make the memory of a network."""
    texts = list(dict.fromkeys([*list_paragraphs(args.data), *list_other_texts(args.data)]))
    with open_network_memory(args.folder, args.network, args.device) as memory:
        started, num_passages = time.monotonic(), 0
        for path in write_files(texts, args.folder / name_network(args.network)):
            num_passages += sum(step.passages for step in memory.remember(path))
            if num_passages >= args.passages:
                break
        counts = {"passages": memory.stats().passages, "sentences": memory.stats().sentences}
        memory.search("the last of all")  # writes the cache of codes, if there is one
    print(json.dumps(counts | {"seconds": round(time.monotonic() - started)}), flush=True)


def draw_questions(data: Path, num_questions: int) -> list[str]:
    """Draw questions of SQuAD's dev file."""
    questions = [
        question["question"].strip()
        for article in read_squad_file(data, "dev")
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    return random.Random(0).sample(questions, min(num_questions, len(questions)))


def time_answers(memories: dict[str, Memory], questions: list[str]) -> dict[str, Any]:
    """Ask each question of all memories in turn; return percentiles in milliseconds."""
    for memory in memories.values():  # loads the networks, and compiles
        for question in questions[:10]:
            memory.ask(question)
    clock, processor, search = ({name: list[float]() for name in memories} for _ in range(3))
    for number, question in enumerate(questions):
        for name in sorted(memories, reverse=bool(number % 2)):
            started = time.perf_counter(), time.process_time()
            memories[name].ask(question)
            clock[name].append(1000 * (time.perf_counter() - started[0]))
            processor[name].append(1000 * (time.process_time() - started[1]))
            second = time.perf_counter()
            memories[name].search(question, limit=5)
            search[name].append(1000 * (time.perf_counter() - second))
    return {
        name: {
            "passages": memory.stats().passages,
            "p50 ms": round(median(clock[name]), 1),
            "p95 ms": round(quantiles(clock[name], n=20)[-1], 1),
            "p50 processor ms": round(median(processor[name]), 1),
            "p50 search ms": round(median(search[name]), 1),
        }
        for name, memory in memories.items()
    }


def time_remembering(networks: list[str], data: Path, num_paragraphs: int, rounds: int) -> dict[str, list[int]]:
    """Remember a text with each network in turn; return sentences per second of each round."""
    paragraphs = random.Random(0).sample(list_paragraphs(data), num_paragraphs)
    rates: dict[str, list[int]] = {name_network(network): [] for network in networks}
    for _ in range(rounds + 1):  # the first one loads the networks
        for network in networks:
            with tempfile.TemporaryDirectory() as name:
                path = Path(name) / "texts.txt"
                path.write_text("\n\n".join(paragraphs), encoding="utf-8")
                with open_network_memory(Path(name), network) as memory:
                    started = time.perf_counter()
                    memory.remember(path)
                    seconds = time.perf_counter() - started
                    rates[name_network(network)].append(round(memory.stats().sentences / seconds))
    return {name: rows[1:] for name, rows in rates.items()}


def measure(args: argparse.Namespace) -> None:
    """Time answers and remembering of all networks."""
    cores = sorted(os.sched_getaffinity(0))
    print(json.dumps({"cores": cores, "load": os.getloadavg()[0]}), flush=True)
    memories = {name_network(network): open_network_memory(args.folder, network) for network in args.networks}
    questions = draw_questions(args.data, args.questions)
    for number in range(args.repeat):
        part = questions[number :: args.repeat]
        print(json.dumps(time_answers(memories, part) | {"load": os.getloadavg()[0]}), flush=True)
    for memory in memories.values():
        memory.close()
    rates = time_remembering(args.networks, args.data, args.paragraphs, args.rounds)
    print(json.dumps({"sentences/s": rates, "load": os.getloadavg()[0]}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("fill")
    command.add_argument("data", type=Path)
    command.add_argument("folder", type=Path)
    command.add_argument("network", help='a folder, or "" for what ships')
    command.add_argument("--passages", type=int, default=100_000)
    command.add_argument("--device", default="cpu")
    command.set_defaults(action=fill)
    command = commands.add_parser("time")
    command.add_argument("data", type=Path)
    command.add_argument("folder", type=Path)
    command.add_argument("networks", nargs="+", help='folders, or "" for what ships')
    command.add_argument("--questions", type=int, default=200)
    command.add_argument("--repeat", type=int, default=2, help="parts of the questions, timed one after another")
    command.add_argument("--paragraphs", type=int, default=800, help="that are remembered")
    command.add_argument("--rounds", type=int, default=3, help="of remembering")
    command.set_defaults(action=measure)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()
