"""Generate short plain statements, and questions that they answer or nearly answer."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mnemic.data.documents import pools
from mnemic.data.documents.pools import SplitSampler, split_phrases, split_words
from mnemic.data.documents.writer import DocumentWriter, GeneratedQuestion, Spans, ask_question

MAX_STATEMENTS = 3
ADJECTIVES = split_words(
    """Silent, Golden, Broken, Distant, Hidden, Winter, Scarlet, Last, Paper, Glass, Northern, Burning, Forgotten,
    Iron, Quiet, Second, Hollow, Silver, Restless, Endless"""
)
NOUNS = split_words(
    """Harbor, Orchard, Clock, River, Letter, Garden, Bridge, Mirror, Island, Tower, Voyage, Lantern, Stranger, Forest,
    Season, Mountain, Window, Shore, Market, Kingdom"""
)
BUILDINGS = split_phrases(
    """lighthouse of {city} | town hall of {city} | cathedral of {city} | old bridge of {city} | station of {city} |
    opera house of {city} | library of {city} | main theater of {city}"""
)
LANDS = split_words(
    """Valdoria, Kestria, Normark, Ostavia, Perenia, Quillon, Ruvania, Sylvara, Tarkia, Ombria, Velland, Zorvia,
    Arland, Belmora, Cardan, Drusk"""
)


class Relation(NamedTuple):
    """Statements about a ``{subject}`` and a ``{value}``, and questions for either."""

    make_subject: Callable[[SplitSampler], str]
    make_value: Callable[[SplitSampler], str]
    statements: Sequence[str]
    value_questions: Sequence[str]  # name the subject
    subject_questions: Sequence[str]  # name the value


def make_title(sampler: SplitSampler) -> str:
    """Make the title of a work."""
    return f"The {sampler.choose(ADJECTIVES)} {sampler.choose(NOUNS)}"


def make_building(sampler: SplitSampler) -> str:
    """Name a building by its city."""
    return sampler.choose(BUILDINGS).format(city=sampler.choose(pools.CITIES))


def make_year(sampler: SplitSampler) -> str:
    """Make a year."""
    return str(sampler.generator.randint(1650, 2024))


def make_city(sampler: SplitSampler) -> str:
    """Choose a city."""
    return sampler.choose(pools.CITIES)


def make_land(sampler: SplitSampler) -> str:
    """Choose a country that does not exist."""
    return sampler.choose(LANDS)


def make_thing(sampler: SplitSampler) -> str:
    """Choose a thing."""
    return sampler.choose(pools.THINGS)


def make_company(sampler: SplitSampler) -> str:
    """Choose a company."""
    return sampler.choose(pools.COMPANIES)


RELATIONS = (
    Relation(
        SplitSampler.draw_name,
        make_title,
        split_phrases(
            """{subject} wrote {value}. | {value} was written by {subject}. | The author of {value} is {subject}. |
            {value} is a novel by {subject}."""
        ),
        split_phrases(
            """What did {subject} write? | Which novel is by {subject}? | What is the book of {subject} called? |
            Which book was written by {subject}?"""
        ),
        split_phrases(
            """Who wrote {value}? | By whom is {value}? | Who is the author of {value}? | Who was {value} written
            by?"""
        ),
    ),
    Relation(
        SplitSampler.draw_name,
        make_title,
        split_phrases(
            """{subject} painted {value}. | {value} is a painting by {subject}. | The painter of {value} was {subject}.
            | {value} was painted by {subject}."""
        ),
        split_phrases(
            """What did {subject} paint? | Which painting is by {subject}? | What is the picture of {subject} called? |
            Which picture was painted by {subject}?"""
        ),
        split_phrases(
            """Who painted {value}? | Whose painting is {value}? | Who is the painter of {value}? | Who was {value}
            painted by?"""
        ),
    ),
    Relation(
        SplitSampler.draw_name,
        make_company,
        split_phrases(
            """{subject} founded {value}. | {value} was founded by {subject}. | {subject} is the founder of {value}. |
            {value} was started by {subject}."""
        ),
        split_phrases(
            """What did {subject} found? | Which company was founded by {subject}? | Which firm is {subject} the founder
            of? | What company did {subject} start?"""
        ),
        split_phrases(
            """Who founded {value}? | Who is the founder of {value}? | By whom was {value} founded? | Who started
            {value}?"""
        ),
    ),
    Relation(
        SplitSampler.draw_name,
        make_city,
        split_phrases(
            """{subject} was born in {value}. | {subject} comes from {value}. | The birthplace of {subject} is {value}.
            | {value} is where {subject} was born."""
        ),
        split_phrases(
            """Where was {subject} born? | Where does {subject} come from? | In which city was {subject} born? | What is
            the birthplace of {subject}?"""
        ),
        split_phrases(
            """Who was born in {value}? | Who comes from {value}? | Whose birthplace is {value}? | Which person was born
            in {value}?"""
        ),
    ),
    Relation(
        make_building,
        make_year,
        split_phrases(
            """The {subject} was built in {value}. | The {subject} dates from {value}. | The {subject} was opened in
            {value}. | In {value} the {subject} was completed."""
        ),
        split_phrases(
            """When was the {subject} built? | In which year was the {subject} built? | When was the {subject} opened? |
            What year is the {subject} from?"""
        ),
        split_phrases(
            """What was built in {value}? | Which building is from {value}? | What was opened in {value}? | What was
            completed in {value}?"""
        ),
    ),
    Relation(
        make_land,
        make_city,
        split_phrases(
            """{value} is the capital of {subject}. | The capital of {subject} is {value}. | {subject} is governed from
            {value}. | {subject} has its capital in {value}."""
        ),
        split_phrases(
            """What is the capital of {subject}? | Which city is the capital of {subject}? | From which city is
            {subject} governed? | Where is the capital of {subject}?"""
        ),
        split_phrases(
            """Of which country is {value} the capital? | Which country is governed from {value}? | Which country has
            {value} as its capital? | What country is {value} the capital of?"""
        ),
    ),
    Relation(
        SplitSampler.draw_name,
        make_thing,
        split_phrases(
            """{subject} bought a {value}. | A {value} was bought by {subject}. | {subject} owns a {value}. | There is a
            {value} that belongs to {subject}."""
        ),
        split_phrases(
            """What did {subject} buy? | What belongs to {subject}? | What does {subject} own? | Which thing is
            {subject}'s?"""
        ),
        split_phrases(
            """Who bought a {value}? | To whom does a {value} belong? | Who owns a {value}? | Whose is the {value}?"""
        ),
    ),
)


