"""Tasks 9 and 10: people move, and some sentences are negations or indefinite.

Someone moves before each sentence. Half of the sentences state the move, a quarter state where the
person is, and a quarter only where the person no longer is (task 9) or might be (task 10).
"""

from random import Random
from typing import NamedTuple

from mnemic.data.babi.tasks.story_builder import CandidateQuestion, StoryBuilder
from mnemic.data.babi.tasks.world import NUM_RECENT_EVENTS, Cast, World, describe_event

FORMS = ("move", "move", "is", "vague")


class LocationReport(NamedTuple):
    """The last sentence about a person's location."""

    person: str
    location: str  # where the person is; in a negation, where the person no longer is
    alternatives: tuple[str, ...] = ()  # the two locations of an indefinite sentence
    is_denied: bool = False
    line: int = 0


def write_report_story(story: StoryBuilder, generator: Random, *, cast: Cast, indefinite: bool) -> None:
    """Write a story about where people are, with indefinite sentences or negations."""
    world = World(cast, generator)
    latest_reports: dict[str, LocationReport] = {}
    people: list[str] = []  # the person of each sentence

    def add_report() -> None:
        """Move someone, and add a sentence about it."""
        previous_locations = dict(world.locations)
        event = world.draw_event(("move",))
        person, location = event.actor, event.target
        report = LocationReport(person, location)
        form = generator.choice(FORMS)
        if form == "move":
            text = describe_event(event, generator)
        elif form == "is":
            text = f"{person} is in the {location}."
        elif indefinite:
            # as in the official files, the second place may be the first one again
            pair = generator.sample([location, generator.choice(cast.locations)], 2)
            report = LocationReport(person, location, alternatives=tuple(pair))
            text = f"{person} is either in the {pair[0]} or the {pair[1]}."
        else:
            report = LocationReport(person, previous_locations[person], is_denied=True)
            text = f"{person} is {generator.choice(('no longer', 'not'))} in the {report.location}."
        latest_reports[person] = report._replace(line=story.add_sentence(text))
        people.append(person)

    story.fill(
        add_report,
        lambda: ask_is_person_there(latest_reports[generator.choice(people[-NUM_RECENT_EVENTS:])], cast, generator),
    )


def ask_is_person_there(report: LocationReport, cast: Cast, generator: Random) -> CandidateQuestion:
    """Ask whether a person is at the reported location or another, equally often.

    After a negation always ask about the negated location.
    """
    elsewhere = [location for location in cast.locations if location != report.location]
    is_true = report.is_denied or generator.random() < 0.5
    location = report.location if is_true else generator.choice(elsewhere)
    answer = "yes" if is_true and not report.is_denied else "no"
    if location in report.alternatives:
        answer = "maybe"
    return CandidateQuestion(f"Is {report.person} in the {location}? ", answer, (report.line,))
