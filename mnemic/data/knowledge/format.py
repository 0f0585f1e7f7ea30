"""Read the files of a knowledge base: facts, documents, and questions with their answers.

A fact is a line ``subject|relation|object``. A question is a line ``who directed [The Bat]``, a
tab, and all right answers separated by ``|``; the entity it asks about is in brackets (MetaQA and
WikiMovies, as in Miller et al. 2016 and Zhang et al. 2018). A document is a JSON line with a title
and a text.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class KnowledgeError(ValueError):
    """A knowledge file is invalid; the message names the file, line and problem."""


class Fact(NamedTuple):
    """A triple of subject, relation and object."""

    subject: str
    relation: str
    object: str


class KnowledgeQuestion(NamedTuple):
    """A question with its entity in brackets, and all right answers."""

    text: str
    answers: tuple[str, ...]


class KnowledgeDocument(NamedTuple):
    """A text with its title, the entity it is about."""

    title: str
    text: str


def read_facts(path: Path) -> list[Fact]:
    """Read the facts of a file, in order."""
    return list(parse_lines(path, parse_fact))


def read_questions(path: Path) -> list[KnowledgeQuestion]:
    """Read the questions of a file, in order."""
    return list(parse_lines(path, parse_question))


def read_documents(path: Path) -> list[KnowledgeDocument]:
    """Read the documents of a JSON-lines file, in order."""
    return list(parse_lines(path, parse_document))


def parse_fact(line: str) -> Fact:
    """Parse a line ``subject|relation|object``."""
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != 3 or not all(fields):
        raise KnowledgeError(f"expected subject|relation|object, not {line!r}")
    return Fact(*fields)


def parse_question(line: str) -> KnowledgeQuestion:
    """Parse a line ``QUESTION<tab>ANSWER|ANSWER``."""
    text, tab, answers = line.partition("\t")
    right_answers = tuple(dict.fromkeys(answer.strip() for answer in answers.split("|") if answer.strip()))
    if not tab or not text.strip() or not right_answers:
        raise KnowledgeError(f"expected a question, a tab and answers with | between, not {line!r}")
    if not 0 <= text.find("[") < text.rfind("]") - 1:
        raise KnowledgeError(f"expected the question's entity in [brackets], not {text!r}")
    return KnowledgeQuestion(text.strip(), right_answers)


def parse_document(line: str) -> KnowledgeDocument:
    """Parse a JSON line with a title and a text."""
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    fields = [row.get(name) for name in KnowledgeDocument._fields] if isinstance(row, dict) else []
    if not fields or not all(isinstance(field, str) and field.strip() for field in fields):
        raise KnowledgeError(f'expected {{"title": "…", "text": "…"}}, not {line[:60]!r}')
    title, text = (field.strip() for field in fields if isinstance(field, str))
    return KnowledgeDocument(title, text)


def parse_lines(path: Path, parse: Callable[[str], T]) -> Iterator[T]:
    """Parse every nonblank line of a file; errors name the file and line."""
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
