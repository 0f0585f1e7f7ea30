"""Words for a network that only finds: the shipped reader points at them in what was read most."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.predict.memory_state import State, Text
from mnemic.predict.results import DOUBT, Source
from mnemic.predict.text_tasks import answer_all
from mnemic.text.windows import WindowError

TOLD = 4  # sentences that the reader is given: those that were read most


def pointed(question: str, told: Sequence[tuple[int, str]]) -> tuple[str, float]:
    """The answer in the first of these stretches (where each begins, and its words), most read.

    And how sure it is that they hold one; where they rather do not, there are no words.
    """
    first = dict.fromkeys(words for _, words in told if words)  # what was told twice counts once
    begins = {words: start for start, words in reversed(told)}
    chosen = sorted(list(first)[:TOLD], key=begins.__getitem__)
    try:
        ((words, none),) = point_all(reader(), [(question, chosen)])
    except WindowError:
        count = len(reader().tokenizer.encode(question, special=False).ids)
        raise ValueError(
            f"the question has {count} tokens, too many for the reader that points at words in "
            "what was found; ask a shorter one"
        ) from None
    return "" if none > DOUBT else words, 1 - none


def point_all(network: Any, asked: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, float]]:
    """Of each question and its stretches the words that answer it, and how likely there are none.

    The stretches are read as one text, since they tell of each other, but the words stand in one of
    them: where the best ones run over a seam, the stretches that they touch are read each by
    itself.
    """
    joined = [(question, " ".join(stretches)) for question, stretches in asked]
    found, again = [], list[tuple[int, str, str]]()
    for number, own in enumerate(answer_all(network, joined)):
        question, text = joined[number]
        found.append((text[own.start : own.end], own.no_answer))
        touched = touching(asked[number][1], own.start, own.end)
        again += [(number, question, stretch) for stretch in touched[1:] and touched]
    best = [0.0] * len(found)
    for (number, _, stretch), own in zip(again, answer_all(network, [one[1:] for one in again])):
        if own.score > best[number]:
            best[number] = own.score
            found[number] = (stretch[own.start : own.end], found[number][1])
    return found


def touching(stretches: Sequence[str], start: int, end: int) -> list[str]:
    """Those that hold some of these characters of all of them, a blank between each two."""
    touched, begin = [], 0
    for own in stretches:
        if begin < end and start < begin + len(own):
            touched.append(own)
        begin += len(own) + 1
    return touched


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
    from mnemic.checkpoint.folder import load

    return load(WEIGHTS / "reader", precision="auto")
