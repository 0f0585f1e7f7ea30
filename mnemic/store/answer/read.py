"""Read retrieved slots with a reader, and find spans in them."""

from bisect import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from mnemic.store.answer.confidence import TYPICAL_COSINE, AnswerSpan, Reader, SpanFeatures, compute_features
from mnemic.store.answer.keywords import phrase_question
from mnemic.store.answer.plausible import is_plausible
from mnemic.store.answer.rank import SlotSpan, compute_name_overlap, compute_word_overlap
from mnemic.store.answer.rerank import ReadingPlan, read_in_batches
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
    cosine: float  # of the question and the slot's nearest sentence
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
            relevance = span.passage_relevance
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
    plan: ReadingPlan | None = None,
) -> ReadSlots:
    """Read slots with a reader, by default all of them at once."""
    sources: list[tuple[int, ReaderInput]] = []  # with the number of the slot
    for number, slot in enumerate(slots):
        hop = next(hop for hop in reversed(hops) if slot.id in hop.scores)
        if knows_language(reader, slot.passage.text):
            sources += ((number, item) for item in list_inputs(slot, question, hop, names.get(slot.document, "")))
    if not sources:
        return NOTHING_READ
    plan = plan or ReadingPlan((len(slots),))
    ends = list(accumulate(plan.sizes))
    batches = ([item.text for number, item in sources if bisect(ends, number) == batch] for batch in range(len(ends)))
    read = partial(reader.answer, phrase_question(question))
    spans, is_late = read_in_batches(read, filter(None, batches), plan)
    unread = {item.slot.id for _, item in sources[len(spans) :]}
    return ReadSlots([item for _, item in sources[: len(spans)]], spans, len(unread) if is_late else 0)


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
    features = compute_features(
        [item.score for item in inputs], list(overlaps), spans, [item.cosine for item in inputs]
    )
    answers = [SlotSpan(item.slot, span.start, span.end, span.probability) for item, span in zip(inputs, spans)]
    return list(zip(answers, features))


def list_inputs(slot: MemorySlot, question: str, hop: Hop, name: str) -> Iterator[ReaderInput]:
    """Yield what a reader reads of a slot: its passage, the best lines alone."""
    clue = f"{hop.clue} " if hop.clue else ""
    score = hop.scores[slot.id] - max(hop.scores.values())
    cosine = hop.cosines.get(slot.id, TYPICAL_COSINE)
    context = f"{name}\n{clue}{slot.passage.text}"
    yield ReaderInput(slot, clue + slot.passage.mark_units(), len(clue), score, cosine, context)
    for line in find_best_lines(slot.passage, question):
        yield ReaderInput(slot, slot.passage.text[line.start : line.end], -line.start, score, cosine, context)


def shift_span(span: AnswerSpan, offset: int) -> AnswerSpan:
    """Move a span ``offset`` characters to the left; no answer if it starts before."""
    if span.start >= offset:
        return span._replace(start=span.start - offset, end=span.end - offset)
    return NO_SPAN
