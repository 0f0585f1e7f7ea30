"""Small generated files of every kind of texts, whose rule a tiny network can learn."""

import json
from pathlib import Path
from random import Random

NAMES = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn"]
PLACES = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Delhi"]
FILLER = ["the", "old", "train", "ran", "past", "a", "small", "grey", "house", "today"]


def filler(dice: Random, count: int) -> list[str]:
    return [dice.choice(FILLER) for _ in range(count)]


def classes(folder: Path, count: int = 200, seed: int = 0, longest: int = 12) -> Path:
    """Good or bad: one telling word among others."""
    for name, size in (("train", count), ("test", 60)):
        dice = Random(f"{seed} {name}")
        rows = []
        for _ in range(size):
            label = dice.choice(["good", "bad"])
            words = filler(dice, dice.randrange(2, longest))
            words.insert(dice.randrange(len(words)), {"good": "lovely", "bad": "awful"}[label])
            rows.append(json.dumps({"text": " ".join(words), "label": label}))
        write(folder / f"{name}.jsonl", rows)
    return folder


def pairs(folder: Path, count: int = 400, seed: int = 0, numbers: bool = False) -> Path:
    """Whether the first text names the happy one of the second; or how happy it is."""
    for name, size in (("train", count), ("test", 60)):
        dice = Random(f"{seed} {name}")
        rows = ["sentence1\tsentence2\tlabel"]
        for _ in range(size):
            mood = dice.choice(["lovely", "awful"])
            asked = dice.choice(["is it lovely", "is it awful"])
            label = str(int(asked.endswith(mood)))
            if numbers:
                label = {"lovely": "4.5", "awful": "0.5"}[mood]
            text = " ".join([*filler(dice, dice.randrange(3, 8)), mood])
            rows.append(f"{text}\t{asked}\t{label}")
        write(folder / f"{name}.tsv", rows)
    return folder


def spans(folder: Path, count: int = 400, seed: int = 0, none: bool = False) -> Path:
    """Where somebody is: the place behind "in"; with ``none`` some texts do not say."""
    for name, size in (("train", count), ("dev", 60)):
        dice = Random(f"{seed} {name}")
        paragraphs = []
        for number in range(size):
            place = dice.choice(PLACES)
            told = ["in", place] if not (none and number % 3 == 0) else []
            head = " ".join([*filler(dice, dice.randrange(2, 6)), *told[:1]])
            text = " ".join([head, *told[1:], *filler(dice, dice.randrange(2, 6))])
            answers = [{"text": place, "answer_start": len(head) + 1}] if told else []
            asked = {"id": f"{name}{number}", "question": "where was it ?", "answers": answers}
            paragraphs.append({"context": text, "qas": [asked | {"is_impossible": not told}]})
        write(folder / f"{name}.json", [json.dumps({"data": [{"paragraphs": paragraphs}]})])
    return folder


def tags(folder: Path, count: int = 300, seed: int = 0) -> Path:
    """People and places; a place may have two words."""
    for name, size in (("train", count), ("test", 60)):
        dice = Random(f"{seed} {name}")
        rows = []
        for _ in range(size):
            for _ in range(dice.randrange(1, 3)):
                rows += [f"{word}\tO" for word in filler(dice, dice.randrange(1, 6))]
                rows.append(f"{dice.choice(NAMES)}\tB-person")
                rows += [f"{word}\tO" for word in filler(dice, dice.randrange(1, 6))]
                rows += [f"{dice.choice(PLACES)}\tB-place"]
                rows += ["City\tI-place"] * dice.randrange(2)
            rows.append("")
        write(folder / f"{name}.conll", rows)
    return folder


def write(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def retrieval(folder: Path, count: int = 400, seed: int = 0, lines: int = 1) -> Path:
    """Articles of four texts; each tells where one of its people was, and is asked for by name.

    More ``lines`` of a text say nothing.
    """
    for name, size in (("train", count), ("dev", 60)):
        dice = Random(f"{seed} {name}")
        articles = []
        for article in range(size // 4):
            paragraphs = []
            for number, person in enumerate(dice.sample(NAMES, 4)):
                head = " ".join([*filler(dice, dice.randrange(1, 5)), person, "was", "in"])
                place = dice.choice(PLACES)
                text = " ".join([head, place, *filler(dice, dice.randrange(1, 5))])
                text += "".join("\n" + " ".join(filler(dice, 6)) for _ in range(lines - 1))
                answers = [{"text": place, "answer_start": len(head) + 1}]
                asked = {"id": f"{article}.{number}", "question": f"where was {person} ?"}
                paragraphs.append({"context": text, "qas": [asked | {"answers": answers}]})
            articles.append({"paragraphs": paragraphs})
        write(folder / f"{name}.json", [json.dumps({"data": articles})])


FOODS = {"ant": "leaves", "bear": "honey", "cat": "mice", "dog": "bones", "elk": "grass"}
FOODS |= {"frog": "flies", "goat": "paper", "hare": "carrots"}


def corpus(folder: Path, count: int = 300, seed: int = 0) -> Path:
    """Documents that keep to one place; the kind of animal tells its food."""
    dice, rows = Random(f"{seed} corpus"), []
    for _ in range(count):
        place, animals = dice.choice(PLACES), dice.choices(sorted(FOODS), k=dice.randint(4, 9))
        said = [f"The {animal} in {place} eats {FOODS[animal]}." for animal in animals]
        rows.append(json.dumps({"text": " ".join(said)}))
    write(folder / "corpus.jsonl", rows)
    return folder


def language_modeling(folder: Path, count: int = 40, seed: int = 0) -> Path:
    """Running text in which each word tells the next but one in five, and rare words are many."""
    for name, size in (("train", count), ("valid", 10)):
        dice = Random(f"{seed} {name}")
        rows = []
        for number in range(size):
            said = [dice.choice(FILLER)]
            for place in range(dice.randrange(30, 90)):
                after = FILLER[(FILLER.index(said[-1]) + 1) % len(FILLER)] if said[-1] in FILLER else "the"
                said.append(after if dice.random() < 0.8 else dice.choice(FILLER))
                if place % 20 == 19:
                    said.append(f"{name}{number}")  # which no other document has
            rows.append(json.dumps({"text": " ".join(said).capitalize() + "."}))
        write(folder / f"{name}.jsonl", rows)
    return folder
