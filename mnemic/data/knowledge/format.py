"""The files of a knowledge base: ``kb.txt`` with facts, and questions with their answers.

A fact is a line ``subject|relation|object``. A question is a line ``who directed [The Bat]``, a
tab, and all right answers with ``|`` between them; the entity it asks about stands in brackets
(MetaQA and WikiMovies, as in Miller et al. 2016 and Zhang et al. 2018).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class KnowledgeError(ValueError):
    """A knowledge file cannot be used; the message names the file, the line and what is wrong."""


class Fact(NamedTuple):
    """Subject, relation, object."""

    subject: str
    relation: str
    object: str


class Question(NamedTuple):
    """A question as it stands in the file, its entity in brackets, and every right answer."""

    text: str
    answers: tuple[str, ...]


def read_facts(path: Path) -> list[Fact]:
    """All facts of a file, in order."""
    return list(each_line(path, fact_of))


def read_questions(path: Path) -> list[Question]:
    """All questions of a file, in order."""
    return list(each_line(path, question_of))


def fact_of(line: str) -> Fact:
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != 3 or not all(parts):
        raise KnowledgeError(f"expected subject|relation|object, not {line!r}")
    return Fact(*parts)


def question_of(line: str) -> Question:
    text, tab, answers = line.partition("\t")
    right = tuple(dict.fromkeys(part.strip() for part in answers.split("|") if part.strip()))
    if not tab or not text.strip() or not right:
        raise KnowledgeError(f"expected a question, a tab and answers with | between, not {line!r}")
    if not 0 <= text.find("[") < text.rfind("]") - 1:
        raise KnowledgeError(f"expected the question's entity in [brackets], not {text!r}")
    return Question(text.strip(), right)


def each_line(path: Path, parse: Callable[[str], T]) -> Iterator[T]:
    """Parse every line that is not blank; an error says where it is."""
    if not path.is_file():
        raise KnowledgeError(
            f"no file {path}; a knowledge folder has kb.txt, dev.txt and test.txt, as MetaQA's "
            "1-hop files are called, and documents.jsonl where data.keys is not 'facts'"
        )
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise KnowledgeError(f"{path} is not UTF-8: {error}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield parse(line.rstrip("\r"))
            except KnowledgeError as error:
                raise KnowledgeError(f"{path}, line {number}: {error}") from None
