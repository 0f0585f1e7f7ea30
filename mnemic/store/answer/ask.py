"""Answer a question from a memory: retrieve in hops, read passages; ``rank`` orders answers."""

from collections.abc import Iterator, Mapping, Sequence
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
from mnemic.store.answer.units import find_best_lines, fit_span
from mnemic.store.answers import Answer, OnFound, ignore_found
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
    """Options of a question: hops, passages, BM25 weight, minimal confidence, filters."""

    hops: int = DEFAULT_HOPS
    passages: int = DEFAULT_PASSAGES
    bm25_weight: float | None = None
    confidence: float = MIN_CONFIDENCE
    filters: Filters = NO_FILTERS

    def check(self) -> "AskOptions":
        """Return the options, or raise ``StoreError`` if one is out of range."""
        if self.hops < 1 or self.passages < 1:
            raise StoreError(f"hops and passages are at least 1, not {self.hops}, {self.passages}")
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


def check_question(question: str, noun: str = "question", example: str = "Who wrote it?") -> None:
    """Raise ``StoreError`` if a question, or what ``noun`` says, is empty."""
    if not question.strip():
        raise StoreError(f"the {noun} is empty; give for example {example!r}")


def answer_question(
    store: Store,
    embedder: Embedder | None,
    reader: Reader | None,
    question: str,
    options: AskOptions,
    on_found: OnFound = ignore_found,
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
    sentences = sorted(chain.from_iterable(sentences_by_slot.values()), key=lambda sentence: -sentence.score)
    if on_found is not ignore_found:
        on_found(make_evidence(store, sentences, hops, options.filters))
    documents = {sentence.slot.document: store.get_document(sentence.slot.document) for sentence in sentences}
    names = {document.id: get_base_name(document.name) for document in documents.values() if document}
    candidates = read_passages(active_reader, query, sentences_by_slot, hops, names)
    if candidates is not None:
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
    if reader is None:
        return None
    inputs: list[ReaderInput] = []
    for slot in (sentences[0].slot for sentences in sentences_by_slot.values() if sentences):
        hop = next(hop for hop in reversed(hops) if slot.id in hop.scores)
        if knows_language(reader, slot.passage.text):
            inputs += list_inputs(slot, question, hop, (names or {}).get(slot.document, ""))
    if not inputs:
        return None
    spans = [
        fit_span(shift_span(span, item.offset), item.slot.passage)
        for span, item in zip(reader.answer(phrase_question(question), [item.text for item in inputs]), inputs)
    ]
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
