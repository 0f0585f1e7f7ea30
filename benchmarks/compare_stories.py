"""Compare the generator's stories with the official bAbI files, task by task, by counting.

    python benchmarks/compare_stories.py --data DIR [--size 10k] [--count 1000] [--task 1 2]

A mean agrees if it is within three standard errors or two per cent; stories, not questions, count
as independent. Answers agree if their distance (total variation) is what chance alone explains.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import pi, sqrt
from pathlib import Path
from typing import NamedTuple

from mnemic.data.babi.folder import SIZES, TASKS, folder_of, path_of
from mnemic.data.babi.format import Question, Sentence, Story, StoryError, examples, read
from mnemic.data.babi.generate import generate

ERRORS = 3.0  # standard errors within which two means agree
SLACK = 0.02  # relative difference within which two means agree anyway
NOISE = 2.5  # times the distance expected by chance, within which answers agree
TOP = 3  # answers shown


class Row(NamedTuple):
    """One measure of a task, official beside generated."""

    measure: str
    official: str
    generated: str
    verdict: str


class Mean(NamedTuple):
    """A mean over questions or stories, with its standard error and the largest value."""

    value: float
    error: float
    largest: float


def mean(groups: Sequence[Sequence[float]]) -> Mean:
    """The mean of all values; the values of one story are not independent of each other."""
    count = sum(map(len, groups))
    value = sum(map(sum, groups)) / count
    error = sqrt(sum((sum(group) - value * len(group)) ** 2 for group in groups)) / count
    return Mean(value, error, max(map(max, groups)))


def context(story: Story) -> list[float]:
    return [len(example.sentences) for example in examples(story, 0)]


def between(story: Story) -> list[float]:
    """Sentences told right before each question."""
    told = [0.0]
    for line in story:
        if isinstance(line, Sentence):
            told[-1] += 1
        else:
            told.append(0.0)
    return told[:-1]


def facts(story: Story) -> list[float]:
    return [len(example.facts) for example in examples(story, 0)]


def lags(story: Story) -> list[float]:
    """How many sentences back from its question each fact is; 1 is the last sentence."""
    return [len(own.sentences) - fact for own in examples(story, 0) for fact in own.facts]


def length(story: Story) -> list[float]:
    return [len(story)]


def questions(story: Story) -> list[float]:
    return [sum(isinstance(line, Question) for line in story)]


MEASURES: dict[str, Callable[[Story], list[float]]] = {
    "sentences before a question": context,
    "sentences since the last question": between,
    "lines a story": length,
    "questions a story": questions,
    "facts a question": facts,
    "sentences back to a fact": lags,
}


def words(stories: Iterable[Story]) -> set[str]:
    """All words of sentences, questions and answers."""
    texts = (text for story in stories for line in story for text in line[1:3])
    return {word for text in texts for word in re.findall(r"\w+", text)}


def answers(stories: Iterable[Story]) -> list[Counter[str]]:
    """The answers of each story."""
    asked = ((line for line in story if isinstance(line, Question)) for story in stories)
    return [Counter(line.answer for line in lines) for lines in asked]


def compare_means(measure: str, one: Mean, other: Mean) -> Row:
    """Set two means side by side."""
    apart = abs(one.value - other.value)
    error = sqrt(one.error**2 + other.error**2)
    agree = apart <= ERRORS * error or apart <= SLACK * abs(one.value)
    shown = [f"{own.value:.2f} ± {own.error:.2f} (max {own.largest:.0f})" for own in (one, other)]
    return Row(measure, shown[0], shown[1], "agrees" if agree else f"differs by {apart:.2f}")


def compare_words(one: set[str], other: set[str]) -> Row:
    """List the words that only one of the two has."""
    only = [", ".join(sorted(own)) or "-" for own in (one - other, other - one)]
    return Row("words only here", only[0], only[1], "agrees" if one == other else "differs")


def share(stories: Sequence[Counter[str]], answer: str) -> Mean:
    """How often a question has this answer."""
    return mean([[1.0] * own[answer] + [0.0] * (own.total() - own[answer]) for own in stories])


def compare_answers(one: Sequence[Counter[str]], other: Sequence[Counter[str]]) -> Row:
    """Set the most frequent answers side by side; the verdict is about all of them."""
    distance, chance = 0.0, 0.0
    totals = [sum(own, Counter[str]()) for own in (one, other)]
    for answer in totals[0] | totals[1]:
        here, there = share(one, answer), share(other, answer)
        distance += abs(here.value - there.value) / 2
        chance += sqrt(2 / pi) * sqrt(here.error**2 + there.error**2) / 2
    shown = [", ".join(f"{a} {n / own.total():.1%}" for a, n in own.most_common(TOP))
             for own in totals]  # fmt: skip
    verdict = "agrees" if distance <= NOISE * chance else "differs"
    return Row("answers", shown[0], shown[1], f"{verdict}: {distance:.3f}, by chance {chance:.3f}")


def compare(official: Sequence[Story], generated: Sequence[Story]) -> list[Row]:
    """All measures of one task."""
    rows = [compare_words(words(official), words(generated))]
    for name, measure in MEASURES.items():
        one, other = (mean([measure(story) for story in own]) for own in (official, generated))
        rows.append(compare_means(name, one, other))
    rows.append(compare_answers(answers(official), answers(generated)))
    return rows


def render_table(title: str, rows: Sequence[Row]) -> str:
    """Rows as aligned columns below a title."""
    table = [Row("", "official", "generated", "verdict"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in table)
    return "\n".join([title, *(f"  {line.rstrip()}" for line in lines)])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of the official files")
    parser.add_argument("--size", choices=list(SIZES), default="1k", help="which official files")
    parser.add_argument("--count", type=int, default=1000, help="generated questions a task")
    parser.add_argument("--task", type=int, nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    found: dict[int, list[Row]] = {}
    missing: dict[int, str] = {}
    try:
        folder = folder_of(arguments.data, arguments.size)
    except StoryError as error:
        raise SystemExit(str(error)) from None
    for task in arguments.task:
        try:
            official = list(read(path_of(folder, task, "train")))
        except StoryError as error:
            missing[task] = str(error)
            continue
        found[task] = compare(official, list(generate(task, arguments.count, seed=arguments.seed)))
    if arguments.json:
        tables = {task: [row._asdict() for row in rows] for task, rows in found.items()}
        print(json.dumps({"tasks": tables, "missing": missing}, indent=2))
        return
    for task, rows in found.items():
        print(render_table(f"task {task}, {TASKS[task]}", rows), end="\n\n")
    for task, text in missing.items():
        print(f"task {task}: {text}")
    verdicts = [row.verdict.startswith("agrees") for rows in found.values() for row in rows]
    print(f"{sum(verdicts)} of {len(verdicts)} measures agree")


if __name__ == "__main__":
    main()
