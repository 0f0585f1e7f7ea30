"""An answer from memory in words, and what has to be said where there are none."""

from typing import TYPE_CHECKING, NamedTuple

from mnemic.cli.text.quote import Quotes

if TYPE_CHECKING:
    from mnemic.predict.results import Recollected


class Said(NamedTuple):
    """An answer in words."""

    text: str
    probability: float | None  # nobody knows it where the text is not at hand
    notes: tuple[str, ...] = ()


def said(answer: "Recollected", question: str, quotes: Quotes, *, speaks: bool) -> Said:
    """What a network that ``speaks`` said; else what the reader points at in what was read most.

    Where the reader sees no answer in those sentences, or no file is there to quote, there are no
    words.
    """
    from mnemic.predict.extract_answer import pointed

    if speaks:
        return Said(answer.text, answer.probability)
    told = [(one.start, quotes.at(one.start, one.end).text or "") for one in answer.evidence]
    if not told or not told[0][1]:
        note = "the text is not at hand, so there are no words to answer with, only places in it"
        return Said("", None, (note,))
    words, sure = pointed(question, told)
    note = "the reader sees no answer in what was read most: look at the evidence"
    return Said(words, sure, () if words else (note,))
