"""Answer a question from a memory: retrieve in hops, read passages.

``rerank`` orders passages by what was read in them, ``rank`` orders answers.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from mnemic.store.answer.clauses import rank_clauses
from mnemic.store.answer.confidence import MIN_CONFIDENCE, AnswerSpan, Reader, SpanFeatures, compute_features
from mnemic.store.answer.fields import find_values, get_base_name, merge_values
from mnemic.store.answer.keywords import phrase_question
from mnemic.store.answer.plausible import is_plausible
from mnemic.store.answer.rank import (
    SlotSpan,
    compute_name_overlap,
    compute_word_overlap,
    make_evidence,
    merge_answers,
    rank_answer,
    score_sentences,
    weigh_sentences,
)
from mnemic.store.answer.rerank import describe_timeout, list_further_slots, read_in_time, rerank_hop
from mnemic.store.answer.units import find_best_lines, fit_span
from mnemic.store.answers import Answer
from mnemic.store.contract import MemorySlot, StoreError
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.filters import NO_FILTERS, Filters
from mnemic.store.retrieve.hybrid import Hop, read_hop
from mnemic.store.retrieve.languages import knows_language, select_model
from mnemic.store.retrieve.spelling import correct_spelling
from mnemic.text.sentences import Span

DEFAULT_HOPS = 1
WORDS_NOTE = "the embedder does not know this language: the memory was read by words alone"
CLAUSE_NOTE = "the reader does not know this language: an answer is the clause that fits best"
NO_SPAN = AnswerSpan(0, 0, 0.0, 1.0)
DEFAULT_PASSAGES = 5  # passages per hop that are read sentence by sentence


class AskOptions(NamedTuple):
    """Options of a question: what is read, how it is ranked, and what is answered.

    ``rerank`` passages of the last hop are read and ranked anew, and the best ``passages`` of them
    are used. None: those that are read anyway. 0, or a timeout of 0: the order of retrieval.
    """

    hops: int = DEFAULT_HOPS
    passages: int = DEFAULT_PASSAGES
    bm25_weight: float | None = None
    confidence: float = MIN_CONFIDENCE
    filters: Filters = NO_FILTERS
    rerank: int | None = None
    rerank_timeout_s: float | None = None

    def check(self) -> "AskOptions":
        """Return the options, or raise ``StoreError`` if one is out of range."""
        if self.hops < 1 or self.passages < 1:
            raise StoreError(f"hops and passages are at least 1, not {self.hops}, {self.passages}")
        for name, number in (("number of passages to rerank", self.rerank), ("time for it", self.rerank_timeout_s)):
            if number is not None and not number >= 0:
                raise StoreError(f"the {name} is at least 0, not {number}")
        for name, value in (("lexical share", self.bm25_weight), ("confidence", self.confidence)):
            if value is not None and not 0 <= value <= 1:
                raise StoreError(f"the {name} is between 0 and 1, not {value}")
        return self


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


class RetrievedMemory(NamedTuple):
    """What was retrieved from a memory, hop by hop, and what was read of it."""

    hops: list[Hop]
    sentences_by_slot: dict[int, list[SlotSpan]]
    names: dict[int, str]  # of the documents
    read: ReadSlots


def check_question(question: str, noun: str = "question", example: str = "Who wrote it?") -> None:
    """Raise ``StoreError`` if a question, or what ``noun`` says, is empty."""
    if not question.strip():
        raise StoreError(f"the {noun} is empty; give for example {example!r}")


def answer_question(
    store: Store, embedder: Embedder | None, reader: Reader | None, question: str, options: AskOptions
) -> Answer:
    """Answer a question with a span of a passage, and all sentences as evidence."""
    check_question(question)
    notes = []
    active_embedder, active_reader = select_model(embedder, question), select_model(reader, question)
    if active_embedder is not embedder:
        notes.append(WORDS_NOTE)
    query = correct_spelling(store, question)
    if query != question:
        notes.append(f"read as: {query}")
    hops, sentences_by_slot = retrieve_in_hops(
        store, active_embedder, query, options.check(), rank_last_hop=active_reader is None
    )
    if options.filters != NO_FILTERS and not hops[0].num_slots:
        notes.append(f"no document fits: {options.filters}; leave one out")
    hops, sentences_by_slot, names, read = read_memory(store, active_reader, query, hops, sentences_by_slot, options)
    sentences = sorted(chain.from_iterable(sentences_by_slot.values()), key=lambda sentence: -sentence.score)
    if read.num_unread:
        notes.append(describe_timeout(read.num_unread, options.rerank_timeout_s or 0.0))
    if read.inputs:
        candidates = find_candidates(query, read)
        slots = {candidate.slot.id: candidate.slot for candidate, _ in candidates}
        answers = merge_values(merge_answers(candidates), find_values(query, slots.values(), names))
    else:
        last_slots = hops[-1].top_slots(options.passages) or sentences_by_slot
        last_sentences = [sentence for sentence in sentences if sentence.slot.id in last_slots]
        answers = rank_clauses(query, last_sentences, hops[-1].scores) if reader else weigh_sentences(last_sentences)
        notes += [CLAUSE_NOTE] if reader and sentences else []
    best = answers[0] if answers and answers[0].score >= (options.confidence if reader else 0.0) else None
    if best:
        sentences.sort(key=best.score_evidence, reverse=True)
    evidence = make_evidence(store, sentences, hops, options.filters)
    return Answer(
        question=question,
        text=best.text if best else "",
        score=best.score if best else 0.0,
        evidence=tuple(evidence),
        start=best.start if best else 0,
        end=best.end if best else 0,
        ranked=tuple(rank_answer(answer, sentences, evidence) for answer in answers),
        kind="sentence" if reader is None else "span",
        hops=len(hops),
        looked=hops[0].num_slots,
        read=len({sentence.slot.id for sentence in sentences}),
        notes=tuple(notes),
    )


def retrieve_in_hops(
    store: Store, embedder: Embedder | None, question: str, options: AskOptions, *, rank_last_hop: bool
) -> tuple[list[Hop], dict[int, list[SlotSpan]]]:
    """Retrieve slots hop by hop; return the hops and the scored sentences per slot.

    The query of a later hop is the question with the best sentence of the hop before, its clue.
    The sentences of the last hop are scored with vectors only if ``rank_last_hop``: that is needed
    where one of them becomes the answer, and by words alone it takes no time.
    """
    hops: list[Hop] = []
    sentences_by_slot: dict[int, list[SlotSpan]] = {}
    clue, document_ids = "", store.find_documents(options.filters)
    for number in range(options.hops):
        query = f"{question} {clue}".strip()
        hop = read_hop(
            store,
            embedder,
            query,
            bm25_weight=options.bm25_weight,
            excluded=list(sentences_by_slot),
            document_ids=document_ids,
        )
        needs_vectors = rank_last_hop or number + 1 < options.hops
        sentence_embedder = embedder if needs_vectors else None
        new_sentences = score_sentences(store, sentence_embedder, hop, options.passages, options.bm25_weight)
        hops.append(hop._replace(clue=clue))
        sentences_by_slot |= new_sentences
        if not new_sentences:
            break
        clue = max(chain.from_iterable(new_sentences.values()), key=lambda sentence: sentence.score).text
    return hops, sentences_by_slot


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


def read_memory(
    store: Store,
    reader: Reader | None,
    question: str,
    hops: list[Hop],
    sentences_by_slot: dict[int, list[SlotSpan]],
    options: AskOptions,
) -> RetrievedMemory:
    """Read the retrieved slots and further ones of the last hop, and rerank that.

    Of the last hop only the best are left, as many as without reranking.
    """
    slots = [sentences[0].slot for sentences in sentences_by_slot.values() if sentences]
    further = list_further_slots(store, hops[-1], options.passages, options.rerank or 0) if reader else []
    documents = {slot.document: store.get_document(slot.document) for slot in (*slots, *further)}
    names = {document.id: get_base_name(document.name) for document in documents.values() if document}
    if reader is None:
        return RetrievedMemory(hops, sentences_by_slot, names, NOTHING_READ)
    timeout_s = options.rerank_timeout_s if further else None
    read = read_slots(reader, question, [*slots, *further], hops, names, num_first=len(slots), timeout_s=timeout_s)
    if options.rerank == 0 or options.rerank_timeout_s == 0 or not read.inputs:
        return RetrievedMemory(hops, sentences_by_slot, names, read)
    last = rerank_hop(hops[-1], read.score_slots())
    earlier = {slot_id: sentences for slot_id, sentences in sentences_by_slot.items() if slot_id not in last.scores}
    best = score_sentences(store, None, last, options.passages, options.bm25_weight)
    read_best = read.select({*earlier, *best})._replace(num_unread=read.num_unread)
    return RetrievedMemory([*hops[:-1], last], earlier | best, names, read_best)


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
