"""Chinese questions for benchmarks: CMRC 2018, and a memory of its paragraphs."""

import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from mnemic import Memory

_MARKS = re.compile(r"[\W_]+")


class ChineseQuestion(NamedTuple):
    """A question with its paragraph and its right answers."""

    question: str
    paragraph: str
    answers: tuple[str, ...]


def read_train(folder: Path) -> list[ChineseQuestion]:
    """Read the questions of CMRC's train split."""
    with lzma.open(folder / "qa" / "cmrc2018_train.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [ChineseQuestion(row["question"], row["context"], list_answers(row)) for row in rows]


def read_dev(folder: Path) -> list[ChineseQuestion]:
    """Read the questions of CMRC's dev split."""
    articles = json.loads((folder / "cmrc2018" / "cmrc2018_dev.json").read_text(encoding="utf-8"))["data"]
    return [
        ChineseQuestion(row["question"], paragraph["context"], list_answers(row))
        for article in articles
        for paragraph in article["paragraphs"]
        for row in paragraph["qas"]
    ]


def list_answers(row: dict[str, list[dict[str, str]]]) -> tuple[str, ...]:
    """Return the distinct right answers of a question."""
    return tuple(dict.fromkeys(answer["text"] for answer in row["answers"]))


def split_questions(
    questions: Sequence[ChineseQuestion], count: int
) -> tuple[list[str], list[ChineseQuestion], list[ChineseQuestion]]:
    """Return half of the paragraphs, ``count`` questions about them, and as many about others."""
    paragraphs = list(dict.fromkeys(question.paragraph for question in questions))
    random.Random(0).shuffle(paragraphs)
    half = paragraphs[: len(paragraphs) // 2]
    shuffled = random.Random(1).sample(questions, len(questions))
    inside = [question for question in shuffled if question.paragraph in set(half)]
    outside = [question for question in shuffled if question.paragraph not in set(half)]
    return half, inside[:count], outside[:count]


def fill_memory(memory: Memory, folder: Path, paragraphs: Iterable[str]) -> None:
    """Remember each paragraph as a record of a file in a folder."""
    file = folder / "paragraphs.jsonl"
    rows = (json.dumps({"text": paragraph}, ensure_ascii=False) for paragraph in paragraphs)
    file.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    memory.remember(file)


def normalize_text(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return _MARKS.sub("", text.lower())


def has_answer(text: str, answers: Iterable[str]) -> bool:
    """Return whether a text contains a right answer."""
    return any(normalize_text(answer) in normalize_text(text) for answer in answers)


def compute_f1(text: str, answers: Iterable[str]) -> float:
    """Return the best F1 by characters of a text with one of the right answers."""
    letters, best = Counter(normalize_text(text)), 0.0
    for answer in answers:
        right = Counter(normalize_text(answer))
        total = letters.total() + right.total()
        best = max(best, 2 * (letters & right).total() / total if total else 0.0)
    return best
