"""Reader of SQuAD files, version 1.1 and 2.0 (with questions without an answer)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mnemic.data.text_tasks.examples import QuestionExample, TextError
from mnemic.data.text_tasks.files import read_json


def read_squad(path: Path) -> list[QuestionExample]:
    """Read all questions of a file, each with its paragraph."""
    return [example for article in read_articles(path) for example in article]


def read_articles(path: Path) -> list[list[QuestionExample]]:
    """Read the questions of each article of a file."""
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise TextError(f'{path} is not in SQuAD\'s form: {{"data": [{{"paragraphs": […]}}]}}')
    articles: list[list[QuestionExample]] = []
    for number, article in enumerate(content["data"], start=1):
        try:
            articles.append(list(parse_article(article, path)))
        except (KeyError, TypeError, AttributeError) as error:
            raise TextError(
                f"{path}, article {number}: {type(error).__name__} {error}; expected paragraphs "
                "with a context and qas, each with an id, a question and answers"
            ) from None
    if not any(articles):
        raise TextError(f"{path} holds no questions")
    return articles


def parse_article(article: Any, path: Path) -> Iterator[QuestionExample]:
    """Parse the JSON of one article into questions."""
    for paragraph in article["paragraphs"]:
        text: str = paragraph["context"]
        for record in paragraph["qas"]:
            answers = [] if record.get("is_impossible") else record.get("answers", [])
            answer_texts = tuple(answer["text"] for answer in answers)
            start = locate_answer(text, answer_texts[0], answers[0]["answer_start"]) if answer_texts else -1
            if answer_texts and start < 0:
                raise TextError(f"{path}, question {record['id']}: the answer {answer_texts[0]!r} is not in its text")
            yield QuestionExample(
                record["question"], text, answer_texts, start, str(record["id"]), str(article.get("title") or "")
            )


def locate_answer(text: str, answer: str, start: int) -> int:
    """Find the occurrence of an answer nearest to ``start``; -1 if there is none."""
    if text.startswith(answer, start) and start >= 0:
        return start
    starts = [match.start() for match in re.finditer(f"(?={re.escape(answer)})", text)]
    return min(starts, key=lambda candidate: abs(candidate - start), default=-1)
