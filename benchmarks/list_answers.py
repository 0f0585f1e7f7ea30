"""Measure answers of several items: questions that ask for two to five things.

    python benchmarks/list_answers.py [--pool dev|final] [--seed 0] [--count 200]

Generated documents have their items in one sentence, as a list with bullets or numbers under a
heading (text and Markdown), as lines with the same key, in a column of a table (CSV and Markdown),
or in several sentences with others between them. A memory has eight documents, one of each form. An
item is right if it has the words of one that is meant, without articles and punctuation (as in
SQuAD's script).
``f1`` is the mean over questions of F1 between the two sets of items, that is exact match as in
MultiSpanQA (Li et al. 2022) per question; ``micro f1`` counts all items alike, as that paper does.
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import mean
from typing import NamedTuple

import list_pools

from mnemic import Memory
from mnemic.evaluate.metrics import normalize_answer, precision_recall_f1

POOLS = {"dev": list_pools.DEV, "final": list_pools.FINAL}
MIN_ITEMS, MAX_ITEMS = 2, 5


class ListQuestion(NamedTuple):
    """A question for several items, and the form of its document."""

    form: str
    text: str
    items: tuple[str, ...]


def join_items(items: list[str], word: str = "and") -> str:
    """Join items as English does."""
    return f"{', '.join(items[:-1])} {word} {items[-1]}"


def write_document(generator: Random, pool: list_pools.ListPool, form: str, name: str) -> tuple[str, str, ListQuestion]:
    """Write a document of a form; return its suffix, its text, and the question."""
    number = generator.randrange(MIN_ITEMS, MAX_ITEMS + 1)
    fillers = generator.sample(pool.fillers, 5)
    if form in ("csv", "table"):
        return write_table(generator, pool, form, name, number)
    topic = generator.choice(pool.topics)
    items = generator.sample(topic.items, number)
    wording = generator.choice((topic.question, topic.counted))
    words = ("two", "three", "four", "five")
    question = ListQuestion(form, wording.format(name=name, number=words[number - 2]), tuple(items))
    lead = topic.lead.format(name=name)
    if form == "sentence":
        text = " ".join([*fillers[:2], topic.together.format(name=name, items=join_items(items)), *fillers[2:]])
        return ".txt", text + "\n", question
    if form == "scattered":
        sentences = [topic.single.format(name=name, items=item) for item in items]
        text = " ".join(part for pair in zip(sentences, fillers) for part in pair)
        return ".txt", text + "\n", question
    if form == "keys":
        lines = [f"{topic.key}: {item}" for item in items]
        return ".txt", "\n".join([name, "", "Phone: 555 010", *lines, "Open: daily"]) + "\n", question
    marks = {"bullets": ("- ", "* ", "• "), "markdown": ("- ", "* "), "numbers": ("{}. ", "{}) ")}[form]
    mark = generator.choice(marks)
    lines = [f"{mark.format(index)}{item}" for index, item in enumerate(items, start=1)]
    head = f"## {lead}" if form == "markdown" else lead if lead.endswith(":") else f"{lead}:"
    blank = [""] if form == "markdown" else []
    other = [f"{mark.format(index)}{filler.rstrip('.')}" for index, filler in enumerate(fillers[:2], start=1)]
    notes = ["## Remarks" if form == "markdown" else "Remarks:", *blank, *other]
    suffix = ".md" if form == "markdown" else ".txt"
    return suffix, "\n".join([*fillers[3:], "", head, *blank, *lines, "", *notes]) + "\n", question


def write_table(
    generator: Random, pool: list_pools.ListPool, form: str, name: str, number: int
) -> tuple[str, str, ListQuestion]:
    """Write a table whose rows are selected by the value of a column."""
    subjects, values, numbers = pool.table_values
    value = (
        f"{generator.choice(values)}-{name}" if "team" in pool.table_question else f"{name} {generator.choice(values)}"
    )
    chosen = generator.sample(subjects, min(number + 3, len(subjects)))
    others = [
        f"{other}-{name}" if "team" in pool.table_question else f"Paul {other}"
        for other in values
        if other not in value
    ]
    rows = [(subject, value, generator.choice(numbers)) for subject in chosen[:number]]
    rows += [(subject, generator.choice(others), generator.choice(numbers)) for subject in chosen[number:]]
    generator.shuffle(rows)
    question = ListQuestion(form, pool.table_question.format(value=value), tuple(chosen[:number]))
    if form == "csv":
        return ".csv", "\n".join(",".join(row) for row in [pool.table, *rows]) + "\n", question
    lines = [f"| {' | '.join(row)} |" for row in [pool.table, ("---",) * 3, *rows]]
    return ".md", "\n".join([f"# Table {name}", "", *lines]) + "\n", question


FORMS = ("sentence", "bullets", "markdown", "numbers", "keys", "csv", "table", "scattered")


def count_shared(found: tuple[str, ...], right: tuple[str, ...]) -> tuple[int, int, int]:
    """Return the number of right items that were found, of found ones, of right ones."""
    found_set, right_set = ({" ".join(normalize_answer(item)) for item in items} for items in (found, right))
    return len(found_set & right_set), len(found_set), len(right_set)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pool", choices=list(POOLS), default="dev")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    generator, pool = Random(args.seed), POOLS[args.pool]
    names = [f"{first} {second}" for first, second in combinations(pool.names, 2)]
    started, counts = time.perf_counter(), defaultdict(list)
    for number in range(args.count // len(FORMS)):
        with tempfile.TemporaryDirectory() as folder, Memory(Path(folder, "lists.db")) as memory:
            questions = []
            for form, name in zip(FORMS, generator.sample(names, len(FORMS))):
                suffix, text, question = write_document(generator, pool, form, name)
                Path(folder, f"{number}-{form}{suffix}").write_text(text, encoding="utf-8")
                questions.append(question)
            memory.remember(folder)
            for question in questions:
                answer = memory.ask(question.text)
                found = tuple(item.text for item in answer.items) or ((answer.text,) if answer.has_answer else ())
                counts[question.form].append(count_shared(found, question.items))
                if args.verbose and precision_recall_f1(*counts[question.form][-1]).f1 < 1:
                    print(f"{question} | {found} | {answer.text!r} {answer.score:.2f}", flush=True)
    rows = [row for form_rows in counts.values() for row in form_rows]
    f1_by_form = {form: [precision_recall_f1(*row).f1 for row in form_rows] for form, form_rows in counts.items()}
    report = {
        "pool": args.pool, "seed": args.seed, "questions": len(rows),
        "f1": round(100 * mean(value for values in f1_by_form.values() for value in values), 1),
        "micro f1": round(100 * precision_recall_f1(*(sum(column) for column in zip(*rows))).f1, 1),
        "by form": {form: round(100 * mean(values), 1) for form, values in f1_by_form.items()},
        "seconds": round(time.perf_counter() - started),
    }  # fmt: skip
    print(json.dumps(report))


if __name__ == "__main__":
    main()
