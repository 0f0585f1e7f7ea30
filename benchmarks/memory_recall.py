"""How well, and how fast, a lasting memory finds the paragraph that a question is about.

    python benchmarks/memory_recall.py SQUAD --memory squad.db [--embedder minilm]
        [--questions 1000] [--lexical 0.3] [--learnt]

SQUAD is a folder with train-v1.1.json.gz and dev-v1.1.json.gz. The memory, a file or an address,
holds every paragraph of both, one a record; it is made once and kept. Questions are drawn from dev,
with dice that always fall alike; --learnt draws them from train instead, which is where a share is
to be chosen. A question is answered by rank k if one of the first k passages is part of its
paragraph. ``sentence`` is how often the sentence that ``ask`` quotes without a reader holds a right
answer.
"""

import argparse
import gzip
import json
import random
import time
from pathlib import Path
from typing import NamedTuple

from mnemic import Memory


class Asked(NamedTuple):
    question: str
    paragraph: str
    answers: tuple[str, ...]


def asked_in(path: Path) -> list[Asked]:
    """Every question of a file, with its paragraph and right answers."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return [
        Asked(one["question"], part["context"], tuple(own["text"] for own in one["answers"]))
        for article in articles
        for part in article["paragraphs"]
        for one in part["qas"]
    ]


def flat(text: str) -> str:
    return " ".join(text.split())


def fill(memory: Memory, paragraphs: list[str]) -> None:
    """Remember every paragraph, as a record of one file beside the memory, or here."""
    own = memory.path if isinstance(memory.path, Path) else Path("squad")
    records = own.with_suffix(".jsonl")
    if not records.exists():
        lines = (json.dumps({"text": text}) + "\n" for text in paragraphs)
        records.write_text("".join(lines), encoding="utf-8")
    began = time.perf_counter()
    *_, last = memory.remembering([records])
    spent = time.perf_counter() - began
    if last.passages:
        sentences = memory.stats().sentences / spent
        print(f"remembered: {last.passages} passages in {spent:.0f} s, {sentences:.0f} sentences/s")


def measure(memory: Memory, questions: list[Asked], lexical: float | None) -> dict[str, float]:
    first = five = quoted = 0
    times = []
    for one in questions:
        began = time.perf_counter()
        hits = memory.search(one.question, 5, lexical)
        times.append(time.perf_counter() - began)
        inside = [flat(hit.text) in flat(one.paragraph) for hit in hits]
        first, five = first + inside[0], five + any(inside)
        answer = memory.ask(one.question, lexical=lexical).text
        quoted += any(text in answer for text in one.answers)
    times.sort()
    count = len(questions)
    return {
        "recall@1": 100 * first / count,
        "recall@5": 100 * five / count,
        "sentence": 100 * quoted / count,
        "search p50 ms": 1000 * times[count // 2],
        "search p95 ms": 1000 * times[int(count * 0.95)],
    }


def main() -> None:
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--memory", required=True)
    parser.add_argument("--embedder", default=None)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--lexical", type=float, default=None)
    parser.add_argument("--learnt", action="store_true")
    given = parser.parse_args()
    both = {name: asked_in(given.squad / f"{name}-v1.1.json.gz") for name in ("train", "dev")}
    paragraphs = list(dict.fromkeys(one.paragraph for own in both.values() for one in own))
    with Memory(given.memory, embedder=given.embedder) as memory:
        fill(memory, paragraphs)
        questions = both["train" if given.learnt else "dev"]
        chosen = random.Random(0).sample(questions, min(given.questions, len(questions)))
        found = measure(memory, chosen, given.lexical)
    print(f"{len(paragraphs)} paragraphs, {len(chosen)} questions")
    for name, value in found.items():
        print(f"{name:14} {value:6.1f}")


if __name__ == "__main__":
    main()
