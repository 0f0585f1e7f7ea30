"""Compare statistics of generated stories with the official bAbI files, per task.

    python benchmarks/generated_babi_statistics.py --data DIR [--size 10k] [--count 1000]
        [--task 1 2]

Two means agree if they are within three standard errors or two percent; stories, not questions, are
the independent samples. Answer distributions agree if chance explains their total variation
distance.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import pi, sqrt
from pathlib import Path
from typing import NamedTuple

from mnemic.data.babi.folder import SIZES, TASKS, find_story_folder, find_task_file
from mnemic.data.babi.format import Story, StoryError, StoryQuestion, StorySentence, extract_examples, read_stories
from mnemic.data.babi.generate import generate_stories

MAX_STANDARD_ERRORS = 3.0  # between two means that agree
MAX_RELATIVE_DIFFERENCE = 0.02  # between two means that agree anyway
MAX_CHANCE_RATIO = 2.5  # of the distance to that expected by chance, if answers agree
NUM_SHOWN_ANSWERS = 3


class ComparisonRow(NamedTuple):
    """A statistic of a task, for official and generated stories."""

    measure: str
    official: str
    generated: str
    verdict: str


class Mean(NamedTuple):
    """A mean over questions or stories, with its standard error and the largest value."""

    value: float
    error: float
    largest: float


def compute_mean(groups: Sequence[Sequence[float]]) -> Mean:
    """Compute the mean of all values and its standard error.

    A group has the values of one story, which are not independent of each other.
    """
    count = sum(map(len, groups))
    value = sum(map(sum, groups)) / count
    error = sqrt(sum((sum(group) - value * len(group)) ** 2 for group in groups)) / count
    return Mean(value, error, max(map(max, groups)))


def count_context_sentences(story: Story) -> list[float]:
    """Count the sentences before each question."""
    return [len(example.sentences) for example in extract_examples(story, 0)]


def count_new_sentences(story: Story) -> list[float]:
    """Count the sentences between each question and the question before it."""
    counts = [0.0]
    for line in story:
        if isinstance(line, StorySentence):
            counts[-1] += 1
        else:
            counts.append(0.0)
    return counts[:-1]


def count_facts(story: Story) -> list[float]:
    """Count the supporting facts of each question."""
    return [len(example.facts) for example in extract_examples(story, 0)]


def measure_fact_distances(story: Story) -> list[float]:
    """Measure the distance of each fact to its question; 1 is the last sentence."""
    return [len(example.sentences) - fact for example in extract_examples(story, 0) for fact in example.facts]


def count_lines(story: Story) -> list[float]:
    """Count the lines of a story."""
    return [len(story)]


def count_questions(story: Story) -> list[float]:
    """Count the questions of a story."""
    return [sum(isinstance(line, StoryQuestion) for line in story)]


MEASURES: dict[str, Callable[[Story], list[float]]] = {
    "sentences before a question": count_context_sentences,
    "sentences since the last question": count_new_sentences,
    "lines a story": count_lines,
    "questions a story": count_questions,
    "facts a question": count_facts,
    "sentences back to a fact": measure_fact_distances,
}


def collect_words(stories: Iterable[Story]) -> set[str]:
    """Collect all words of sentences, questions and answers."""
    texts = (text for story in stories for line in story for text in line[1:3])
    return {word for text in texts for word in re.findall(r"\w+", text)}


def count_answers(stories: Iterable[Story]) -> list[Counter[str]]:
    """Count the answers of each story."""
    questions_by_story = ((question for question in story if isinstance(question, StoryQuestion)) for story in stories)
    return [Counter(question.answer for question in questions) for questions in questions_by_story]


def compare_means(measure: str, official: Mean, generated: Mean) -> ComparisonRow:
    """Compare two means."""
    difference = abs(official.value - generated.value)
    error = sqrt(official.error**2 + generated.error**2)
    agree = difference <= MAX_STANDARD_ERRORS * error or difference <= MAX_RELATIVE_DIFFERENCE * abs(official.value)
    cells = [
        f"{statistics.value:.2f} ± {statistics.error:.2f} (max {statistics.largest:.0f})"
        for statistics in (official, generated)
    ]
    return ComparisonRow(measure, cells[0], cells[1], "agrees" if agree else f"differs by {difference:.2f}")


def compare_words(official: set[str], generated: set[str]) -> ComparisonRow:
    """List the words that only one of the two vocabularies has."""
    cells = [", ".join(sorted(missing_words)) or "-" for missing_words in (official - generated, generated - official)]
    return ComparisonRow("words only here", cells[0], cells[1], "agrees" if official == generated else "differs")


def compute_answer_share(answer_counts: Sequence[Counter[str]], answer: str) -> Mean:
    """Compute the share of questions with this answer."""
    return compute_mean(
        [[1.0] * counts[answer] + [0.0] * (counts.total() - counts[answer]) for counts in answer_counts]
    )


def compare_answers(official: Sequence[Counter[str]], generated: Sequence[Counter[str]]) -> ComparisonRow:
    """Compare two distributions of answers; only the most frequent ones are shown."""
    distance, expected_distance = 0.0, 0.0
    totals = [sum(counts, Counter[str]()) for counts in (official, generated)]
    for answer in totals[0] | totals[1]:
        official_share, generated_share = (
            compute_answer_share(official, answer),
            compute_answer_share(generated, answer),
        )
        distance += abs(official_share.value - generated_share.value) / 2
        expected_distance += sqrt(2 / pi) * sqrt(official_share.error**2 + generated_share.error**2) / 2
    cells = [
        ", ".join(
            f"{frequent_answer} {count / counts.total():.1%}"
            for frequent_answer, count in counts.most_common(NUM_SHOWN_ANSWERS)
        )
        for counts in totals
    ]
    verdict = "agrees" if distance <= MAX_CHANCE_RATIO * expected_distance else "differs"
    return ComparisonRow("answers", cells[0], cells[1], f"{verdict}: {distance:.3f}, by chance {expected_distance:.3f}")


def compare_task(official: Sequence[Story], generated: Sequence[Story]) -> list[ComparisonRow]:
    """Compare all statistics of one task."""
    rows = [compare_words(collect_words(official), collect_words(generated))]
    for name, measure in MEASURES.items():
        official_mean, generated_mean = (
            compute_mean([measure(story) for story in stories]) for stories in (official, generated)
        )
        rows.append(compare_means(name, official_mean, generated_mean))
    rows.append(compare_answers(count_answers(official), count_answers(generated)))
    return rows


def format_table(title: str, rows: Sequence[ComparisonRow]) -> str:
    """Format rows as aligned columns below a title."""
    table = [ComparisonRow("", "official", "generated", "verdict"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in table)
    return "\n".join([title, *(f"  {line.rstrip()}" for line in lines)])


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of the official files")
    parser.add_argument("--size", choices=list(SIZES), default="1k", help="which official files")
    parser.add_argument("--count", type=int, default=1000, help="generated questions a task")
    parser.add_argument("--task", type=int, nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    rows_by_task: dict[int, list[ComparisonRow]] = {}
    missing: dict[int, str] = {}
    try:
        folder = find_story_folder(args.data, args.size)
    except StoryError as error:
        raise SystemExit(str(error)) from None
    for task in args.task:
        try:
            official = list(read_stories(find_task_file(folder, task, "train")))
        except StoryError as error:
            missing[task] = str(error)
            continue
        rows_by_task[task] = compare_task(official, list(generate_stories(task, args.count, seed=args.seed)))
    if args.json:
        tables = {task: [row._asdict() for row in rows] for task, rows in rows_by_task.items()}
        print(json.dumps({"tasks": tables, "missing": missing}, indent=2))
        return
    for task, rows in rows_by_task.items():
        print(format_table(f"task {task}, {TASKS[task]}", rows), end="\n\n")
    for task, text in missing.items():
        print(f"task {task}: {text}")
    verdicts = [row.verdict.startswith("agrees") for rows in rows_by_task.values() for row in rows]
    print(f"{sum(verdicts)} of {len(verdicts)} measures agree")


if __name__ == "__main__":
    main()
