"""Generated stories are reproducible, solvable from their facts, and like official ones."""

import json
import re
import runpy
from functools import cache
from pathlib import Path

import pytest
from story_solver import solve

from mnemic.data.babi.folder import FILE_SPLITS, TASKS, load_task
from mnemic.data.babi.format import (
    Story,
    StoryError,
    StoryExample,
    StoryQuestion,
    extract_examples,
    format_story,
    parse_stories,
)
from mnemic.data.babi.generate import STORY_MAKERS, generate_stories

OFFICIAL = Path(__file__).parents[3] / "shared/data/babi/en"
COMPARE = Path(__file__).parents[2] / "benchmarks/generated_babi_statistics.py"
needs_official = pytest.mark.skipif(not OFFICIAL.is_dir(), reason=f"no official files: {OFFICIAL}")
every_task = pytest.mark.parametrize("task", TASKS)

MOVING = "the to went back moved journeyed travelled"
HOUSE = "bathroom bedroom garden hallway kitchen office"
TOWN = "bedroom cinema kitchen office park school"
FAMILY = f"{MOVING} {HOUSE} Daniel John Mary Sandra"
CARRYING = f"apple football milk took got grabbed picked up dropped left discarded put down there {MOVING} {HOUSE}"
MOVES_IN_TOWN = f"{MOVING} {TOWN} Bill Fred Julie Mary"
NEXT = "After Afterwards Following that Then"
ROOMS = f"The the is of north south east west {HOUSE}"
VOCABULARY = {  # the words of each task's official files
    1: f"{FAMILY} Where is",
    2: f"{FAMILY} {CARRYING} Where is",
    3: f"{FAMILY} {CARRYING} Where was before",
    4: f"{ROOMS} What",
    5: f"{CARRYING} Bill Fred Jeff Mary gave handed passed What Who did give received",
    6: f"{FAMILY} {CARRYING} Is in yes no",
    7: f"{FAMILY} {CARRYING} gave handed passed How many objects is carrying none one two three",
    8: f"{FAMILY} {CARRYING} What is carrying nothing",
    9: f"{FAMILY} Is is in no longer not yes",
    10: f"{MOVES_IN_TOWN} Is is either in or yes no maybe",
    11: f"{FAMILY} {NEXT} he she Where is",
    12: f"{FAMILY} and Where is",
    13: f"{FAMILY} {NEXT} and they Where is",
    14: f"{MOVES_IN_TOWN} Yesterday yesterday This this morning afternoon evening Where was before",
    15: "a is are afraid of What cat mouse sheep wolf cats mice wolves Cats Mice Sheep Wolves"
    " Emily emily Gertrude gertrude Jessica jessica Winona winona",
    16: "a is What color frog lion rhino swan gray green white yellow Bernhard Brian Greg Julius Lily",
    17: "The the Is is above below to left right of yes no blue pink red yellow rectangle sphere square triangle",
    18: "The the Is is Does fit fits in inside bigger than yes no box chest chocolate chocolates container of suitcase",
    19: f"{ROOMS} How do you go from to n s e w",
    20: f"{MOVING} apple football milk pajamas took got grabbed picked up there Where Why will did"
    " go get is hungry thirsty tired bored bedroom garden kitchen"
    " Antoine antoine Jason jason Sumit sumit Yann yann",
}
CONTEXT = {  # mean number of sentences before a question in the official training files
    1: 6.0, 2: 15.7, 3: 50.0, 4: 2.0, 5: 20.0, 6: 6.3, 7: 8.7, 8: 9.1, 9: 6.0, 10: 6.0,
    11: 6.0, 12: 6.0, 13: 6.0, 14: 7.7, 15: 8.0, 16: 9.0, 17: 2.0, 18: 6.3, 19: 5.0, 20: 5.9,
}  # fmt: skip


@cache
def cached_stories(task: int, count: int = 300, seed: int = 7) -> tuple[Story, ...]:
    return tuple(generate_stories(task, count, seed=seed))


def cached_examples(task: int) -> list[StoryExample]:
    return [example for story in cached_stories(task) for example in extract_examples(story, task)]


def words_of_story(story: Story) -> set[str]:
    texts = (text for line in story for text in line[1:3])
    return {word for text in texts for word in re.findall(r"\w+", text)}


def test_every_task_has_its_maker() -> None:
    assert list(STORY_MAKERS) == list(TASKS) == list(range(1, 21))
    assert len(set(STORY_MAKERS.values())) == 20


@every_task
def test_the_seed_decides(task: int) -> None:
    stories = cached_stories(task, 60)
    assert tuple(generate_stories(task, 60, seed=7)) == stories
    other_stories = tuple(generate_stories(task, 60, seed=8))
    assert len(set(other_stories) & set(stories)) < len(other_stories) / 3  # task 4 knows few stories


def test_tasks_of_one_seed_do_not_share_their_dice() -> None:
    first, twelfth = (next(generate_stories(task, 1, seed=0))[0].text for task in (1, 12))
    assert first.split()[-1] != twelfth.split()[-1]


