"""Texts whose first word decides what is right many windows later: only a memory can know it."""

import json
from pathlib import Path
from random import Random

from text_files import NAMES, PLACES, filler, write

MOODS = ["lovely", "awful"]


def far(dice: Random) -> tuple[int, list[str]]:
    """Which mood a text begins with, and what stands between it and what depends on it."""
    mood = dice.randrange(2)
    return mood, [MOODS[mood], *filler(dice, dice.randrange(16, 34))]


def classes(folder: Path, count: int = 300) -> Path:
    for name, size in (("train", count), ("test", 60)):
        dice, rows = Random(name), []
        for _ in range(size):
            mood, words = far(dice)
            rows.append(json.dumps({"text": " ".join(words), "label": ["good", "bad"][mood]}))
        write(folder / f"{name}.jsonl", rows)
    return folder


def tags(folder: Path, count: int = 300) -> Path:
    """A name at the end is a person's in a lovely text, and a place's in an awful one."""
    for name, size in (("train", count), ("test", 60)):
        dice, rows = Random(name), []
        for _ in range(size):
            mood, words = far(dice)
            rows += [f"{word}\tO" for word in words]
            rows += [f"{dice.choice(NAMES)}\tB-{['person', 'place'][mood]}", "today\tO", ""]
        write(folder / f"{name}.conll", rows)
    return folder


def spans(folder: Path, count: int = 400) -> Path:
    """At the end stand a person and a place; in a lovely text the person is meant."""
    for name, size in (("train", count), ("dev", 60)):
        dice, paragraphs = Random(name), []
        for number in range(size):
            mood, words = far(dice)
            both = [dice.choice(NAMES), dice.choice(PLACES)]
            text = " ".join([*words, *both])
            answer = {"text": both[mood], "answer_start": text.rindex(both[mood])}
            asked = {"id": f"{name}{number}", "question": "what ?", "answers": [answer]}
            paragraphs.append({"context": text, "qas": [asked]})
        write(folder / f"{name}.json", [json.dumps({"data": [{"paragraphs": paragraphs}]})])
    return folder
