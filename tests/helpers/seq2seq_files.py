"""Small generated files of texts that are answered with texts."""

import gzip
import json
from pathlib import Path
from random import Random

WORDS = {"the": "die", "cat": "Katze", "dog": "Ente", "sees": "sieht", "a": "eine", "red": "rote", "old": "alte"}


def write_parallel(folder: Path, count: int = 60) -> Path:
    """Write English lines with a translation word by word, compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (("train", count), ("val", 12), ("test_2016", 12)):
        rng = Random(name)
        lines = [[rng.choice(list(WORDS)) for _ in range(rng.randrange(2, 6))] for _ in range(size)]
        for language, texts in (("en", lines), ("de", [[WORDS[word] for word in line] for line in lines])):
            with gzip.open(folder / f"{name}.{language}.gz", "wt", encoding="utf-8") as file:
                file.writelines(" ".join(words) + "\n" for words in texts)
    return folder


def write_questions(folder: Path, count: int = 30, filler: int = 4) -> Path:
    """Write passages in SQuAD format: who lives where; every passage has two questions."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (("train", count), ("dev", 8)):
        rng, paragraphs = Random(name), []
        for number in range(size):
            person, city = rng.choice(["Ann", "Bob", "Cleo"]), rng.choice(["Oslo", "Rome", "Lima"])
            lead = " ".join(["It is a small house."] * filler)
            text = f"{lead} {person} lives in {city}. {lead}"
            questions = [("Who lives in " + city + "?", person), (f"Where does {person} live?", city)]
            qas = [
                {
                    "id": f"{name}{number}.{index}",
                    "question": question,
                    "answers": [{"text": answer, "answer_start": text.index(answer)}],
                }
                for index, (question, answer) in enumerate(questions)
            ]
            qas.append({"id": f"{name}{number}.none", "question": "Why?", "answers": [], "is_impossible": True})
            paragraphs.append({"context": text, "qas": qas})
        (folder / f"{name}.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    return folder
