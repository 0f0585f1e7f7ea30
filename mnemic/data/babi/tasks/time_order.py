"""Task 14: people move at times of day that the story mentions out of order."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from mnemic.data.babi.tasks.story_builder import NUM_QUESTIONS, CandidateQuestion, StoryBuilder
from mnemic.data.babi.tasks.world import MOVE_VERBS, NUM_RECENT_EVENTS, TOWNSPEOPLE

TIMES = ("yesterday", "this morning", "this afternoon", "this evening")
NUM_SENTENCES_PER_ROUND = 2


class Visit(NamedTuple):
    """A person's visit to a location at a time of day."""

    person: str
    location: str
    time: int


def write_time_order_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 14: "Where was Julie before the park?"."""
    visits: list[Visit] = []
    lines: dict[Visit, int] = {}
    while story.num_questions < NUM_QUESTIONS:
        new_visits: list[Visit] = []
        while not new_visits or not list_askable_visits(visits):  # the first question may need more than one pair
            for _ in range(NUM_SENTENCES_PER_ROUND):
                new_visits.append(draw_visit(visits, generator))
                visits.append(new_visits[-1])
        for visit in derange_visits(new_visits, generator):
            lines[visit] = story.add_sentence(describe_visit(visit, generator))
        story.add_question(*ask_where_before(generator.choice(list_askable_visits(visits)), visits, lines))


def draw_visit(visits: Sequence[Visit], generator: Random) -> Visit:
    """Draw the next visit of a random person to another location.

    It takes place at the time after the person's last visit; nobody moves after the evening.
    """
    last_visits = {visit.person: visit for visit in visits}
    people_at_home = {person for person, visit in last_visits.items() if visit.time == len(TIMES) - 1}
    person = generator.choice([person for person in TOWNSPEOPLE.people if person not in people_at_home])
    last_visit = last_visits.get(person)
    current_location = last_visit.location if last_visit else ""
    location = generator.choice([location for location in TOWNSPEOPLE.locations if location != current_location])
    return Visit(person, location, last_visit.time + 1 if last_visit else 0)


def list_askable_visits(visits: Sequence[Visit]) -> list[Visit]:
    """List the recent visits with a known earlier location of the same person."""
    return [visit for visit in visits[-NUM_RECENT_EVENTS:] if visit.time > 0]


def derange_visits(visits: Sequence[Visit], generator: Random) -> list[Visit]:
    """Shuffle visits so that none keeps its position (Sattolo 1986): two always swap."""
    shuffled = list(visits)
    for last in range(len(shuffled) - 1, 0, -1):
        swap = generator.randrange(last)
        shuffled[last], shuffled[swap] = shuffled[swap], shuffled[last]
    return shuffled


def describe_visit(visit: Visit, generator: Random) -> str:
    """Describe a visit in a sentence that starts or ends with the time."""
    time = TIMES[visit.time]
    clause = f"{visit.person} {generator.choice(MOVE_VERBS)} to the {visit.location}"
    return f"{time.capitalize()} {clause}." if generator.random() < 0.5 else f"{clause} {time}."


def ask_where_before(visit: Visit, visits: Sequence[Visit], lines: dict[Visit, int]) -> CandidateQuestion:
    """Ask where a person was before the last visit to a location."""
    visits_by_time = {past_visit.time: past_visit for past_visit in visits if past_visit.person == visit.person}
    last = max(time for time, past_visit in visits_by_time.items() if past_visit.location == visit.location)
    facts = (lines[visits_by_time[last]], lines[visits_by_time[last - 1]])
    text = f"Where was {visit.person} before the {visit.location}? "
    return CandidateQuestion(text, visits_by_time[last - 1].location, facts)
