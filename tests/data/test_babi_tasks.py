"""Properties of the stories of each task, as in the official files."""

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
def cached_stories(task: int, count: int = 500) -> tuple[Story, ...]:
    return tuple(generate_stories(task, count, seed=3))


def cached_examples(task: int, count: int = 500) -> list[StoryExample]:
    return [example for story in cached_stories(task, count) for example in extract_examples(story, task)]


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
    answers = Counter(example.answer for example in cached_examples(task, 2000))
    shares = {name: answers[name] / answers.total() for name in expected}
    assert shares == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("task", [1, 2, 3, 5, 6, 9, 10])
def test_the_first_fact_is_one_of_the_last_five_sentences(task: int) -> None:
    lags = {len(example.sentences) - example.facts[0] for example in cached_examples(task)}
    assert lags == {1, 2, 3, 4, 5}


def test_no_one_moves_to_where_they_are() -> None:
    for story in cached_stories(1):
        room_of: dict[str, str] = {}
        for line in story:
            if not isinstance(line, StoryQuestion):
                person, *_, room = line.text.rstrip(".").split()
                assert room_of.get(person) != room
                room_of[person] = room


def test_induction_has_one_other_animal_or_more_than_two() -> None:
    """The official files never ask with exactly two other animals of the kind."""
    counts: Counter[int] = Counter()
    for example in cached_examples(16):
        kinds = dict(re.findall(r"(\w+) is a (\w+)\.", " ".join(example.sentences)))
        name = example.question.split()[-1].rstrip("?")
        counts[sum(kind == kinds[name] for kind in kinds.values()) - 1] += 1
    assert set(counts) <= {1, 3, 4}
    assert counts[1] > 4 * counts[3]


def test_two_sentences_on_one_day_swap() -> None:
    """In task 14, of two visits of a person between questions, the later comes first."""
    order = ["yesterday", "this morning", "this afternoon", "this evening"]
    for story in cached_stories(14):
        question_lines = [0, *(n for n, line in enumerate(story, start=1) if isinstance(line, StoryQuestion))]
        for start, end in pairwise(question_lines):
            sentences = [line.text for line in story[start : end - 1]]
            names = [re.findall("Bill|Fred|Julie|Mary", text)[0] for text in sentences]
            if len(sentences) == 2 and names[0] == names[1]:
                times = [next(time for time in order if time in text.lower()) for text in sentences]
                assert order.index(times[0]) > order.index(times[1])


def test_a_denial_names_the_last_known_place() -> None:
    denial = re.compile(r"(\w+) is (?:not|no longer) in the (\w+)\.")
    num_known = 0
    for story in cached_stories(9):
        room_of: dict[str, str] = {}
        for line in story:
            if match := denial.fullmatch(line.text):
                num_known += match[1] in room_of
                assert room_of.pop(match[1], match[2]) == match[2]
            elif isinstance(line, StorySentence):
                person, *_, room_of[person] = line.text.rstrip(".").split()
    assert num_known > 50


def test_gifts_follow_the_order_of_things_and_people() -> None:
    """A person with several objects gives the first of apple, football and milk."""
    num_choices = 0
    for story in cached_stories(5):
        holder: dict[str, str] = {}
        for line in story:
            match = re.match(r"(\w+) .*?the (apple|football|milk)(?: to (\w+))?", line.text)
            if isinstance(line, StoryQuestion) or not match:
                continue
            objects_held = sorted(object_name for object_name, person in holder.items() if person == match[1])
            if match[3]:
                assert match[2] == objects_held[0]
                num_choices += len(objects_held) > 1
            holder[match[2]] = match[3] or match[1]
            if re.search("dropped|left|discarded|put down", line.text):
                del holder[match[2]]
    assert num_choices > 10


def has_named_object_first(example: StoryExample) -> bool:
    """Report whether the first fact is about the first object of the question."""
    match = re.search(r"the ((?:\w+ )?\w+?)\b(?: to| above| below|\?)", example.question)
    assert match, example.question
    return f"{match[1]} " in example.sentences[example.facts[0]].replace(".", " ")


ORDERS: dict[int, Callable[[StoryExample], bool]] = {
    2: lambda e: " to the " not in e.sentences[e.facts[0]],
    3: lambda e: " to the " not in e.sentences[e.facts[0]] and e.facts[1] > e.facts[2],
    7: lambda e: list(e.facts) == sorted(e.facts),
    11: lambda e: e.facts[0] == e.facts[1] - 1,
    13: lambda e: e.facts[0] == e.facts[1] - 1,
    14: lambda e: e.question.split()[-1].rstrip("?") in e.sentences[e.facts[0]],
    15: lambda e: " is a " in e.sentences[e.facts[0]],
    16: lambda e: [" is a " in e.sentences[fact] for fact in e.facts] == [True, True, False],
    17: has_named_object_first,
    19: has_named_object_first,
}


@pytest.mark.parametrize("task", ORDERS)
def test_facts_come_in_the_order_of_the_official_files(task: int) -> None:
    for example in cached_examples(task):
        assert ORDERS[task](example), example


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason=f"no official files: {OFFICIAL}")
@pytest.mark.parametrize("task", ORDERS)
def test_official_files_have_that_order(task: int) -> None:
    for example in load_task(OFFICIAL, task, "train"):
        assert ORDERS[task](example), example
