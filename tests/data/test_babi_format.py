"""The bAbI line format and folder layout: reading, writing, and errors in files."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.data.babi.folder import FILE_SPLITS, SIZES, TASKS, Size, find_story_folder, find_task_file, load_task
from mnemic.data.babi.format import (
    Story,
    StoryError,
    StoryExample,
    StoryQuestion,
    StorySentence,
    extract_examples,
    format_story,
    parse_stories,
    read_lines,
    read_stories,
    read_story,
)

OFFICIAL = Path(__file__).parents[3] / "shared/data/babi"
needs_official = pytest.mark.skipif(not OFFICIAL.is_dir(), reason=f"no official files: {OFFICIAL}")

TEXT = """\
1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Mary got the milk there.
5 Where is the milk?\tbathroom\t4 1
1 Sandra is tired.
2 Where will sandra go?\tbedroom\t1
"""


def lines_of(text: str) -> list[str]:
    return text.splitlines()


def test_a_file_is_read_story_by_story() -> None:
    first, second = parse_stories(lines_of(TEXT), "stories.txt")
    assert first[0] == StorySentence(1, "Mary moved to the bathroom.")
    assert first[2] == StoryQuestion(3, "Where is Mary? ", "bathroom", (1,))
    assert first[4] == StoryQuestion(5, "Where is the milk?", "bathroom", (4, 1))
    assert second == (StorySentence(1, "Sandra is tired."), StoryQuestion(2, "Where will sandra go?", "bedroom", (1,)))


def test_rendering_gives_the_file_back() -> None:
    assert "".join(map(format_story, parse_stories(lines_of(TEXT), "stories.txt"))) == TEXT


def test_an_example_sees_the_sentences_before_its_question_only() -> None:
    story, _ = parse_stories(lines_of(TEXT), "stories.txt")
    first, second = extract_examples(story, task=2)
    sentences = ("Mary moved to the bathroom.", "John went to the hallway.")
    assert first == StoryExample(sentences, "Where is Mary?", "bathroom", (0,), 2)
    assert second.sentences == (*sentences, "Mary got the milk there.")
    assert second.facts == (2, 0)  # line 4 is the third sentence: line 3 is a question


def test_an_example_has_no_blanks_around_its_texts() -> None:
    (story,) = parse_stories(["1 Mary moved. ", "2 Where is Mary? \tpark \t1"], "stories.txt")
    (example,) = extract_examples(story, task=1)
    assert example == StoryExample(("Mary moved.",), "Where is Mary?", "park", (0,), 1)


words = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8)
phrases = st.lists(words, min_size=1, max_size=4).map(" ".join)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Draw any story: sentences and questions in any order, a question last."""
    story: list[StorySentence | StoryQuestion] = []
    for is_question in [False, *draw(st.lists(st.booleans(), max_size=6)), True]:
        number = len(story) + 1
        if is_question:
            sentence_numbers = [line.number for line in story if isinstance(line, StorySentence)]
            facts = tuple(draw(st.lists(st.sampled_from(sentence_numbers), max_size=3)))
            blank = draw(st.sampled_from(["", " "]))
            story.append(StoryQuestion(number, draw(phrases) + blank, draw(words), facts))
        else:
            story.append(StorySentence(number, draw(phrases)))
    return tuple(story)


