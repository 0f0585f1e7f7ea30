"""Task 20: people go where their need is met, and get an object for it."""

from random import Random

from mnemic.data.babi.tasks.story_builder import StoryBuilder
from mnemic.data.babi.tasks.world import WorldEvent, describe_event

PEOPLE = ("Antoine", "Jason", "Sumit", "Yann")
NEEDS = {  # need -> (location, object)
    "hungry": ("kitchen", "apple"),
    "thirsty": ("kitchen", "milk"),
    "tired": ("bedroom", "pajamas"),
    "bored": ("garden", "football"),
}


def write_motivations_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 20: "Why did sumit get the milk?".

    Each sentence has one question, such as "Where will sumit go?" after "Sumit is thirsty.". There
    is one object per need, so of several people with the same need only the first gets it.
    """
    needs: dict[str, tuple[str, int]] = {}  # person -> (need, line)
    people_on_site: set[str] = set()
    met_needs: set[str] = set()
    while active_people := [
        person for person in PEOPLE if person not in people_on_site or needs[person][0] not in met_needs
    ]:
        person = generator.choice(active_people)
        name = person.lower()
        if person not in needs:
            need = generator.choice(tuple(NEEDS))
            needs[person] = need, story.add_sentence(f"{person} is {need}.")
            story.add_question(f"Where will {name} go?", NEEDS[need][0], (needs[person][1],))
            continue
        need, line = needs[person]
        location, object_name = NEEDS[need]
        if person not in people_on_site:
            people_on_site.add(person)
            story.add_sentence(describe_event(WorldEvent("move", person, location), generator))
            story.add_question(f"Why did {name} go to the {location}?", need, (line,))
        else:
            met_needs.add(need)
            story.add_sentence(describe_event(WorldEvent("take", person, object_name), generator))
            story.add_question(f"Why did {name} get the {object_name}?", need, (line,))
