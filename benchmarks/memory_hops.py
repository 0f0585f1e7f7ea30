"""Whether a second hop finds what the first one cannot: questions about two facts of a movie base.

    python benchmarks/memory_hops.py METAQA FOLDER [--facts 20000] [--questions 500]
        [--embedder hashed-ngrams]

METAQA is a folder with kb.txt. Its facts are written as sentences, each a record by itself, whole
films at a time until there are --facts of them; FOLDER keeps the memory. A question such as "Who
directed the film that Emily Giffin wrote?" names neither the film nor the answer: one fact says
which film it is, the other has the answer. Only people with one such film and films with one such
answer are asked about. ``proof`` is how often the second fact is among the five best sentences,
``right`` how often the answer quoted (its sentence where there is no reader) holds the right one.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mnemic import Memory

SHOWN = 5
SAID = {
    "directed_by": "{film} was directed by {other}.",
    "written_by": "{film} was written by {other}.",
    "starred_actors": "{other} starred in {film}.",
    "release_year": "{film} was released in {other}.",
    "in_language": "{film} is in {other}.",
    "has_genre": "{film} is a {other} film.",
}
WHICH = {
    "directed_by": "the film that {other} directed",
    "written_by": "the film that {other} wrote",
    "starred_actors": "the film that {other} starred in",
}
ASKED = {
    "directed_by": "Who directed {which}?",
    "written_by": "Who wrote {which}?",
    "release_year": "In which year was {which} released?",
    "has_genre": "What genre is {which}?",
}


class Fact(NamedTuple):
    film: str
    relation: str
    other: str

    @property
    def sentence(self) -> str:
        return SAID[self.relation].format(film=self.film, other=self.other)


class Question(NamedTuple):
    text: str
    answer: str
    proof: str  # the second fact


def facts_of(path: Path, most: int, dice: random.Random) -> list[Fact]:
    """All facts of films drawn by dice, about ``most`` in all."""
    films: dict[str, list[Fact]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        fact = Fact(*line.split("|"))
        if fact.relation in SAID:
            films[fact.film].append(fact)
    taken: list[Fact] = []
    for film in dice.sample(sorted(films), len(films)):
        if len(taken) >= most:
            break
        taken += films[film]
    return taken


def questions_of(facts: list[Fact], dice: random.Random, most: int) -> list[Question]:
    """Questions that two of the facts answer, and only one way."""
    by_film: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_other: dict[tuple[str, str], set[str]] = defaultdict(set)
    for film, relation, other in facts:
        by_film[film, relation].add(other)
        by_other[other, relation].add(film)
    found = []
    for (other, first), films in sorted(by_other.items()):
        film = next(iter(films))
        for second, asked in ASKED.items():
            answers = by_film.get((film, second), set())
            if first not in WHICH or second == first or len(films) > 1 or len(answers) != 1:
                continue
            answer = next(iter(answers))
            if other != answer:
                text = asked.format(which=WHICH[first].format(other=other))
                found.append(Question(text, answer, Fact(film, second, answer).sentence))
    return dice.sample(found, min(most, len(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metaqa", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--facts", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--embedder", default=None, help="for a new memory")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    dice = random.Random(given.seed)
    facts = facts_of(given.metaqa / "kb.txt", given.facts, dice)
    questions = questions_of(facts, dice, given.questions)
    given.folder.mkdir(parents=True, exist_ok=True)
    records = given.folder / "facts.jsonl"
    lines = (json.dumps({"text": fact.sentence}) + "\n" for fact in dict.fromkeys(facts))
    records.write_text("".join(lines), encoding="utf-8")
    with Memory(given.folder / "memory.db", embedder=given.embedder) as memory:
        memory.remember(records)
        for hops in (1, 2):
            proof = right = 0
            for question in questions:
                answer = memory.ask(question.text, hops=hops)
                sentences = [one.sentence for one in answer.evidence]
                proof += question.proof in sentences[:SHOWN]
                right += question.answer in answer.text
            told = {"proof": 100 * proof / len(questions), "right": 100 * right / len(questions)}
            slots = memory.stats().passages
            print(
                json.dumps({"hops": hops, "questions": len(questions), "slots": slots} | told),
                flush=True,
            )


if __name__ == "__main__":
    main()
