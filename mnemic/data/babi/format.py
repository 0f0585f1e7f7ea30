"""Read and write the line format of bAbI stories (Weston et al. 2015).

A file is a sequence of stories. A line is ``NUMBER SENTENCE`` or, with two tabs,
``NUMBER QUESTION<tab>ANSWER<tab>FACTS``; numbers restart at 1 with each story; FACTS are the
numbers of the lines that prove the answer, separated by spaces. ``format_story`` is the exact
inverse of ``parse_stories``: official files come back byte for byte.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

LINE_FORMAT = "'NUMBER SENTENCE' or 'NUMBER QUESTION<tab>ANSWER<tab>FACTS'"
NUMBERED_LINE = re.compile(r"([0-9]{1,9}) (.*\S.*)")


class StoryError(ValueError):
    """A story file is invalid; the message names the line and the expected format."""


class StorySentence(NamedTuple):
    """A line of a story that states something."""

    number: int
    text: str


class StoryQuestion(NamedTuple):
    """A question line; ``facts`` are the numbers of the lines that prove the answer."""

    number: int
    text: str  # as in the file: most tasks have a space after the question mark
    answer: str
    facts: tuple[int, ...]


Story: TypeAlias = tuple[StorySentence | StoryQuestion, ...]


class StoryExample(NamedTuple):
    """A question with all sentences before it; ``facts`` are indices into ``sentences``."""

    sentences: tuple[str, ...]
    question: str
    answer: str
    facts: tuple[int, ...]
    task: int


def parse_stories(lines: Iterable[str], name: str) -> Iterator[Story]:
    """Parse lines into stories; error messages call their source ``name``."""
    story: list[StorySentence | StoryQuestion] = []
    has_question, row = False, 0
    for row, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = parse_line(line.rstrip("\r\n"))
            if entry.number == 1 and story:
                yield tuple(story)
                story = []
            check_entry(entry, story)
        except StoryError as error:
            raise StoryError(f"{name}, line {row}: {error}") from None
        has_question = has_question or isinstance(entry, StoryQuestion)
        story.append(entry)
    if not has_question:
        problem = "there is no question here" if story else "there is no story here"
        raise StoryError(f"{name}, line {max(row, 1)}: {problem}; expected lines of {LINE_FORMAT}")
    yield tuple(story)


def parse_line(line: str) -> StorySentence | StoryQuestion:
    """Parse one line of a story file, without its line end."""
    match = NUMBERED_LINE.fullmatch(line)
    if match is None:
        raise StoryError(f"expected {LINE_FORMAT}, got {line!r}")
    number, fields = int(match[1]), match[2].split("\t")
    if len(fields) == 1:
        return StorySentence(number, fields[0])
    if not fields[0].strip() or not fields[1].strip():
        missing = "answer" if fields[0].strip() else "question"
        raise StoryError(f"the {missing} is missing; expected {LINE_FORMAT}, got {line!r}")
    if len(fields) != 3 or not all(map(str.isdecimal, fields[2].split())):
        raise StoryError(f"expected {LINE_FORMAT}, got {line!r}")
    return StoryQuestion(number, fields[0], fields[1], tuple(map(int, fields[2].split())))


def check_entry(entry: StorySentence | StoryQuestion, previous_lines: list[StorySentence | StoryQuestion]) -> None:
    """Raise a StoryError if ``entry`` cannot follow ``previous_lines`` in its story."""
    expected = previous_lines[-1].number + 1 if previous_lines else 1
    if entry.number != expected:
        choices = f"{expected} or 1 (a new story)" if previous_lines else "1"
        raise StoryError(f"expected the number {choices}, got {entry.number}")
    if isinstance(entry, StoryQuestion):
        sentence_numbers = {line.number for line in previous_lines if isinstance(line, StorySentence)}
        for fact in entry.facts:
            if fact not in sentence_numbers:
                raise StoryError(f"fact {fact} is not the number of an earlier sentence")


def format_story(story: Story) -> str:
    """Format a story as the lines of a file, each with its line end."""
    return "".join(f"{format_line(entry)}\n" for entry in story)


def format_line(entry: StorySentence | StoryQuestion) -> str:
    """Format a sentence or question as one line, without its line end."""
    if isinstance(entry, StorySentence):
        return f"{entry.number} {entry.text}"
    facts = " ".join(map(str, entry.facts))
    return f"{entry.number} {entry.text}\t{entry.answer}\t{facts}"


def extract_examples(story: Story, task: int) -> Iterator[StoryExample]:
    """Yield each question of a story with all the sentences before it."""
    sentences: list[str] = []
    index_of_line: dict[int, int] = {}  # line number -> index in sentences
    for entry in story:
        if isinstance(entry, StorySentence):
            index_of_line[entry.number] = len(sentences)
            sentences.append(entry.text.strip())
        else:
            facts = tuple(index_of_line[fact] for fact in entry.facts)
            yield StoryExample(tuple(sentences), entry.text.strip(), entry.answer.strip(), facts, task)


def read_stories(path: Path) -> Iterator[Story]:
    """Read the stories of a file, which must contain at least one question."""
    return parse_stories(read_lines(path), path.name)


def read_story(path: Path) -> tuple[str, ...]:
    """Read the sentences of a single story from a file (see ``parse_sentences``).

    >>> text = "Mary took the milk.\\nJohn went to the office.\\nMary went to the garden.\\n"
    >>> count = Path("story.txt").write_text(text)
    >>> story = mnemic.read_story(Path("story.txt"))
    >>> len(story), story[0]
    (3, 'Mary took the milk.')
    >>> mnemic.load("wmn-babi").ask_story(story, "Where is the milk?").text
    'garden'
    """
    return parse_sentences(read_lines(path), path.name)


def parse_sentences(lines: Iterable[str], name: str) -> tuple[str, ...]:
    """Parse the sentences of a single story: numbered lines, or one sentence per line.

    A text whose first line starts with "1 " is numbered. Question lines (those with a tab) and
    blank lines are skipped, so numbers may jump but must rise.
    """
    rows = [(row, line) for row, line in enumerate(lines, start=1) if line.strip()]
    if rows and rows[0][1].startswith("1 "):
        rows = list(strip_line_numbers(rows, name))
    sentences = tuple(line.strip() for _, line in rows if "\t" not in line.strip())
    if not sentences:
        raise StoryError(f"{name}: the story is empty; expected at least one sentence")
    return sentences


def strip_line_numbers(rows: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, str]]:
    """Remove the numbers from the lines of one story."""
    last = 0
    for row, line in rows:
        match = NUMBERED_LINE.fullmatch(line)
        if match is None:
            raise StoryError(f"{name}, line {row}: expected 'NUMBER SENTENCE' as in line 1, got {line!r}")
        if int(match[1]) <= last:
            raise StoryError(
                f"{name}, line {row}: the number {match[1]} does not rise above {last}; "
                "a story to ask about is one story, so keep one and take out the others"
            )
        last = int(match[1])
        yield row, match[2]


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file, with or without a byte order mark."""
    if not path.is_file():
        raise StoryError(f"there is no file {path}; give the path of a story file")
    return decode_lines(path.read_bytes(), path.name)


def decode_lines(data: bytes, name: str) -> list[str]:
    """Decode UTF-8 bytes into lines; error messages call the text ``name``."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StoryError(f"{name}: byte {error.start} is not utf-8 ({error.reason}); save the file as utf-8") from None
    lines = text.removeprefix("\ufeff").split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
