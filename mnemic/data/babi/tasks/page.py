"""The page on which a maker writes its story, line by line."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from mnemic.data.babi.format import Question, Sentence, Story

QUESTIONS = 5  # a story of the simulated world asks as many


class Inquiry(NamedTuple):
    """A question that could be asked now; ``facts`` are line numbers of the page."""

    text: str
    answer: str
    facts: tuple[int, ...]


class Page:
    """A story in the making: ``tell`` and ``ask`` add a line each."""

    def __init__(self) -> None:
        self.lines: list[Sentence | Question] = []
        self.asked = 0

    def tell(self, text: str) -> int:
        """Write a sentence and return its line number."""
        self.lines.append(Sentence(len(self.lines) + 1, text))
        return len(self.lines)

    def ask(self, inquiry: Inquiry) -> None:
        """Write a question with its answer and its facts."""
        self.lines.append(Question(len(self.lines) + 1, *inquiry))
        self.asked += 1

    def story(self) -> Story:
        return tuple(self.lines)


def rounds(page: Page, tell: Callable[[], None], inquire: Callable[[], Inquiry | None]) -> Story:
    """Tell two sentences, ask if there is something to ask, until five questions are asked."""
    while page.asked < QUESTIONS:
        tell()
        tell()
        inquiry = inquire()
        if inquiry is not None:
            page.ask(inquiry)
    return page.story()


def one_of(inquiries: list[Inquiry], dice: Random) -> Inquiry | None:
    """One of the questions that could be asked, each as likely; None if there are none."""
    return dice.choice(inquiries) if inquiries else None