def write_facts(sampler: SplitSampler, writer: DocumentWriter) -> list[GeneratedQuestion]:
    """Write a few statements of one relation, and ask for one of them.

    A question without an answer names what the text does not, or asks for another relation of a
    subject of the text: only a name, or a verb, tells it from one with an answer.
    """
    relation, other_relation = sampler.generator.sample(RELATIONS, 2)
    num_statements = sampler.generator.randint(1, MAX_STATEMENTS)
    missing_subject, *subjects = draw_distinct_names(sampler, relation.make_subject, num_statements + 1)
    missing_value, *values = draw_distinct_names(sampler, relation.make_value, num_statements + 1)
    spans = write_statements(sampler, writer, relation, subjects, values)
    number = sampler.generator.randrange(num_statements)
    subject, value = subjects[number], values[number]
    questions = [
        ask_question(sampler.choose(relation.value_questions), spans[f"value_{number}"], subject=subject),
        ask_question(sampler.choose(relation.subject_questions), spans[f"subject_{number}"], value=value),
    ]
    if sampler.flip(0.5):
        questions.append(ask_question(sampler.choose(relation.value_questions), subject=missing_subject))
    else:
        questions.append(ask_question(sampler.choose(relation.subject_questions), value=missing_value))
    if other_relation.make_subject is relation.make_subject:
        questions.append(ask_question(sampler.choose(other_relation.value_questions), subject=subject))
    return questions


def write_statements(
    sampler: SplitSampler, writer: DocumentWriter, relation: Relation, subjects: Sequence[str], values: Sequence[str]
) -> dict[str, Spans]:
    """Write a statement per subject; return the spans of ``subject_0``, ``value_0`` and so on."""
    statements, names = list[str](), dict[str, str]()
    for number, (subject, value) in enumerate(zip(subjects, values)):
        statement = sampler.choose(relation.statements)
        statements.append(
            statement.replace("{subject}", f"{{subject_{number}}}").replace("{value}", f"{{value_{number}}}")
        )
        names |= {f"subject_{number}": subject, f"value_{number}": value}
    return writer.add_line(" ".join(statements), **names)


def draw_distinct_names(sampler: SplitSampler, make: Callable[[SplitSampler], str], count: int) -> list[str]:
    """Draw ``count`` distinct names."""
    names: dict[str, None] = {}
    while len(names) < count:
        names[make(sampler)] = None
    return [*names]
