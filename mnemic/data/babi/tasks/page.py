"""Build a story line by line from sentences and questions."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from mnemic.data.babi.format import Story, StoryQuestion, StorySentence

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

    def add_question(self, question: CandidateQuestion) -> None:
        """Append a question with its answer and facts."""
        self.lines.append(StoryQuestion(len(self.lines) + 1, *question))
        self.num_questions += 1

    def build(self) -> Story:
        """Return the lines so far as a story."""
        return tuple(self.lines)


def fill_story(
    builder: StoryBuilder, add_sentence: Callable[[], None], draw_question: Callable[[], CandidateQuestion | None]
) -> Story:
    """Alternate two sentences and one possible question until there are five questions."""
    while builder.num_questions < NUM_QUESTIONS:
        add_sentence()
        add_sentence()
        question = draw_question()
        if question is not None:
            builder.add_question(question)
    return builder.build()


def choose_question(candidates: list[CandidateQuestion], generator: Random) -> CandidateQuestion | None:
    """Choose a question uniformly at random; None if there are no candidates."""
    return generator.choice(candidates) if candidates else None
