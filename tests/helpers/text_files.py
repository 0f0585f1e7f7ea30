"""Write small generated datasets of every text task, which tiny networks can learn."""

import json
from pathlib import Path
from random import Random

NAMES = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn"]
PLACES = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Delhi"]
FILLER = ["the", "old", "train", "ran", "past", "a", "small", "grey", "house", "today"]


def filler(rng: Random, count: int) -> list[str]:
    return [rng.choice(FILLER) for _ in range(count)]


def classes(folder: Path, count: int = 200, seed: int = 0, longest: int = 12) -> Path:
    """Write texts of two classes; one word decides."""
    for name, size in (("train", count), ("test", 60)):
        rng = Random(f"{seed} {name}")
        rows = []
        for _ in range(size):
            label = rng.choice(["good", "bad"])
            words = filler(rng, rng.randrange(2, longest))
            words.insert(rng.randrange(len(words)), {"good": "lovely", "bad": "awful"}[label])
            rows.append(json.dumps({"text": " ".join(words), "label": label}))
        write(folder / f"{name}.jsonl", rows)
    return folder


def pairs(folder: Path, count: int = 400, seed: int = 0, numbers: bool = False) -> Path:
    """Write pairs: whether the text has the mood in question; or a mood score."""
    for name, size in (("train", count), ("test", 60)):
        rng = Random(f"{seed} {name}")
        rows = ["sentence1\tsentence2\tlabel"]
        for _ in range(size):
            mood = rng.choice(["lovely", "awful"])
            question = rng.choice(["is it lovely", "is it awful"])
            label = str(int(question.endswith(mood)))
            if numbers:
                label = {"lovely": "4.5", "awful": "0.5"}[mood]
            text = " ".join([*filler(rng, rng.randrange(3, 8)), mood])
            rows.append(f"{text}\t{question}\t{label}")
        write(folder / f"{name}.tsv", rows)
    return folder


def multi_task(folder: Path, count: int = 60) -> Path:
    """Write five tasks in the files of GLUE: classes, pairs and numbers."""
    classes(folder / "SST-2", count)
    for name in ("MRPC", "RTE", "STS-B"):
        pairs(folder / name, count, numbers=name == "STS-B")
    for split in ("train", "dev"):
        rng = Random(split)
        lines = [f"x\t{number % 2}\t\t{' '.join(filler(rng, 5))}" for number in range(count)]
        write(folder / "CoLA" / f"{split}.tsv", lines)
    for path in folder.glob("*/test.*"):
        path.rename(path.with_name(f"dev{path.suffix}"))
    return folder


def spans(folder: Path, count: int = 400, seed: int = 0, none: bool = False) -> Path:
    """Write spans: the city after "in"; with ``none`` some texts have no answer."""
    for name, size in (("train", count), ("dev", 60)):
        rng = Random(f"{seed} {name}")
        paragraphs = []
        for number in range(size):
            city = rng.choice(PLACES)
            location = ["in", city] if not (none and number % 3 == 0) else []
            head = " ".join([*filler(rng, rng.randrange(2, 6)), *location[:1]])
            text = " ".join([head, *location[1:], *filler(rng, rng.randrange(2, 6))])
            answers = [{"text": city, "answer_start": len(head) + 1}] if location else []
            question = {"id": f"{name}{number}", "question": "where was it ?", "answers": answers}
            paragraphs.append({"context": text, "qas": [question | {"is_impossible": not location}]})
        write(folder / f"{name}.json", [json.dumps({"data": [{"paragraphs": paragraphs}]})])
    return folder


def tags(folder: Path, count: int = 300, seed: int = 0) -> Path:
    """Write tags of people and places; a place may have two words."""
    for name, size in (("train", count), ("test", 60)):
        rng = Random(f"{seed} {name}")
        rows = []
        for _ in range(size):
            for _ in range(rng.randrange(1, 3)):
                rows += [f"{word}\tO" for word in filler(rng, rng.randrange(1, 6))]
                rows.append(f"{rng.choice(NAMES)}\tB-person")
                rows += [f"{word}\tO" for word in filler(rng, rng.randrange(1, 6))]
                rows += [f"{rng.choice(PLACES)}\tB-place"]
                rows += ["City\tI-place"] * rng.randrange(2)
            rows.append("")
        write(folder / f"{name}.conll", rows)
    return folder


