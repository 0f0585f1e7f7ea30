"""The words of a network that says none: the shipped reader points at them in what it read."""

from typing import TYPE_CHECKING, Any, NamedTuple

from mnemic.app.quotes import Quotes

if TYPE_CHECKING:
    from mnemic.learn.results import Recollected

TOLD = 4  # sentences that the reader is given: those that were read most
DOUBT = 0.5  # more than this says that they hold no answer


class Said(NamedTuple):
    """An answer in words."""

    text: str
    probability: float
    notes: tuple[str, ...] = ()


def said(answer: "Recollected", question: str, quotes: Quotes, *, speaks: bool) -> Said:
    """What a network that ``speaks`` said; else what the reader points at in what was read most.

    Where the reader sees no answer in those sentences, or no file is there to quote, there are no
    words.
    """
    if speaks:
        return Said(answer.text, answer.probability)
    told = [quotes.at(one.start, one.end).text for one in answer.evidence[:TOLD]]
    if not told or not told[0]:
        note = "the text is not at hand, so there are no words to answer with, only places in it"
        return Said("", answer.probability, (note,))
    places = sorted(range(len(told)), key=lambda number: answer.evidence[number].start)
    text = " ".join(own for number in places if (own := told[number]))
    found = reader().answer(question, text)
    if found.no_answer > DOUBT:
        note = "the reader sees no answer in what was read most: look at the evidence"
        return Said("", 1 - found.no_answer, (note,))
    return Said(text[found.start : found.end], 1 - found.no_answer)


def reader() -> Any:
    """The network that comes with the package and answers with stretches of a text."""
    from mnemic.store.network import loaded, shipped

    return loaded(shipped())[0]
