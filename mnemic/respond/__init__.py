"""R of the frame: from what was found to an answer."""

from collections.abc import Callable
from typing import Any

from mnemic.respond.word import AnswerWord

RESPONSES: dict[str, Callable[..., Any]] = {
    "word": AnswerWord,
}