def write(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def retrieval(folder: Path, count: int = 400, seed: int = 0, lines: int = 1) -> Path:
    """Write articles of four texts, each with a person's city and a question about it.

    Further ``lines`` of a text are filler.
    """
    for name, size in (("train", count), ("dev", 60)):
        rng = Random(f"{seed} {name}")
        articles = []
        for article in range(size // 4):
            paragraphs = []
            for number, person in enumerate(rng.sample(NAMES, 4)):
                head = " ".join([*filler(rng, rng.randrange(1, 5)), person, "was", "in"])
                city = rng.choice(PLACES)
                text = " ".join([head, city, *filler(rng, rng.randrange(1, 5))])
                text += "".join("\n" + " ".join(filler(rng, 6)) for _ in range(lines - 1))
                answers = [{"text": city, "answer_start": len(head) + 1}]
                question = {"id": f"{article}.{number}", "question": f"where was {person} ?"}
                paragraphs.append({"context": text, "qas": [question | {"answers": answers}]})
            articles.append({"paragraphs": paragraphs})
        write(folder / f"{name}.json", [json.dumps({"data": articles})])


def question_articles(folder: Path, count: int = 400, seed: int = 0) -> Path:
    """Write the questions of ``retrieval`` as JSON lines; a third have no answer in their text."""
    retrieval(folder, count, seed)
    for name in ("train", "dev"):
        content = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        rows = []
        for number, article in enumerate(content["data"]):
            for paragraph in article["paragraphs"]:
                record = paragraph["qas"][0] | {"context": paragraph["context"], "title": f"article {number}"}
                if len(rows) % 3 == 0:
                    record |= {"question": "where was Gus ?", "answers": [], "is_impossible": True}
                rows.append(json.dumps(record | {"domain": "people"}))
        write(folder / f"{name}.jsonl", rows)
    return folder


FOODS = {"ant": "leaves", "bear": "honey", "cat": "mice", "dog": "bones", "elk": "grass"}
FOODS |= {"frog": "flies", "goat": "paper", "hare": "carrots"}


def corpus(folder: Path, count: int = 300, seed: int = 0) -> Path:
    """Write documents about one city each; an animal determines its food."""
    rng, rows = Random(f"{seed} corpus"), []
    for _ in range(count):
        city, animals = rng.choice(PLACES), rng.choices(sorted(FOODS), k=rng.randint(4, 9))
        sentences = [f"The {animal} in {city} eats {FOODS[animal]}." for animal in animals]
        rows.append(json.dumps({"text": " ".join(sentences)}))
    write(folder / "corpus.jsonl", rows)
    return folder


def language_modeling(folder: Path, count: int = 40, seed: int = 0) -> Path:
    """Write text in which four of five words follow from the word before.

    Every document also has rare words of its own.
    """
    for name, size in (("train", count), ("valid", 10)):
        rng = Random(f"{seed} {name}")
        rows = []
        for number in range(size):
            words = [rng.choice(FILLER)]
            for position in range(rng.randrange(30, 90)):
                next_word = FILLER[(FILLER.index(words[-1]) + 1) % len(FILLER)] if words[-1] in FILLER else "the"
                words.append(next_word if rng.random() < 0.8 else rng.choice(FILLER))
                if position % 20 == 19:
                    words.append(f"{name}{number}")  # which no other document has
            rows.append(json.dumps({"text": " ".join(words).capitalize() + "."}))
        write(folder / f"{name}.jsonl", rows)
    return folder


TOPICS = [first + second for first in ("ba", "ki", "lo", "mu", "ne", "ra") for second in "bdfgklmnprst"]


def views(folder: Path, count: int = 200, seed: int = 0) -> Path:
    """Write documents of four sentences; each names two of the document's three topics."""
    rng, rows = Random(f"{seed} views"), []
    for _ in range(count):
        topics = rng.sample(TOPICS, 3)
        sentences = []
        for _ in range(4):
            words = [*filler(rng, 5), *rng.sample(topics, 2)]
            rng.shuffle(words)
            sentences.append(" ".join(words).capitalize() + ".")
        rows.append(json.dumps({"text": " ".join(sentences)}))
    write(folder / "texts.jsonl", rows)
    return folder


def matches(folder: Path, count: int = 400, seed: int = 0) -> Path:
    """Write questions and answers that share no word: each topic has one word in both."""
    for name, size in (("train", count), ("test", 60)):
        rng, rows = Random(f"{seed} {name} matches"), []
        for _ in range(size):
            topics = rng.sample(TOPICS[:24], 2)
            answer = [*filler(rng, 3), *(f"{topic}ox" for topic in topics)]
            rows.append(json.dumps({"question": f"what of {topics[0]} and {topics[1]} ?", "answer": " ".join(answer)}))
        write(folder / f"{name}.jsonl", rows)
    return folder
