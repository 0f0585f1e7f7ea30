"""Generate a synthetic film knowledge base and its questions, in MetaQA's format."""

from collections.abc import Mapping, Sequence
from random import Random

from mnemic.data.knowledge.format import Fact, KnowledgeDocument, KnowledgeQuestion

FIRST_NAMES = ("Ada", "Bruno", "Cleo", "Dario", "Edith", "Felix", "Greta", "Hugo", "Ines", "Jonas")
LAST_NAMES = ("Adler", "Brandt", "Costa", "Duval", "Engel", "Ferro", "Grau", "Holm", "Ivers", "Jansen")
TITLE_ADJECTIVES = ("Silent", "Broken", "Golden", "Hidden", "Last", "Frozen", "Secret", "Distant", "Burning")
TITLE_NOUNS = ("River", "Garden", "Harbour", "Letter", "Winter", "Mirror", "Station", "Island", "Orchard")
GENRES = ("Drama", "Comedy", "Horror", "Western")

# relation → questions that name the film, and questions that name the other entity
QUESTION_TEMPLATES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "directed_by": (
        ("who directed {}", "who is the director of {}", "{} was directed by whom"),
        ("what films did {} direct", "which movies was {} the director of"),
    ),
    "written_by": (
        ("who wrote {}", "who is the writer of {}"),
        ("what films did {} write", "which movies was {} the writer of"),
    ),
    "starred_actors": (
        ("who acted in {}", "who are the actors in {}"),
        ("what films did {} act in", "which movies does {} appear in"),
    ),
    "release_year": (
        ("when was {} released", "what is the release year of {}"),
        ("which films came out in {}", "what movies were released in {}"),
    ),
    "has_genre": (("what genre is {}", "what kind of film is {}"), ()),
}

# relation → a sentence of a film's document
SENTENCE_TEMPLATES: Mapping[str, str] = {
    "directed_by": "{1} directed {0}.",
    "written_by": "{1} wrote {0}.",
    "starred_actors": "{1} acted in {0}.",
    "release_year": "{0} was released in {1}.",
    "has_genre": "{0} is a {1}.",
}


def make_facts(num_films: int, generator: Random) -> list[Fact]:
    """Generate the facts of ``num_films`` films with distinct titles."""
    titles = [f"The {adjective} {noun}" for adjective in TITLE_ADJECTIVES for noun in TITLE_NOUNS]
    titles += [f"{title} {sequel}" for sequel in range(2, num_films // len(titles) + 2) for title in titles]
    people = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    facts: list[Fact] = []
    for title in generator.sample(titles, num_films):
        facts += [
            Fact(title, "directed_by", generator.choice(people)),
            Fact(title, "written_by", generator.choice(people)),
            *(Fact(title, "starred_actors", name) for name in generator.sample(people, 2)),
            Fact(title, "release_year", str(generator.randint(1950, 2019))),
            Fact(title, "has_genre", generator.choice(GENRES)),
        ]
    return facts


def make_documents(facts: Sequence[Fact]) -> list[KnowledgeDocument]:
    """Write one document per film that states its facts in sentences."""
    sentences_by_film: dict[str, list[str]] = {}
    for fact in facts:
        sentences_by_film.setdefault(fact.subject, []).append(
            SENTENCE_TEMPLATES[fact.relation].format(fact[0], fact[2])
        )
    return [KnowledgeDocument(film, " ".join(sentences)) for film, sentences in sentences_by_film.items()]


def make_questions(facts: Sequence[Fact], generator: Random) -> list[KnowledgeQuestion]:
    """Generate all questions that the facts can answer, shuffled."""
    answers_by_question: dict[tuple[str, str], list[str]] = {}  # (template, entity) → answers
    for fact in facts:
        forward, backward = QUESTION_TEMPLATES[fact.relation]
        for template in forward:
            answers_by_question.setdefault((template, fact.subject), []).append(fact.object)
        for template in backward:
            answers_by_question.setdefault((template, fact.object), []).append(fact.subject)
    questions = [
        KnowledgeQuestion(template.format(f"[{name}]"), tuple(dict.fromkeys(answers)))
        for (template, name), answers in answers_by_question.items()
    ]
    generator.shuffle(questions)
    return questions
