"""Questions with answers in a text: SQuAD's JSON, version 1.1 and 2.0 (with no-answer)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mnemic.data.text_tasks.examples import Asked, TextError
from mnemic.data.text_tasks.files import read_json


def read_squad(path: Path) -> list[Asked]:
    """All questions of a file, each with its paragraph."""
    return [own for article in read_articles(path) for own in article]


def read_articles(path: Path) -> list[list[Asked]]:
    """As ``read_squad``, article by article."""
    whole = read_json(path)
    if not isinstance(whole, dict) or not isinstance(whole.get("data"), list):
        raise TextError(f'{path} is not in SQuAD\'s form: {{"data": [{{"paragraphs": […]}}]}}')
    found: list[list[Asked]] = []
    for number, article in enumerate(whole["data"], start=1):
        try:
            found.append(list(of_article(article, path)))
        except (KeyError, TypeError, AttributeError) as error:
            raise TextError(
                f"{path}, article {number}: {type(error).__name__} {error}; expected paragraphs "
                "with a context and qas, each with an id, a question and answers"
            ) from None
    if not any(found):
        raise TextError(f"{path} holds no questions")
    return found


def of_article(article: Any, path: Path) -> Iterator[Asked]:
    for paragraph in article["paragraphs"]:
        text: str = paragraph["context"]
        for own in paragraph["qas"]:
            answers = [] if own.get("is_impossible") else own.get("answers", [])
            told = tuple(answer["text"] for answer in answers)
            start = placed(text, told[0], answers[0]["answer_start"]) if told else -1
            if told and start < 0:
                raise TextError(
                    f"{path}, question {own['id']}: the answer {told[0]!r} is not in its text"
                )
            yield Asked(own["question"], text, told, start, str(own["id"]))


def placed(text: str, answer: str, start: int) -> int:
    """Where an answer really stands: the place nearest to the one the file names; -1: nowhere."""
    if text.startswith(answer, start) and start >= 0:
        return start
    places = []
    place = text.find(answer)
    while place >= 0:
        places.append(place)
        place = text.find(answer, place + 1)
    return min(places, key=lambda own: abs(own - start), default=-1)
