"""Read retrieved slots with a reader, and find spans in them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mnemic.store.answer.confidence import AnswerSpan, Reader, SpanFeatures, compute_features
from mnemic.store.answer.keywords import phrase_question
from mnemic.store.answer.plausible import is_plausible
from mnemic.store.answer.rank import SlotSpan, compute_name_overlap, compute_word_overlap
from mnemic.store.answer.rerank import read_in_time
from mnemic.store.answer.units import find_best_lines, fit_span
from mnemic.store.contract import MemorySlot
from mnemic.store.retrieve.hybrid import Hop
from mnemic.store.retrieve.languages import knows_language
from mnemic.text.sentences import Span

NO_SPAN = AnswerSpan(0, 0, 0.0, 1.0)


class ReaderInput(NamedTuple):
    """A text that a reader reads: a slot's passage, or a line of it."""

    slot: MemorySlot
    text: str
    offset: int  # of the passage's start in the text; below 0 for a line further on
    score: float  # of the slot, below that of the best
    context: str  # all that the reader could know: the passage, the clue, the document's name


class ReadSlots(NamedTuple):
    """What a reader read of slots, and the spans that it found."""

    inputs: list[ReaderInput]  # of a slot one or several, one after another
    spans: list[AnswerSpan]  # one per input
    num_unread: int = 0  # slots for which there was no time

    def select(self, slot_ids: Collection[int]) -> "ReadSlots":
        """Select what was read of some slots."""
        pairs = [(item, span) for item, span in zip(self.inputs, self.spans) if item.slot.id in slot_ids]
        return ReadSlots([item for item, _ in pairs], [span for _, span in pairs])

    def score_slots(self) -> dict[int, float]:
        """Return how well each slot answers: the largest relevance of its inputs."""
        scores: dict[int, float] = {}
        for item, span in zip(self.inputs, self.spans):
            relevance = span.log_odds if span.relevance is None else span.relevance
            scores[item.slot.id] = max(scores.get(item.slot.id, relevance), relevance)
        return scores


NOTHING_READ = ReadSlots([], [])


def read_passages(
    reader: Reader | None,
    question: str,
    sentences_by_slot: Mapping[int, Sequence[SlotSpan]],
    hops: Sequence[Hop],
    names: Mapping[int, str] | None = None,
) -> list[tuple[SlotSpan, SpanFeatures]] | None:
    """Find spans of slots with a reader, and their features; None: nothing to read.

    ``names`` are those of the slots' documents; their words count as words of the passage. What
    cannot be an answer, as only words of the question, is none.

    A slot of a later hop is read with the hop's clue in front: it may speak of something that the
    question does not name, and only the clue connects the two.
    """
    slots = [sentences[0].slot for sentences in sentences_by_slot.values() if sentences]
    read = read_slots(reader, question, slots, hops, names or {}) if reader else NOTHING_READ
    return find_candidates(question, read) if read.inputs else None


def read_slots(
    reader: Reader,
    question: str,
    slots: Sequence[MemorySlot],
    hops: Sequence[Hop],
    names: Mapping[int, str],
    *,
    num_first: int = 0,
    timeout_s: float | None = None,
) -> ReadSlots:
    """Read slots with a reader; after ``timeout_s`` only the first ``num_first`` of them."""
    inputs: list[ReaderInput] = []
    num_first_inputs = 0
    for number, slot in enumerate(slots, start=1):
        hop = next(hop for hop in reversed(hops) if slot.id in hop.scores)
        if knows_language(reader, slot.passage.text):
            inputs += list_inputs(slot, question, hop, names.get(slot.document, ""))
        if number <= num_first:
            num_first_inputs = len(inputs)
    if not inputs:
        return NOTHING_READ
    read = partial(reader.answer, phrase_question(question))
    spans = read_in_time(read, [item.text for item in inputs], num_first_inputs, timeout_s)
    unread = {item.slot.id for item in inputs[len(spans) :]}.difference(item.slot.id for item in inputs[: len(spans)])
    return ReadSlots(inputs[: len(spans)], spans, len(unread))


def find_candidates(question: str, read: ReadSlots) -> list[tuple[SlotSpan, SpanFeatures]]:
    """Find the answers in what was read, with their features."""
    inputs = read.inputs
    spans = [fit_span(shift_span(span, item.offset), item.slot.passage) for item, span in zip(*read[:2])]
    spans = [
        span if is_plausible(question, item.slot.passage.text, Span(span.start, span.end)) else NO_SPAN
        for span, item in zip(spans, inputs)
    ]
    contexts = [item.context for item in inputs]
    overlaps = zip(compute_word_overlap(question, contexts), compute_name_overlap(question, contexts))
    features = compute_features([item.score for item in inputs], list(overlaps), spans)
    answers = [SlotSpan(item.slot, span.start, span.end, span.probability) for item, span in zip(inputs, spans)]
    return list(zip(answers, features))


def list_inputs(slot: MemorySlot, question: str, hop: Hop, name: str) -> Iterator[ReaderInput]:
    """Yield what a reader reads of a slot: its passage, the best lines alone."""
    clue = f"{hop.clue} " if hop.clue else ""
    score = hop.scores[slot.id] - max(hop.scores.values())
    context = f"{name}\n{clue}{slot.passage.text}"
    yield ReaderInput(slot, clue + slot.passage.mark_units(), len(clue), score, context)
    for line in find_best_lines(slot.passage, question):
        yield ReaderInput(slot, slot.passage.text[line.start : line.end], -line.start, score, context)


def shift_span(span: AnswerSpan, offset: int) -> AnswerSpan:
    """Move a span ``offset`` characters to the left; no answer if it starts before."""
    if span.start >= offset:
        return span._replace(start=span.start - offset, end=span.end - offset)
    return NO_SPAN
