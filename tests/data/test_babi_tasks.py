"""What the single tasks' stories are like, beyond being solvable: as the official files show it."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from mnemic.data.babi.folder import load_task
from mnemic.data.babi.format import Story, StoryExample, StoryQuestion, StorySentence, extract_examples
from mnemic.data.babi.generate import generate_stories

OFFICIAL = Path(__file__).parents[3] / "shared/data/babi/en"


@cache
def made(task: int, count: int = 500) -> tuple[Story, ...]:
    return tuple(generate_stories(task, count, seed=3))


def asked(task: int, count: int = 500) -> list[StoryExample]:
    return [example for story in made(task, count) for example in extract_examples(story, task)]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (6, {"yes": 0.5, "no": 0.5}),
        (7, {"one": 0.49, "none": 0.47, "two": 0.04}),
        (9, {"no": 0.625, "yes": 0.375}),
        (10, {"no": 0.475, "yes": 0.375, "maybe": 0.15}),
        (17, {"yes": 0.5, "no": 0.5}),
        (18, {"yes": 0.5, "no": 0.5}),
        (20, {"kitchen": 0.187, "garden": 0.093, "bedroom": 0.093, "hungry": 0.157}),
    ],
)
def test_answers_are_as_frequent_as_in_official_files(task: int, expected: dict[str, float]) -> None:
    answers = Counter(example.answer for example in asked(task, 2000))
    shares = {name: answers[name] / answers.total() for name in expected}
    assert shares == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("task", [1, 2, 3, 5, 6, 9, 10])
def test_the_first_fact_is_one_of_the_last_five_sentences(task: int) -> None:
    lags = {len(example.sentences) - example.facts[0] for example in asked(task)}
    assert lags == {1, 2, 3, 4, 5}


def test_no_one_moves_to_where_they_are() -> None:
    for story in made(1):
        place: dict[str, str] = {}
        for line in story:
            if not isinstance(line, StoryQuestion):
                person, *_, here = line.text.rstrip(".").split()
                assert place.get(person) != here
                place[person] = here


def test_induction_has_one_other_animal_or_more_than_two() -> None:
    """With exactly two others of the kind the official files never ask."""
    others: Counter[int] = Counter()
    for example in asked(16):
        kinds = dict(re.findall(r"(\w+) is a (\w+)\.", " ".join(example.sentences)))
        name = example.question.split()[-1].rstrip("?")
        others[sum(kind == kinds[name] for kind in kinds.values()) - 1] += 1
    assert set(others) <= {1, 3, 4}
    assert others[1] > 4 * others[3]


def test_two_sentences_on_one_day_swap() -> None:
    """Task 14 tells two visits of one person between two questions always later one first."""
    order = ["yesterday", "this morning", "this afternoon", "this evening"]
    for story in made(14):
        asks = [0, *(n for n, line in enumerate(story, start=1) if isinstance(line, StoryQuestion))]
        for start, end in pairwise(asks):
            told = [line.text for line in story[start : end - 1]]
            names = [re.findall("Bill|Fred|Julie|Mary", text)[0] for text in told]
            if len(told) == 2 and names[0] == names[1]:
                times = [next(t for t in order if t in text.lower()) for text in told]
                assert order.index(times[0]) > order.index(times[1])


def test_a_denial_names_the_last_known_place() -> None:
    denial = re.compile(r"(\w+) is (?:not|no longer) in the (\w+)\.")
    known = 0
    for story in made(9):
        place: dict[str, str] = {}
        for line in story:
            if match := denial.fullmatch(line.text):
                known += match[1] in place
                assert place.pop(match[1], match[2]) == match[2]
            elif isinstance(line, StorySentence):
                person, *_, place[person] = line.text.rstrip(".").split()
    assert known > 50


def test_gifts_follow_the_order_of_things_and_people() -> None:
    """Who holds several things gives the first of apple, football and milk."""
    several = 0
    for story in made(5):
        holder: dict[str, str] = {}
        for line in story:
            match = re.match(r"(\w+) .*?the (apple|football|milk)(?: to (\w+))?", line.text)
            if isinstance(line, StoryQuestion) or not match:
                continue
            own = sorted(thing for thing, person in holder.items() if person == match[1])
            if match[3]:
                assert match[2] == own[0]
                several += len(own) > 1
            holder[match[2]] = match[3] or match[1]
            if re.search("dropped|left|discarded|put down", line.text):
                del holder[match[2]]
    assert several > 10


def named_first(example: StoryExample) -> bool:
    """Whether the first fact is about what the question names first."""
    named = re.search(r"the ((?:\w+ )?\w+?)\b(?: to| above| below|\?)", example.question)
    assert named, example.question
    return f"{named[1]} " in example.sentences[example.facts[0]].replace(".", " ")


ORDERS: dict[int, Callable[[StoryExample], bool]] = {
    2: lambda e: " to the " not in e.sentences[e.facts[0]],
    3: lambda e: " to the " not in e.sentences[e.facts[0]] and e.facts[1] > e.facts[2],
    7: lambda e: list(e.facts) == sorted(e.facts),
    11: lambda e: e.facts[0] == e.facts[1] - 1,
    13: lambda e: e.facts[0] == e.facts[1] - 1,
    14: lambda e: e.question.split()[-1].rstrip("?") in e.sentences[e.facts[0]],
    15: lambda e: " is a " in e.sentences[e.facts[0]],
    16: lambda e: [" is a " in e.sentences[fact] for fact in e.facts] == [True, True, False],
    17: named_first,
    19: named_first,
}


@pytest.mark.parametrize("task", ORDERS)
def test_facts_come_in_the_order_of_the_official_files(task: int) -> None:
    for example in asked(task):
        assert ORDERS[task](example), example


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason=f"no official files: {OFFICIAL}")
@pytest.mark.parametrize("task", ORDERS)
def test_official_files_have_that_order(task: int) -> None:
    for example in load_task(OFFICIAL, task, "train"):
        assert ORDERS[task](example), example
