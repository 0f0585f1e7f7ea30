"""A made-up film base and questions about it, in the shape of MetaQA: no files needed."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from mnemic.data.knowledge.documents import Document
from mnemic.data.knowledge.format import Fact, Question

FIRST = ("Ada", "Bruno", "Cleo", "Dario", "Edith", "Felix", "Greta", "Hugo", "Ines", "Jonas")
LAST = ("Adler", "Brandt", "Costa", "Duval", "Engel", "Ferro", "Grau", "Holm", "Ivers", "Jansen")
MOODS = ("Silent", "Broken", "Golden", "Hidden", "Last", "Frozen", "Secret", "Distant", "Burning")
THINGS = (
    "River",
    "Garden",
    "Harbour",
    "Letter",
    "Winter",
    "Mirror",
    "Station",
    "Island",
    "Orchard",
)
GENRES = ("Drama", "Comedy", "Horror", "Western")

# relation → how it is asked for from the film, and from the other end
ASKED: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
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
TOLD: Mapping[str, str] = {
    "directed_by": "{1} directed {0}.",
    "written_by": "{1} wrote {0}.",
    "starred_actors": "{1} acted in {0}.",
    "release_year": "{0} was released in {1}.",
    "has_genre": "{0} is a {1}.",
}


def make_facts(films: int, dice: Random) -> list[Fact]:
    """Everything about ``films`` films, each with a title of its own."""
    titles = [f"The {mood} {thing}" for mood in MOODS for thing in THINGS]
    titles += [f"{title} {part}" for part in range(2, films // len(titles) + 2) for title in titles]
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    facts: list[Fact] = []
    for title in dice.sample(titles, films):
        facts += [
            Fact(title, "directed_by", dice.choice(people)),
            Fact(title, "written_by", dice.choice(people)),
            *(Fact(title, "starred_actors", name) for name in dice.sample(people, 2)),
            Fact(title, "release_year", str(dice.randint(1950, 2019))),
            Fact(title, "has_genre", dice.choice(GENRES)),
        ]
    return facts


def make_documents(facts: Sequence[Fact]) -> list[Document]:
    """A document a film, which tells its facts in plain sentences."""
    told: dict[str, list[str]] = {}
    for fact in facts:
        told.setdefault(fact.subject, []).append(TOLD[fact.relation].format(fact[0], fact[2]))
    return [Document(film, " ".join(sentences)) for film, sentences in told.items()]


def make_questions(facts: Sequence[Fact], dice: Random) -> list[Question]:
    """Every question of every way of asking, with all its right answers, shuffled."""
    questions = list(each_question(facts))
    dice.shuffle(questions)
    return questions


def each_question(facts: Sequence[Fact]) -> Iterator[Question]:
    ends: dict[tuple[str, str], list[str]] = {}  # (way of asking, entity) → answers
    for fact in facts:
        onward, back = ASKED[fact.relation]
        for way in onward:
            ends.setdefault((way, fact.subject), []).append(fact.object)
        for way in back:
            ends.setdefault((way, fact.object), []).append(fact.subject)
    for (way, name), answers in ends.items():
        yield Question(way.format(f"[{name}]"), tuple(dict.fromkeys(answers)))
