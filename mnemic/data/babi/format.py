"""The line format of the bAbI stories, read and written (Weston et al. 2015).

A file is a row of stories. A line is ``NUMBER SENTENCE`` or, with two tabs,
``NUMBER QUESTION<tab>ANSWER<tab>FACTS``; numbers start again at 1 with each story; FACTS are the
numbers of the lines that prove the answer, parted by blanks. ``render`` is the exact inverse of
``parse``: official files come back byte for byte.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

LINE_FORM = "'NUMBER SENTENCE' or 'NUMBER QUESTION<tab>ANSWER<tab>FACTS'"
NUMBERED = re.compile(r"([0-9]{1,9}) (.*\S.*)")


class StoryError(ValueError):
    """A story file is not what it should be; the message says where and what would be right."""


class Sentence(NamedTuple):
    """A line that tells something."""

    number: int
    text: str


class Question(NamedTuple):
    """A line that asks; ``facts`` are the numbers of the lines that prove the answer."""

    number: int
    text: str  # as it stands in the file: most tasks leave a blank after the question mark
    answer: str
    facts: tuple[int, ...]


Story: TypeAlias = tuple[Sentence | Question, ...]


class Example(NamedTuple):
    """One question with everything told before it; ``facts`` are indices into ``sentences``."""

    sentences: tuple[str, ...]
    question: str
    answer: str
    facts: tuple[int, ...]
    task: int


def parse(lines: Iterable[str], name: str) -> Iterator[Story]:
    """Yield the stories in ``lines``; ``name`` is what error messages call their source."""
    story: list[Sentence | Question] = []
    asked, row = False, 0
    for row, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = parse_line(line.rstrip("\r\n"))
            if entry.number == 1 and story:
                yield tuple(story)
                story = []
            check_place(entry, story)
        except StoryError as error:
            raise StoryError(f"{name}, line {row}: {error}") from None
        asked = asked or isinstance(entry, Question)
        story.append(entry)
    if not asked:
        what = "there is no question here" if story else "there is no story here"
        raise StoryError(f"{name}, line {max(row, 1)}: {what}; expected lines of {LINE_FORM}")
    yield tuple(story)


def parse_line(line: str) -> Sentence | Question:
    """Read one line of a story file, without its line end."""
    match = NUMBERED.fullmatch(line)
    if match is None:
        raise StoryError(f"expected {LINE_FORM}, got {line!r}")
    number, fields = int(match[1]), match[2].split("\t")
    if len(fields) == 1:
        return Sentence(number, fields[0])
    if not fields[0].strip() or not fields[1].strip():
        missing = "answer" if fields[0].strip() else "question"
        raise StoryError(f"the {missing} is missing; expected {LINE_FORM}, got {line!r}")
    if len(fields) != 3 or not all(map(str.isdecimal, fields[2].split())):
        raise StoryError(f"expected {LINE_FORM}, got {line!r}")
    return Question(number, fields[0], fields[1], tuple(map(int, fields[2].split())))


def check_place(entry: Sentence | Question, before: list[Sentence | Question]) -> None:
    """Raise a StoryError if ``entry`` cannot follow the lines ``before`` it in its story."""
    expected = before[-1].number + 1 if before else 1
    if entry.number != expected:
        choices = f"{expected} or 1 (a new story)" if before else "1"
        raise StoryError(f"expected the number {choices}, got {entry.number}")
    if isinstance(entry, Question):
        told = {line.number for line in before if isinstance(line, Sentence)}
        for fact in entry.facts:
            if fact not in told:
                raise StoryError(f"fact {fact} is not the number of an earlier sentence")


def render(story: Story) -> str:
    """Write a story as the lines of a file, each with its line end."""
    return "".join(f"{render_line(entry)}\n" for entry in story)


def render_line(entry: Sentence | Question) -> str:
    """Write one line, without its line end."""
    if isinstance(entry, Sentence):
        return f"{entry.number} {entry.text}"
    facts = " ".join(map(str, entry.facts))
    return f"{entry.number} {entry.text}\t{entry.answer}\t{facts}"


def examples(story: Story, task: int) -> Iterator[Example]:
    """Yield each question of a story with all the sentences before it."""
    told: list[str] = []
    index: dict[int, int] = {}  # line number -> place in told
    for entry in story:
        if isinstance(entry, Sentence):
            index[entry.number] = len(told)
            told.append(entry.text.strip())
        else:
            facts = tuple(index[fact] for fact in entry.facts)
            yield Example(tuple(told), entry.text.strip(), entry.answer.strip(), facts, task)


def read(path: Path) -> Iterator[Story]:
    """Yield the stories of a file, which must hold at least one question."""
    return parse(read_lines(path), path.name)


def read_story(path: Path) -> tuple[str, ...]:
    """Read the one story to ask about from a file (see ``story_of``)."""
    return story_of(read_lines(path), path.name)


def story_of(lines: Iterable[str], name: str) -> tuple[str, ...]:
    """The one story to ask about: numbered lines, or plain text with a sentence a line.

    A text whose first line starts with "1 " is a numbered one. Question lines (those with a tab)
    and blank lines are left out, so numbers may jump but must rise.
    """
    rows = [(row, line) for row, line in enumerate(lines, start=1) if line.strip()]
    if rows and rows[0][1].startswith("1 "):
        rows = list(strip_numbers(rows, name))
    sentences = tuple(line.strip() for _, line in rows if "\t" not in line.strip())
    if not sentences:
        raise StoryError(f"{name}: the story is empty; expected at least one sentence")
    return sentences


def strip_numbers(rows: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, str]]:
    """Take the numbers off the lines of one story."""
    last = 0
    for row, line in rows:
        match = NUMBERED.fullmatch(line)
        if match is None:
            raise StoryError(
                f"{name}, line {row}: expected 'NUMBER SENTENCE' as in line 1, got {line!r}"
            )
        if int(match[1]) <= last:
            raise StoryError(
                f"{name}, line {row}: the number {match[1]} does not rise above {last}; "
                "a story to ask about is one story, so keep one and take out the others"
            )
        last = int(match[1])
        yield row, match[2]


def read_lines(path: Path) -> list[str]:
    """Read a utf-8 file (with or without a byte order mark, any line end) as lines."""
    if not path.is_file():
        raise StoryError(f"there is no file {path}; give the path of a story file")
    return lines_of(path.read_bytes(), path.name)


def lines_of(data: bytes, name: str) -> list[str]:
    """The lines of a utf-8 text; ``name`` is what error messages call it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StoryError(
            f"{name}: byte {error.start} is not utf-8 ({error.reason}); save the file as utf-8"
        ) from None
    lines = text.removeprefix("\ufeff").split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
