"""Extract a short answer from retrieved passages with the shipped span reader.

A memory network that was not trained to generate words returns evidence only; the reader turns
the passages with the largest read weights into an answer.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from mnemic.checkpoint.shipped import WEIGHTS
from mnemic.predict.memory_state import State, TextRecord
from mnemic.predict.results import NO_ANSWER_THRESHOLD, SourceSpan
from mnemic.predict.text_tasks import answer_questions
from mnemic.text.windows import WindowError

MAX_PASSAGES = 4  # passages that the reader sees: those with the largest read weights


def extract_answer(question: str, passages: Sequence[tuple[int, str]]) -> tuple[str, float]:
    """Extract the answer to a question from passages, and the probability that there is one.

    ``passages`` are pairs of start offset and text, largest read weight first. The answer is empty
    if "no answer" is more probable than ``NO_ANSWER_THRESHOLD``.
    """
    unique_passages = dict.fromkeys(passage for _, passage in passages if passage)  # no duplicates
    starts = {passage: start for start, passage in reversed(passages)}
    context = sorted(list(unique_passages)[:MAX_PASSAGES], key=starts.__getitem__)
    try:
        ((answer, no_answer),) = extract_answers(load_reader(), [(question, context)])
    except WindowError:
        num_tokens = len(load_reader().tokenizer.encode(question, special=False).ids)
        raise ValueError(
            f"the question has {num_tokens} tokens, too many for the reader that extracts answers "
            "from the evidence; ask a shorter one"
        ) from None
    return "" if no_answer > NO_ANSWER_THRESHOLD else answer, 1 - no_answer


def extract_answers(network: Any, questions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, float]]:
    """Extract each question's answer from its passages, with the probability of no answer.

    The passages are read as one text, since they refer to each other, but an answer lies within one
    passage: if the best span crosses a boundary, each passage it overlaps is read again by itself.
    """
    pairs = [(question, " ".join(passages)) for question, passages in questions]
    answers, retries = [], list[tuple[int, str, str]]()
    for index, span in enumerate(answer_questions(network, pairs)):
        question, text = pairs[index]
        answers.append((text[span.start : span.end], span.no_answer))
        overlapping = find_overlapping(questions[index][1], span.start, span.end)
        retries += [(index, question, passage) for passage in overlapping[1:] and overlapping]
    best_scores = [0.0] * len(answers)
    for (index, _, passage), span in zip(retries, answer_questions(network, [retry[1:] for retry in retries])):
        if span.score > best_scores[index]:
            best_scores[index] = span.score
            answers[index] = (passage[span.start : span.end], answers[index][1])
    return answers


def find_overlapping(passages: Sequence[str], start: int, end: int) -> list[str]:
    """Find the passages that overlap ``[start, end)`` of the text they form, joined by spaces."""
    overlapping, passage_start = [], 0
    for passage in passages:
        if passage_start < end and start < passage_start + len(passage):
            overlapping.append(passage)
        passage_start += len(passage) + 1
    return overlapping


def quote_evidence(state: State, text: str, evidence: Sequence[SourceSpan]) -> list[tuple[int, str]]:
    """Quote the evidence from ``text``, which must be the complete text that was read.

    Returns pairs of start offset and quoted text.
    """
    if not isinstance(text, str):
        raise ValueError(f"text is what was read, as a str, not {type(text).__name__}")
    if len(text) != state.characters:
        raise ValueError(
            f"text has {len(text)} characters, but {state.characters} were read: give all texts "
            "that were, one after another"
        )
    start = 0
    for record in state.texts:
        if TextRecord.from_text(text[start : start + record.characters], record.name) != record:
            raise ValueError(f"text is not what was read: characters {start} to {start + record.characters} differ")
        start += record.characters
    return [(source.start, text[source.start : source.end]) for source in evidence]


@cache
def load_reader() -> Any:
    """Load the shipped reader, which answers questions with spans of a text; cached."""
    from mnemic.checkpoint.folder import load_checkpoint

    return load_checkpoint(WEIGHTS / "reader", precision="auto")
