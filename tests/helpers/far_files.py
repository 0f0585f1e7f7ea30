"""Write datasets whose labels depend on a word many windows before.

Only a network with a memory can learn them.
"""

import json
from pathlib import Path
from random import Random

from text_files import NAMES, PLACES, filler, write

MOODS = ["lovely", "awful"]


def draw_mood_and_filler(rng: Random) -> tuple[int, list[str]]:
    """Draw the mood that a text starts with, and its words up to the label."""
    mood = rng.randrange(2)
    return mood, [MOODS[mood], *filler(rng, rng.randrange(16, 34))]


def classes(folder: Path, count: int = 300) -> Path:
    for name, size in (("train", count), ("test", 60)):
        rng, rows = Random(name), []
        for _ in range(size):
            mood, words = draw_mood_and_filler(rng)
            rows.append(json.dumps({"text": " ".join(words), "label": ["good", "bad"][mood]}))
        write(folder / f"{name}.jsonl", rows)
    return folder


def tags(folder: Path, count: int = 300) -> Path:
    """Write tags: the last name is a person in a lovely text, else a place."""
    for name, size in (("train", count), ("test", 60)):
        rng, rows = Random(name), []
        for _ in range(size):
            mood, words = draw_mood_and_filler(rng)
            rows += [f"{word}\tO" for word in words]
            rows += [f"{rng.choice(NAMES)}\tB-{['person', 'place'][mood]}", "today\tO", ""]
        write(folder / f"{name}.conll", rows)
    return folder


def spans(folder: Path, count: int = 400) -> Path:
    """Write spans: the answer is the last person in a lovely text, else the place."""
    for name, size in (("train", count), ("dev", 60)):
        rng, paragraphs = Random(name), []
        for number in range(size):
            mood, words = draw_mood_and_filler(rng)
            candidates = [rng.choice(NAMES), rng.choice(PLACES)]
            text = " ".join([*words, *candidates])
            answer = {"text": candidates[mood], "answer_start": text.rindex(candidates[mood])}
            question = {"id": f"{name}{number}", "question": "what ?", "answers": [answer]}
            paragraphs.append({"context": text, "qas": [question]})
        write(folder / f"{name}.json", [json.dumps({"data": [{"paragraphs": paragraphs}]})])
    return folder
