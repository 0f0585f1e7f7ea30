"""Reader of questions in JSON lines, one object a line.

``{"question": …, "context": …, "answers": [{"text": …, "answer_start": …}]}``, and if you like
``id``, ``title`` (texts with one title are one article), ``domain``, ``is_impossible``,
``answer_kind`` ("all": every answer is asked for; "any": they are alternatives) and ``history``
(a list of earlier turns). A line ``{"question": …, "answer": …}`` has a text that is the answer as
a whole, as those of frequently asked questions; an ``entity`` is its title and put before the
question.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from mnemic.data.text_tasks.examples import QuestionExample, TextError
from mnemic.data.text_tasks.files import read_lines
from mnemic.data.text_tasks.squad import locate_answer

AnswerKind = Literal["any", "all"]


def read_question_lines(path: Path, answer_kind: AnswerKind = "any", num_turns: int = 0) -> list[QuestionExample]:
    """Read the questions of a file.

    ``answer_kind`` is that of lines that do not name one. The last ``num_turns`` of the history are
    put before a question.
    """
    examples: list[QuestionExample] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        location = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise TextError(f"{location}: no valid JSON ({error.msg})") from None
        examples.append(parse_question(record, location, answer_kind=answer_kind, num_turns=num_turns))
    if not examples:
        raise TextError(f"{path} holds no questions")
    return examples


def parse_question(
    record: Any, location: str, *, answer_kind: AnswerKind = "any", num_turns: int = 0
) -> QuestionExample:
    """Parse a JSON record into a question; ``location`` is for errors."""
    if not isinstance(record, Mapping):
        raise TextError(f'{location}: expected an object {{"question": …, "context": …, "answers": […]}}')
    if "context" not in record and "answer" in record:
        return parse_pair(record, location)
    question, text = (read_text(record, name, location) for name in ("question", "context"))
    answers = [] if record.get("is_impossible") else record.get("answers", [])
    if not isinstance(answers, list) or not all(
        isinstance(a, Mapping) and isinstance(a.get("text"), str) for a in answers
    ):
        raise TextError(f'{location}: "answers" is a list of {{"text": …, "answer_start": …}}, not {answers!r}')
    kind, history = record.get("answer_kind", answer_kind), record.get("history", [])
    if kind not in ("any", "all"):
        raise TextError(f'{location}: "answer_kind" is "any" or "all", not {kind!r}')
    if not isinstance(history, list) or not all(isinstance(turn, str) for turn in history):
        raise TextError(f'{location}: "history" is a list of texts, not {history!r}')
    starts = tuple(find_start(answer, text, location) for answer in answers)
    return QuestionExample(
        question=" ".join([*(history[-num_turns:] if num_turns else []), question]),
        text=text,
        answers=tuple(answer["text"] for answer in answers),
        start=starts[0] if starts else -1,
        question_id=str(record.get("id", location)),
        title=str(record.get("title") or ""),
        domain=str(record.get("domain") or ""),
        needs_all=kind == "all" and len(answers) > 1,
        answer_starts=starts,
    )


def parse_pair(record: Mapping[str, Any], location: str) -> QuestionExample:
    """Parse a record of a question and the text that answers it as a whole.

    >>> record = {"question": "Is there parking?", "answer": "Yes.", "entity": "ACORN HOUSE"}
    >>> parse_pair(record, "faq.jsonl, line 1").question
    'ACORN HOUSE: Is there parking?'
    """
    question, text = (read_text(record, name, location) for name in ("question", "answer"))
    entity = str(record.get("entity") or "")
    return QuestionExample(
        question=f"{entity}: {question}" if entity else question,
        text=text,
        answers=(),
        start=-1,
        question_id=str(record.get("id", location)),
        title=entity or str(record.get("title") or ""),
        is_extractive=False,
    )


def read_text(record: Mapping[str, Any], name: str, location: str) -> str:
    """Return a text of a record that must not be empty."""
    text = record.get(name)
    if not isinstance(text, str) or not text.strip():
        raise TextError(f"{location}: {name!r} is a text that is not empty, not {text!r}")
    return text


def find_start(answer: Mapping[str, Any], text: str, location: str) -> int:
    """Find where an answer starts; its offset may be off or missing."""
    offset = answer.get("answer_start", 0)
    if not isinstance(offset, int) or isinstance(offset, bool):
        raise TextError(f'{location}: "answer_start" is a number, not {offset!r}')
    start = locate_answer(text, answer["text"], offset) if answer["text"].strip() else -1
    if start < 0:
        raise TextError(f"{location}: the answer {answer['text']!r} is not in its context")
    return start
