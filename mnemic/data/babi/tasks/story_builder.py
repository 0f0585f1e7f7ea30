"""Build a story line by line from sentences and questions."""

from collections.abc import Callable
from typing import NamedTuple

from mnemic.data.babi.format import StoryQuestion, StorySentence

NUM_QUESTIONS = 5  # per story of the simulated world


class CandidateQuestion(NamedTuple):
    """A possible question; ``facts`` are line numbers of the story."""

    text: str
    answer: str
    facts: tuple[int, ...]


class StoryBuilder:
    """A story under construction; ``add_sentence`` and ``add_question`` add one line each."""

    def __init__(self) -> None:
        self.lines: list[StorySentence | StoryQuestion] = []
        self.num_questions = 0

    def add_sentence(self, text: str) -> int:
        """Append a sentence and return its line number."""
        self.lines.append(StorySentence(len(self.lines) + 1, text))
        return len(self.lines)

    def add_question(self, text: str, answer: str, facts: tuple[int, ...]) -> None:
        """Append a question; ``facts`` are the numbers of the lines that prove the answer."""
        self.lines.append(StoryQuestion(len(self.lines) + 1, text, answer, facts))
        self.num_questions += 1

    def fill(self, add_sentence: Callable[[], None], draw_question: Callable[[], CandidateQuestion | None]) -> None:
        """Alternate two sentences and one possible question until there are five questions."""
        while self.num_questions < NUM_QUESTIONS:
            add_sentence()
            add_sentence()
            question = draw_question()
            if question is not None:
                self.add_question(*question)
