"""Measure whether a second hop helps with questions that need two facts about films.

    python benchmarks/memory_hops.py METAQA FOLDER [--facts 20000] [--questions 500]
        [--embedder hashed-ngrams]

METAQA is a folder with kb.txt. Its facts are written as sentences, one record each, all facts of a
film at a time until there are --facts of them; FOLDER holds the memory. A question such as "Who
directed the film that Emily Giffin wrote?" names neither the film nor the answer: one fact says
which film it is, the other has the answer. Only people with one such film and films with one such
answer are used. ``proof`` is how often the second fact is among the top five sentences, ``right``
how often the quoted answer (its sentence if there is no reader) contains the right one.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mnemic import Memory

TOP_K = 5
SENTENCE_TEMPLATES = {
    "directed_by": "{film} was directed by {other}.",
    "written_by": "{film} was written by {other}.",
    "starred_actors": "{other} starred in {film}.",
    "release_year": "{film} was released in {other}.",
    "in_language": "{film} is in {other}.",
    "has_genre": "{film} is a {other} film.",
}
FILM_TEMPLATES = {
    "directed_by": "the film that {other} directed",
    "written_by": "the film that {other} wrote",
    "starred_actors": "the film that {other} starred in",
}
QUESTION_TEMPLATES = {
    "directed_by": "Who directed {which}?",
    "written_by": "Who wrote {which}?",
    "release_year": "In which year was {which} released?",
    "has_genre": "What genre is {which}?",
}


class FilmFact(NamedTuple):
    """A relation of a film to a person, year, language or genre."""

    film: str
    relation: str
    entity: str

    @property
    def sentence(self) -> str:
        """Return the fact as a sentence."""
        return SENTENCE_TEMPLATES[self.relation].format(film=self.film, other=self.entity)


class HopQuestion(NamedTuple):
    """A question that needs two facts."""

    text: str
    answer: str
    proof: str  # the second fact


def sample_facts(path: Path, max_facts: int, generator: random.Random) -> list[FilmFact]:
    """Sample films with all their facts, about ``max_facts`` in total."""
    films: dict[str, list[FilmFact]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        fact = FilmFact(*line.split("|"))
        if fact.relation in SENTENCE_TEMPLATES:
            films[fact.film].append(fact)
    facts: list[FilmFact] = []
    for film in generator.sample(sorted(films), len(films)):
        if len(facts) >= max_facts:
            break
        facts += films[film]
    return facts


def sample_questions(facts: list[FilmFact], generator: random.Random, max_questions: int) -> list[HopQuestion]:
    """Sample questions that exactly two of the facts answer."""
    entities_by_film: dict[tuple[str, str], set[str]] = defaultdict(set)
    films_by_entity: dict[tuple[str, str], set[str]] = defaultdict(set)
    for film, relation, entity in facts:
        entities_by_film[film, relation].add(entity)
        films_by_entity[entity, relation].add(film)
    questions = []
    for (entity, first), films in sorted(films_by_entity.items()):
        film = next(iter(films))
        for second, template in QUESTION_TEMPLATES.items():
            answers = entities_by_film.get((film, second), set())
            if first not in FILM_TEMPLATES or second == first or len(films) > 1 or len(answers) != 1:
                continue
            answer = next(iter(answers))
            if entity != answer:
                text = template.format(which=FILM_TEMPLATES[first].format(other=entity))
                questions.append(HopQuestion(text, answer, FilmFact(film, second, answer).sentence))
    return generator.sample(questions, min(max_questions, len(questions)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metaqa", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--facts", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--embedder", default=None, help="for a new memory")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    generator = random.Random(args.seed)
    facts = sample_facts(args.metaqa / "kb.txt", args.facts, generator)
    questions = sample_questions(facts, generator, args.questions)
    args.folder.mkdir(parents=True, exist_ok=True)
    records = args.folder / "facts.jsonl"
    lines = (json.dumps({"text": fact.sentence}) + "\n" for fact in dict.fromkeys(facts))
    records.write_text("".join(lines), encoding="utf-8")
    with Memory(args.folder / "memory.db", embedder=args.embedder) as memory:
        memory.remember(records)
        for hops in (1, 2):
            num_proofs = num_right = 0
            for question in questions:
                answer = memory.ask(question.text, hops=hops)
                sentences = [evidence.sentence for evidence in answer.evidence]
                num_proofs += question.proof in sentences[:TOP_K]
                num_right += question.answer in answer.text
            metrics = {"proof": 100 * num_proofs / len(questions), "right": 100 * num_right / len(questions)}
            num_slots = memory.stats().passages
            print(json.dumps({"hops": hops, "questions": len(questions), "slots": num_slots} | metrics), flush=True)


if __name__ == "__main__":
    main()
