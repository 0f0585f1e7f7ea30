"""Choose the text of an answer from memory, or explain why there is none."""

from typing import TYPE_CHECKING, NamedTuple

from mnemic.cli.text.quote import QuoteFinder

if TYPE_CHECKING:
    from mnemic.predict.results import MemoryAnswer


class AnswerText(NamedTuple):
    """The text of an answer, its probability, and notes."""

    text: str
    probability: float | None  # None if the text is not available
    notes: tuple[str, ...] = ()


def choose_answer_text(
    answer: "MemoryAnswer", question: str, quote_finder: QuoteFinder, *, is_generative: bool
) -> AnswerText:
    """Return the text that a generative network produced, or extract it with the reader.

    The reader extracts a span from the sentences that were read most. The text is empty if it finds
    no answer in them, or if no file is available to quote.
    """
    from mnemic.predict.extract_answer import extract_answer

    if is_generative:
        return AnswerText(answer.text, answer.probability)
    passages = [
        (source.start, quote_finder.quote_span(source.start, source.end).text or "") for source in answer.evidence
    ]
    if not passages or not passages[0][1]:
        note = "the text is not available, so the answer is only a list of positions in it"
        return AnswerText("", None, (note,))
    text, probability = extract_answer(question, passages)
    note = "the reader sees no answer in what was read most: look at the evidence"
    return AnswerText(text, probability, () if text else (note,))