@settings(max_examples=60, deadline=None)
@given(st.lists(stories(), min_size=1, max_size=3))
def test_parsing_is_the_inverse_of_rendering(stories: list[Story]) -> None:
    assert list(parse_stories("".join(map(format_story, stories)).split("\n"), "any")) == stories


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1 Mary moved.\nJohn went.",
            "stories.txt, line 2: expected 'NUMBER SENTENCE' or "
            "'NUMBER QUESTION<tab>ANSWER<tab>FACTS', got 'John went.'",
        ),
        ("1 Mary moved.\n2\n", "stories.txt, line 2: expected 'NUMBER SENTENCE' or"),
        ("1 Mary moved.\n2 Where?\tpark\n", r"line 2: expected .* got '2 Where\?\\tpark'"),
        ("1 Mary moved.\n2 Where?\tpark\tone\n", "line 2: expected 'NUMBER SENTENCE' or"),
        ("1 Mary moved.\n2 Where?\t\t1\n", "line 2: the answer is missing"),
        ("1 Mary moved.\n2 \tpark\t1\n", "line 2: the question is missing"),
        ("2 Mary moved.\n", "line 1: expected the number 1, got 2"),
        ("1 A.\n3 B.\n", r"line 2: expected the number 2 or 1 \(a new story\), got 3"),
        ("1 A.\n2 Where?\tpark\t2\n", "line 2: fact 2 is not the number of an earlier sentence"),
        ("1 A.\n2 W?\tb\t1\n3 W?\tb\t2\n", "line 3: fact 2 is not the number of an earlier"),
        ("1 A.\n2 W?\tb\t1\n1 A.\n2 W?\tb\t0\n", "line 4: fact 0 is not the number"),
        ("", "stories.txt, line 1: there is no story here; expected lines of 'NUMBER SENTENCE'"),
        ("\n \n", "stories.txt, line 2: there is no story here"),
        ("1 A.\n2 B.\n", "stories.txt, line 2: there is no question here"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(StoryError, match=message):
        list(parse_stories(lines_of(text), "stories.txt"))


def test_bytes_of_any_editor_are_read(tmp_path: Path) -> None:
    path = tmp_path / "stories.txt"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert read_lines(path) == lines_of(TEXT)
    assert "".join(map(format_story, read_stories(path))) == TEXT


@pytest.mark.parametrize("reader", [read_story, lambda path: list(read_stories(path))])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    path = tmp_path / "stories.txt"
    with pytest.raises(StoryError, match=r"there is no file .*stories\.txt"):
        reader(path)
    path.write_bytes(b"1 Caf\xe9.\n")
    with pytest.raises(StoryError, match=r"stories\.txt: byte 5 is not utf-8"):
        reader(path)


@pytest.mark.parametrize(
    "text",
    [
        TEXT[: TEXT.index("1 Sandra")],  # numbered, with questions
        "1 Mary moved to the bathroom.\n2 John went to the hallway.\n4 Mary got the milk there.\n",
        "Mary moved to the bathroom.\n\nJohn went to the hallway.  \nMary got the milk there.",
        "Mary moved to the bathroom.\r\nJohn went to the hallway.\r\nWhere?\tpark\t1\r\nMary got the milk there.\r\n",
    ],
)
def test_a_story_to_ask_about_may_be_numbered_or_plain(tmp_path: Path, text: str) -> None:
    path = tmp_path / "story.txt"
    path.write_bytes(text.encode())
    assert read_story(path) == ("Mary moved to the bathroom.", "John went to the hallway.", "Mary got the milk there.")


def test_a_plain_sentence_may_start_with_a_number(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text("Mary met them.\n3 men were in the park.\n", encoding="utf-8")
    assert read_story(path)[1] == "3 men were in the park."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n  \n", "story.txt: the story is empty; expected at least one sentence"),
        ("1 Where?\tpark\t1\n", "story.txt: the story is empty"),
        ("1 Mary moved.\nJohn went.\n", "line 2: expected 'NUMBER SENTENCE' as in line 1"),
        ("1 A.\n2 B.\n1 C.\n", "line 3: the number 1 does not rise above 2; .* one story"),
    ],
)
def test_a_story_to_ask_about_is_one_story(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "story.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StoryError, match=message):
        read_story(path)


def write_task_one(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "qa1_single-supporting-fact_train.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_folder_is_loaded_by_task_and_split(tmp_path: Path) -> None:
    path = write_task_one(tmp_path / "en")
    assert find_task_file(tmp_path / "en", 1, "train") == path
    loaded = load_task(tmp_path / "en", 1, "train")
    assert [example.answer for example in loaded] == ["bathroom", "bathroom", "bedroom"]
    assert loaded[2].sentences == ("Sandra is tired.",)
    assert {example.task for example in loaded} == {1}


@pytest.mark.parametrize("below", ["en-10k", "tasks_1-20_v1-2/en-10k", "."])
def test_the_folder_of_a_size_is_found(tmp_path: Path, below: str) -> None:
    write_task_one(tmp_path / "root" / below)
    assert find_story_folder(tmp_path / "root", "10k") == tmp_path / "root" / below


def test_what_is_missing_is_named_with_the_way_out(tmp_path: Path) -> None:
    write_task_one(tmp_path / "en")
    with pytest.raises(StoryError, match=r"looked for qa3_three-supporting-facts_train\.txt") as raised:
        load_task(tmp_path / "en", 3, "train")
    assert "mnemic data stories --task 3 --out DIR" in str(raised.value)
    with pytest.raises(StoryError, match=r"no folder .*nowhere"):
        load_task(tmp_path / "nowhere", 1, "train")
    with pytest.raises(StoryError, match=r"en-10k.*tasks_1-20_v1-2.*mnemic data stories"):
        find_story_folder(tmp_path, "10k")
    with pytest.raises(StoryError, match="there is no task 21; the tasks are 1 to 20"):
        find_task_file(tmp_path / "en", 21, "train")
    with pytest.raises(StoryError, match="there is no split 'dev'; the splits are train, test"):
        find_task_file(tmp_path / "en", 1, "dev")  # type: ignore[arg-type]
    with pytest.raises(StoryError, match="there is no size '5k'; the sizes are 1k, 10k"):
        find_story_folder(tmp_path, "5k")  # type: ignore[arg-type]


@needs_official
@pytest.mark.parametrize("size", SIZES)
def test_official_files_come_back_byte_for_byte(size: Size) -> None:
    folder = find_story_folder(OFFICIAL, size)
    names = {find_task_file(folder, task, "test").name for task in TASKS}
    assert len(names) == len(TASKS)
    for path in folder.glob("qa*_test.txt"):
        assert "".join(map(format_story, read_stories(path))).encode() == path.read_bytes(), path


@needs_official
def test_official_files_hold_a_thousand_questions_a_split() -> None:
    folder = find_story_folder(OFFICIAL, "1k")
    for task in TASKS:
        for split in FILE_SPLITS:
            assert len(load_task(folder, task, split)) == 1000, (task, split)
