"""Words for a network that only finds: the shipped reader points at them in what was read most."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from mnemic.learn.results import DOUBT, Source
from mnemic.learn.shipped import WEIGHTS
from mnemic.learn.state import State, Text

TOLD = 4  # sentences that the reader is given: those that were read most


def pointed(question: str, told: Sequence[tuple[int, str]]) -> tuple[str, float]:
    """The answer in the first of these stretches (where each begins, and its words).

    And how sure it is that they hold one; where they rather do not, there are no words.
    """
    text = " ".join(words for _, words in sorted(told[:TOLD]) if words)
    found = reader().answer(question, text)
    words = "" if found.no_answer > DOUBT else text[found.start : found.end]
    return words, 1 - found.no_answer


def stretches(state: State, text: str, evidence: Sequence[Source]) -> list[tuple[int, str]]:
    """Evidence as it stands in ``text``, which has to be all that was read."""
    if not isinstance(text, str):
        raise ValueError(f"text is what was read, as a str, not {type(text).__name__}")
    if len(text) != state.characters:
        raise ValueError(
            f"text has {len(text)} characters, but {state.characters} were read: give all texts "
            "that were, one after another"
        )
    start = 0
    for own in state.texts:
        if Text.of(text[start : start + own.characters], own.name) != own:
            raise ValueError(
                f"text is not what was read: characters {start} to {start + own.characters} differ"
            )
        start += own.characters
    return [(own.start, text[own.start : own.end]) for own in evidence]


@cache
def reader() -> Any:
    """The network that comes with the package and answers with stretches of a text."""
    from mnemic.learn.checkpoint import load

    return load(WEIGHTS / "reader", precision="auto")