def test_stories_are_the_same_on_every_machine() -> None:
    assert format_story(next(generate_stories(1, 1, seed=0))) == (
        "1 Mary journeyed to the office.\n2 Sandra went to the bedroom.\n3 Where is Mary? \toffice\t1\n"
    )


@every_task
@pytest.mark.parametrize("count", [1, 7, 60])
def test_the_count_of_questions_is_exact(task: int, count: int) -> None:
    stories = list(generate_stories(task, count, seed=7))
    lines = [line for story in stories for line in story]
    assert sum(isinstance(line, StoryQuestion) for line in lines) == count
    assert isinstance(lines[-1], StoryQuestion)
    longer = cached_stories(task, 60)
    assert format_story(longer[len(stories) - 1]).startswith(format_story(stories[-1]))
    assert tuple(stories[:-1]) == longer[: len(stories) - 1]


@every_task
def test_stories_survive_the_file_format(task: int) -> None:
    text = "".join(map(format_story, cached_stories(task)))
    assert tuple(parse_stories(text.splitlines(), "generated")) == cached_stories(task)


@every_task
def test_answers_follow_from_the_sentences(task: int) -> None:
    for example in cached_examples(task):
        assert solve(task, example.sentences, example.question) == example.answer, example


@every_task
def test_answers_follow_from_the_facts_alone(task: int) -> None:
    for example in cached_examples(task):
        facts = set(example.facts)
        assert len(facts) == len(example.facts) > 0
        if task == 3:  # only the taking, which is no fact there, says that the object was carried
            facts.add(find_last_taking(example))
        sentences = [example.sentences[fact] for fact in sorted(facts)]
        assert solve(task, sentences, example.question) == example.answer, example


def find_last_taking(example: StoryExample) -> int:
    object_name = example.question.split()[3]
    taking = re.compile(rf"\w+ (?:took|got|grabbed|picked up) the {object_name}\b")
    return max(n for n, sentence in enumerate(example.sentences) if taking.match(sentence))


@pytest.mark.parametrize("task", sorted(set(TASKS) - {7, 8, 11, 13}))
def test_no_fact_can_be_left_out(task: int) -> None:
    """Without the tasks whose facts list all actions or resolve a pronoun."""
    for example in cached_examples(task)[:100]:
        taking = {find_last_taking(example)} if task == 3 else set()
        for fact in example.facts[task == 3 :]:  # dropping the object is not needed
            other_facts = sorted({*example.facts, *taking} - {fact})
            assert not can_solve(example, [example.sentences[n] for n in other_facts]), (fact, example)


def can_solve(example: StoryExample, sentences: list[str]) -> bool:
    try:
        return solve(example.task, sentences, example.question) == example.answer
    except (AssertionError, LookupError, ValueError):
        return False


@every_task
def test_the_words_are_the_official_ones(task: int) -> None:
    used = set().union(*map(words_of_story, cached_stories(task, 2000)))
    assert used == set(VOCABULARY[task].split())


@every_task
def test_stories_are_as_long_as_official_ones(task: int) -> None:
    lengths = [
        len(example.sentences) for story in cached_stories(task, 2000) for example in extract_examples(story, task)
    ]
    assert sum(lengths) / len(lengths) == pytest.approx(CONTEXT[task], rel=0.1)


@pytest.mark.parametrize(
    ("task", "count", "message"),
    [
        (0, 1, "there is no task 0; the tasks are 1 to 20"),
        (21, 1, "there is no task 21"),
        (1, 0, "expected a count of at least 1 question, got 0"),
    ],
)
def test_orders_that_cannot_be_filled_are_refused_at_once(task: int, count: int, message: str) -> None:
    with pytest.raises(StoryError, match=message):
        generate_stories(task, count, seed=0)


@needs_official
@every_task
def test_the_solver_answers_official_questions(task: int) -> None:
    """Four questions of task 5 have two answers: a person was given two objects."""
    wrong = [
        example
        for split in FILE_SPLITS
        for example in load_task(OFFICIAL, task, split)
        if solve(task, example.sentences, example.question) != example.answer
    ]
    assert len(wrong) == (4 if task == 5 else 0)
    assert all(example.question.startswith("What did") for example in wrong)


@needs_official
def test_official_words_are_those_listed() -> None:
    for task in TASKS:
        used: set[str] = set()
        for example in (example for split in FILE_SPLITS for example in load_task(OFFICIAL, task, split)):
            for text in (*example.sentences[-1:], example.question, example.answer):
                used.update(re.findall(r"\w+", text))
        assert used <= set(VOCABULARY[task].split()), task


@needs_official
def test_the_comparison_finds_official_and_generated_stories_alike(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = ["1", "2", "3", "6", "12", "15", "20"]
    arguments = [str(COMPARE), "--data", str(OFFICIAL), "--task", *tasks, "--json"]
    monkeypatch.setattr("sys.argv", arguments)
    runpy.run_path(str(COMPARE), run_name="__main__")
    result = json.loads(capsys.readouterr().out)
    assert list(result["tasks"]) == tasks
    assert not result["missing"]
    for rows in result["tasks"].values():
        for row in rows:
            assert row["verdict"].startswith("agrees"), row
